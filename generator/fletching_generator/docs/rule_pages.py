"""The pages of the rules under docs/reference/rules/, as Markdown."""

from __future__ import annotations

import re
from collections import Counter

from ..render import Filters, Output
from ..rules.rulebook import Family, Rulebook, rule_errata
from ..rules.sentences import NORMATIVE
from ..spec.model import Spec
from .pages import cell, clause, homes, owner

_FOLDER = "docs/reference/rules"
_CHECKS = {
    "validator": "can be checked at run time",
    "compile": "checked when it is compiled",
    "test": "checked by tests",
    "static": "checked by reading the code",
    "not_checkable": "cannot be checked",
}
_GENERATED = {"validator": "checked by the generated checks of the dictionary"}


def outputs(spec: Spec, book: Rulebook) -> list[Output]:
    pages, found = [_index(book)], _homes(spec)
    dictionary = spec.cuda_array_interface.id
    for family in book.families:
        context = {
            "book": book,
            "family": family,
            "errata": {rule.id: rule_errata(spec, rule) for rule in family.rules},
            "homes": found,
            "sources": book.sources,
            "checks": _CHECKS | (_GENERATED if family.id == dictionary else {}),
        }
        path = f"{_FOLDER}/{family.id}.md"
        pages.append(Output(path, "rules/family.md", f"spec/rules/{family.id}.yaml", context))
    return [*pages, _errata(spec, book)]


def _errata(spec: Spec, book: Rulebook) -> Output:
    linked = {
        erratum.id: [
            (f"rules/{family.id}.md#{rule.id}", rule.id)
            for family in book.families
            for rule in family.rules
            if erratum.id in rule.errata
        ]
        for erratum in spec.errata
    }
    context = {"spec": spec, "homes": homes(spec), "rules": linked}
    return Output("docs/reference/errata.md", "errata.md", "spec/errata.yaml", context)


def _index(book: Rulebook) -> Output:
    context = {
        "book": book,
        "checks": _CHECKS,
        "counts": {family.id: _counts(family) for family in book.families},
        "words": NORMATIVE,
    }
    return Output(f"{_FOLDER}/README.md", "rules/index.md", "spec/", context)


def _counts(family: Family) -> Counter[str]:
    """How many rules have each severity, and each way to be checked."""
    return Counter(rule.severity for rule in family.rules) + Counter(r.check for r in family.rules)


def _homes(spec: Spec) -> dict[str, str]:
    """The page, and where there is one the heading, of what rules are about."""
    dictionary = spec.cuda_array_interface
    found = {dictionary.attribute: f"../{dictionary.id}.md#keys"}
    for interface in spec.interfaces:
        names = [interface.guard, *(constant.name for constant in interface.constants)]
        names += [function.name for function in interface.functions if function.name]
        found |= dict.fromkeys(names, f"../{interface.id}.md")
    return found | {name: f"../{home}" for name, home in homes(spec).items()}


def prose(text: str) -> str:
    """Text in which names with underscores are marked as code, so that they are not emphasis."""
    return re.sub(r"(?<![`\w.])[\w.]*_(?:[\w.]*\w)?", r"`\g<0>`", text)


FILTERS: Filters = {"cell": cell, "clause": clause, "owner": owner, "prose": prose}
