"""Mutants that no test can kill, with the reason: equivalents.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ruamel.yaml import YAML

from mutant import Mutant

_KEYS = {"file", "function", "kind", "before", "after"}


class EquivalentsError(Exception):
    """An entry is invalid; the message names it and the reason."""


class Equivalents:
    def __init__(self, path: Path, mutants: Sequence[Mutant]) -> None:
        """`mutants` are all existing mutants; an entry for none of them is stale."""
        self._reasons: dict[str, str] = {}
        known = {mutant.key for mutant in mutants}
        problems = []
        for number, entry in enumerate(YAML(typ="safe").load(path)["equivalents"] or [], 1):
            where = f"{path.name}: entry {number}"
            if not set(entry) > _KEYS or set(entry) - _KEYS - {"reason", "nth"}:
                wanted = ", ".join((*sorted(_KEYS), "reason"))
                problems.append(f"{where}: keys: expected {wanted} and maybe nth")
                continue
            parts = (entry[key] for key in ("file", "function", "kind", "before", "after"))
            key = " | ".join((*map(str, parts), str(entry.get("nth", 1))))
            if key not in known:
                problems.append(f"{where}: no such mutant: expected one of --list, got {key}")
            self._reasons[key] = str(entry.get("reason", "")).strip()
            if not self._reasons[key]:
                problems.append(f"{where}: reason: expected a text, got none")
        if problems:
            raise EquivalentsError("\n".join(problems))

    def reason(self, mutant: Mutant) -> str | None:
        return self._reasons.get(mutant.key)

    def broken(self, killed: Sequence[Mutant]) -> Iterator[Mutant]:
        """Listed mutants that a test has killed, so they are not equivalent."""
        return (mutant for mutant in killed if mutant.key in self._reasons)
