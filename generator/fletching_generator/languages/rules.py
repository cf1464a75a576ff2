"""The pages of the rules under docs/reference/rules/, as Markdown."""

from __future__ import annotations

import re
from collections import Counter

from ..model import Spec
from ..render import Filters, Output
from ..rulebook import Family, Rule, Rulebook, rule_errata
from ..sentences import NORMATIVE
from .docs import cell

_FOLDER = "docs/reference/rules"
_CHECKS = {
    "validator": "checked by the validator",
    "compile": "checked when it is compiled",
    "test": "checked by tests",
    "static": "checked by reading the code",
    "not_checkable": "cannot be checked",
}


def outputs(spec: Spec, book: Rulebook) -> list[Output]:
    pages = [_index(book)]
    for family in book.families:
        context = {
            "book": book,
            "family": family,
            "errata": {rule.id: rule_errata(spec, rule) for rule in family.rules},
            "homes": {rule.id: _home(spec, rule) for rule in family.rules},
            "sources": {rule.id: book.sources(rule) for rule in family.rules},
            "checks": _CHECKS,
        }
        path = f"{_FOLDER}/{family.id}.md"
        pages.append(Output(path, "docs/rules/family.md", f"spec/rules/{family.id}.yaml", context))
    return pages


def _index(book: Rulebook) -> Output:
    context = {
        "book": book,
        "checks": _CHECKS,
        "counts": {family.id: _counts(family) for family in book.families},
        "words": NORMATIVE,
    }
    return Output(f"{_FOLDER}/README.md", "docs/rules/index.md", "spec/", context)


def _counts(family: Family) -> Counter[str]:
    """How many rules have each severity, and each way to be checked."""
    return Counter(rule.severity for rule in family.rules) + Counter(r.check for r in family.rules)


def _home(spec: Spec, rule: Rule) -> str | None:
    """The page, and where there is one the heading, of what a rule is about."""
    name = (rule.about or "").partition(".")[0]
    for interface in spec.interfaces:
        if name in [t.type.name for t in interface.typedefs] + [s.name for s in interface.structs]:
            return f"../{interface.id}.md#{name.lower()}"
        others = [interface.guard, *(function.name for function in interface.functions)]
        if name in [*others, *(constant.name for constant in interface.constants)]:
            return f"../{interface.id}.md"
    if name == spec.cuda_array_interface.attribute:
        return f"../{spec.cuda_array_interface.id}.md#keys"
    return None


def prose(text: str) -> str:
    """Text in which names with underscores are marked as code, so that they are no emphasis."""
    return re.sub(r"(?<![`\w.])[\w.]*_(?:[\w.]*\w)?", r"`\g<0>`", text)


FILTERS: Filters = {"cell": cell, "prose": prose}
