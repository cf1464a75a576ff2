"""A row of the tables: an element of ROWS in the file that `bench.rows` of a language.toml names.

A program for `instructions` is called with the case and the number of rounds, and with the size if
the row has one. A program for `nanoseconds` is called with only its arguments and prints a JSON
line, {"ns": 498.1}; if it also counts, the line has "allocations" and "locks", all per round. The
programs for the other measures print a line with the measure as its key: `locks` with "allocations"
beside it, `allocations` and `bytes` of memory that callgrind cannot see, `compile` with the
compiler's instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Kinds of peers.
LIBRARY = "other libraries"
BY_HAND = "hand-written code"
WITHOUT = "code without the interface"


@dataclass(frozen=True)
class Limit:
    """A maximum for the ratio of Fletching's value to another program's."""

    other: str  # name of another program in the row
    at_most: float | None = None
    goal: float | None = None  # what the ratio should become
    reason: str = ""  # why Fletching costs more, if it does


@dataclass(frozen=True)
class Peer:
    """A program that Fletching is compared with."""

    name: str  # as in `Row.programs`
    version: str  # of a library
    more: str  # what it does beyond Fletching, or leaves out
    kind: str = LIBRARY  # WITHOUT does another job: the least that the case can cost


@dataclass(frozen=True)
class Row:
    topic: str  # the table of the page: "Ownership"
    case: str  # "one leaf"
    measure: str  # "instructions": counted by callgrind; others: printed by the program
    programs: dict[str, tuple[str, ...]]  # who -> program in the build's bin folder, arguments
    limits: tuple[Limit, ...] = ()
    rounds: tuple[int, int] = (100, 300)  # instructions: two runs, to exclude the startup
    tries: int = 1  # instructions: the minimum of this many, if a runtime's threads add to them
    at_most: float | None = None  # maximum of Fletching's value, in the row's measure
    goal: float | None = None  # what Fletching's value should become
    reason: str = ""  # why it is above the goal
    repeats: int = 25  # nanoseconds: the median of this many runs, the programs interleaved
    environment: dict[str, str] = field(default_factory=dict)  # for every program
    counter: str = ""  # nanoseconds: slower program that counts allocations and locks, if any
    size: int | None = None  # the columns or batches of this point of a curve; only with --curves
    between_threads: bool = False  # the value varies with the load of the machine

    @property
    def ours(self) -> str:
        """The first program, which uses Fletching."""
        return next(iter(self.programs))


@dataclass(frozen=True)
class Cell:
    """The result of one program in a row."""

    language: str
    topic: str
    case: str
    size: int | None
    measure: str
    who: str
    value: float  # per round; the median of the runs
    allocations: float | None  # per round; None if not counted
    locks: float | None
    # Fletching's value / this one: minimum, median and maximum of the runs. None for Fletching.
    ratio: tuple[float, float, float] | None
    limit: float | None  # maximum of the ratio; for Fletching, of the value
    goal: float | None
    reason: str
    ok: bool
    between_threads: bool

    @property
    def in_summary(self) -> bool:
        """Whether this compares Fletching with other code, reliably and not on a curve."""
        return not (self.size or self.between_threads or self.who.startswith("the same"))


def locked(file: str, pattern: str) -> str:
    """Returns group 1 of the pattern in a file of the repository. Raises ValueError."""
    match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise ValueError(f"{file}: no version: expected {pattern}")
    return match[1]
