"""Lists the skipped tests of CTest and pytest: one line for each test program and reason.

suite.py prints the list at its end. A program that also ran other cases counts as passed for CTest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MAX_REASON = 200  # characters

_TEST = re.compile(r"^\d+/\d+ Testing: (.+)$", re.MULTILINE)
# GoogleTest's output for a case, and for all cases together.
_CASE = re.compile(
    r": Skipped\n(?P<why>(?:(?!\[ ).*\n)*?)\[  SKIPPED \] \S+ \(\d+ ms\)$", re.MULTILINE
)
_TOTAL = re.compile(r"^\[  SKIPPED \] (\d+) tests?[,.]", re.MULTILINE)
_OWN = re.compile(r"^skipped\b[^:\n]*: (?P<why>.+)$", re.MULTILINE)  # a C program of the tests
_PYTEST = re.compile(r"^SKIPPED \[\d+\] .+$", re.MULTILINE)


def in_log(log: str) -> Iterator[str]:
    r"""Reads the text of Testing/Temporary/LastTest.log.

    >>> case = "a.cpp:1: Skipped\nno driver\n\n[  SKIPPED ] A.b (0 ms)\n"
    >>> total = "[  PASSED  ] 1 test.\n[  SKIPPED ] 2 tests, listed below:\n"
    >>> list(in_log("1/2 Testing: gpu\n" + case + case + total))
    ['gpu: 2 cases: no driver']
    >>> list(in_log("1/2 Testing: gpu\n" + case + total))
    ['gpu: 1 case: no driver', 'gpu: 1 case: no reason printed']
    >>> list(in_log("1/2 Testing: c\nskipped in part: no device\n2/2 Testing: d\n[  PASSED  ]"))
    ['c: in part or whole: no device']
    >>> list(in_log("1/1 Testing: a: pytest\n..s\nSKIPPED [1] test_a.py:3: no driver\n1 skipped"))
    ['a: pytest: SKIPPED [1] test_a.py:3: no driver']
    >>> list(in_log("1/2 Testing: absent_gpu\n" + case + total))  # expects others to skip
    []
    """
    _, *parts = _TEST.split(log)
    for name, output in zip(parts[::2], parts[1::2], strict=True):
        if name.startswith("absent_"):
            continue
        reasons = Counter(_short(match["why"]) for match in _CASE.finditer(output))
        unexplained = sum(int(n) for n in _TOTAL.findall(output)) - reasons.total()
        if unexplained > 0:
            reasons["no reason printed"] += unexplained
        for why, count in reasons.items():
            yield f"{name}: {count} case{'s' if count > 1 else ''}: {why}"
        for match in _OWN.finditer(output):
            yield f"{name}: in part or whole: {_short(match['why'])}"
        for line in _PYTEST.findall(output):
            yield f"{name}: {_short(line)}"


def _short(text: str) -> str:
    text = " ".join(text.split()) or "no reason given"
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 3] + "..."


def in_file(log: Path) -> list[str]:
    """The same for a LastTest.log, which may be missing."""
    return list(in_log(log.read_text(encoding="utf-8", errors="replace"))) if log.exists() else []
