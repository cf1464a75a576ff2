"""Selects a mutant of Python at run time. See fletching_mutant.h."""

from __future__ import annotations

import os

_CHOSEN = int(os.environ.get("FLETCHING_MUTANT", "-1"))
_SEEN = os.environ.get("FLETCHING_MUTANTS_SEEN", "")
_seen: set[int] = set()


def chosen(number: int) -> bool:
    if _SEEN and number not in _seen:
        _seen.add(number)
        with open(_SEEN, "ab", 0) as file:
            file.write(b"%d\n" % number)
    return number == _CHOSEN
