"""The pages of the rules under docs/reference/rules/, as Markdown."""

from __future__ import annotations

import re
from collections import Counter

from ..render import Filters, Output
from ..rules.rulebook import Family, Rulebook, rule_errata
from ..spec.model import Spec
from .pages import cell, clause, homes, owner
from .prose import prose

_FOLDER = "docs/reference/rules"
_LAYER = "checked at run time by the [validation layer](../../c.md#validate-a-stream)"
_CHECKS = {
    "compile": "checked at compile time",
    "test": "checked by tests (`make rule-cases` lists them)",
    "static": "checked by code review",
    "not_checkable": "cannot be checked",
}
# The checkers of families that the layer does not cover.
_CHECKERS = {
    "cuda-array-interface": "checked at run time by each import of a dictionary",
    "pycapsule": "checked at run time by the Python package",
}
_COLUMNS = {
    "validator": "run time",
    "compile": "compile time",
    "test": "tests",
    "static": "review",
    "not_checkable": "not checkable",
}


def outputs(spec: Spec, book: Rulebook) -> list[Output]:
    pages, found = [_index(book)], _homes(spec)
    for family in book.families:
        context = {
            "book": book,
            "family": family,
            "errata": {rule.id: rule_errata(spec, rule) for rule in family.rules},
            "homes": found,
            "sources": book.sources,
            "checks": _CHECKS | {"validator": _CHECKERS.get(family.id, _LAYER)},
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
        "checks": _COLUMNS,
        "counts": {family.id: _counts(family) for family in book.families},
    }
    return Output(f"{_FOLDER}/README.md", "rules/index.md", "spec/", context)


def _counts(family: Family) -> Counter[str]:
    """How many rules have each severity, and each way to be checked."""
    return Counter(rule.severity for rule in family.rules) + Counter(r.check for r in family.rules)


def _homes(spec: Spec) -> dict[str, str]:
    """The page and the heading of each name that a rule can be about."""
    found: dict[str, str] = {}
    for interface in spec.interfaces:
        page = f"../{interface.id}.md"
        names = [constant.name for constant in interface.constants]
        found |= dict.fromkeys(names, f"{page}#constants")
        names = [interface.guard, *(f.name for f in interface.functions if f.name)]
        found |= dict.fromkeys(names, page)
    return found | {name: f"../{home}" for name, home in homes(spec).items()}


def anchor(heading: str) -> str:
    """Returns the link target that Markdown derives from a heading."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


FILTERS: Filters = {
    "anchor": anchor,
    "cell": cell,
    "clause": clause,
    "owner": owner,
    "prose": prose,
}
