"""The text and the page of each rule that a finding can name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..rules.rulebook import Rule, Rulebook, load_rulebook
from ..spec.load import load_spec
from .findings import CHECKS

_PAGES = "https://github.com/fletching/fletching/blob/main"
_CHECKS_PAGE = f"{_PAGES}/generator/README.md#findings-without-a-rule"


@cache
def _load(root: Path) -> Rulebook:
    return load_rulebook(root, load_spec(root))


@dataclass(frozen=True)
class Rules:
    root: Path

    @property
    def book(self) -> Rulebook:
        """Read when it is first needed, because it takes seconds."""
        return _load(self.root)

    def find(self, rule: str) -> tuple[str, Rule] | None:
        """Returns the family and the rule, or None if no published rule has the id."""
        for family in self.book.families:
            for each in family.rules:
                if each.id == rule:
                    return family.id, each
        return None

    def is_known(self, rule: str) -> bool:
        return rule in CHECKS or self.find(rule) is not None

    def text(self, rule: str) -> str:
        found = self.find(rule)
        return found[1].text if found else CHECKS.get(rule, "A limit of the checks.")

    def link(self, rule: str) -> str:
        found = self.find(rule)
        return f"{_PAGES}/docs/reference/rules/{found[0]}.md#{rule}" if found else _CHECKS_PAGE
