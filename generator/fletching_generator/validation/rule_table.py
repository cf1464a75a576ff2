"""cpp/src/validate/rules.hpp: the rules that can be checked at run time, as an enum and a table."""

from __future__ import annotations

from ..render import Filters, Output
from ..rules.rulebook import Rulebook
from ..spec.model import Spec


def outputs(_: Spec, book: Rulebook) -> list[Output]:
    rules = [
        {
            "name": rule.id.replace("-", "_").replace(".", "_"),
            "id": rule.id,
            "severity": rule.severity,
            "party": rule.party,
            "family": family.id,
        }
        for family in book.families
        for rule in family.rules
        if rule.check == "validator"
    ]
    return [Output("cpp/src/validate/rules.hpp", "rules.hpp", "spec/rules/", {"rules": rules})]


FILTERS: Filters = {}
