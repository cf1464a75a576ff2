"""Compares the cells that arrived with the expected ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from cells import NOT_SUPPORTED, Cell, Key

# One letter per verdict, with its meaning.
LEGEND = {
    ".": "right",
    "s": "right, on a stand-in",
    "-": "the peer cannot, and says so",
    "n": "not here: another vendor's GPU is",
    "_": "not yet",
    "x": "not supported",
    "F": "failed",
    "A": "absent",
    "M": "missing",
    "D": "reported twice",
    "0": "compared nothing",
    "R": "released nothing",
    "U": "unexpected",
}
PASSED = ".s-"
ABSENT = "n_"  # neither failed nor passed
UNSUPPORTED = "x"  # neither failed nor passed
WORST_FIRST = "FDU0RMA_nx-s."


@dataclass(frozen=True)
class Verdict:
    cell: Cell  # as in the report: ok only if the verdict is right
    letter: str  # a key of LEGEND

    @property
    def passed(self) -> bool:
        return self.letter in PASSED

    @property
    def failed(self) -> bool:
        return self.letter not in PASSED + ABSENT + UNSUPPORTED


def judge(
    arrived: Iterable[Cell],
    expected: Iterable[Key],
    why_missing: Callable[[Key], str],
    limits: Collection[Key] = (),
    excused: Collection[Key] = (),
) -> list[Verdict]:
    """One verdict per cell: the expected ones in their order, then the others.

    `limits`: cells that are absent because of a peer's limits. `excused`: cells that may be absent
    or not supported, with a reason.
    """
    found: dict[Key, Cell] = {}
    times: Counter[Key] = Counter()
    for cell in arrived:
        found.setdefault(cell.key, cell)
        times[cell.key] += 1
    keys = list(expected)
    verdicts = [
        _judge_one(found[key], times[key], key in limits, key in excused)
        if key in found
        else _missing(key, why_missing(key))
        for key in keys
    ]
    unexpected = [cell for key, cell in found.items() if key not in set(keys)]
    return verdicts + [_wrong("U", cell, "unexpected cell") for cell in unexpected]


def absent(key: Key, reason: str, letter: str = "A") -> Verdict:
    return Verdict(Cell(key, "absent", reason, 0, 0, ok=False), letter)


def _missing(key: Key, reason: str) -> Verdict:
    return Verdict(Cell(key, "absent", f"did not arrive: {reason}", 0, 0, ok=False), "M")


def _judge_one(cell: Cell, times: int, is_limit: bool, is_excused: bool) -> Verdict:
    if times > 1:
        return _wrong("D", cell, f"reported {times} times")
    if cell.status in {"absent", NOT_SUPPORTED}:
        return _judge_absent(cell, is_limit, is_excused)
    if not cell.ok:
        return _wrong("F", cell, "failed without a reason" if not cell.reason else "")
    if cell.asserted == 0:
        return _wrong("0", cell, "asserted nothing")
    if cell.key.case and cell.releases == 0 and not cell.key.is_corpus:
        return _wrong("R", cell, "no release callback of the language ran")
    return Verdict(cell, "s" if cell.status == "stand-in" else ".")


def _judge_absent(cell: Cell, is_limit: bool, is_excused: bool) -> Verdict:
    if is_limit and cell.ok and cell.reason and cell.asserted:
        return Verdict(cell, "-")
    if is_excused and cell.reason:
        return Verdict(cell, "x" if cell.status == NOT_SUPPORTED else "n")
    return _wrong("A", cell, f"{cell.status} without a reason" if not cell.reason else "")


def _wrong(letter: str, cell: Cell, reason: str) -> Verdict:
    text = "; ".join(part for part in (reason, cell.reason) if part)
    return Verdict(replace(cell, ok=False, reason=text), letter)
