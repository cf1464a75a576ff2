"""A row of the table: an element of ROWS in the file that `bench.rows` of a language.toml names.

A program for `instructions` is called with the case and the number of rounds. A program for
`nanoseconds` is called with only its arguments and prints a JSON line, {"ns": 498.1}; if it also
counts, the line has "allocations" and "locks", all per round. A program for `locks` prints all
three. A program for `allocations` or `bytes` counts the language's own memory, which callgrind
cannot see.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limit:
    """A maximum for the ratio of Fletching's value to another program's."""

    other: str  # name of another program in the row
    at_most: float


@dataclass(frozen=True)
class Row:
    case: str  # "one leaf"
    measure: str  # "instructions": counted by callgrind; others: printed by the program
    programs: dict[str, tuple[str, ...]]  # who -> program in the build's bin folder, arguments
    limits: tuple[Limit, ...] = ()
    rounds: tuple[int, int] = (100, 300)  # instructions: two runs, to exclude the startup
    tries: int = 1  # instructions: the minimum of this many, if a runtime's threads add to them
    at_most: float | None = None  # maximum of Fletching's value, in the row's measure
    repeats: int = 25  # nanoseconds: the median of this many runs, the programs interleaved
    environment: dict[str, str] = field(default_factory=dict)  # for every program
    counter: str = ""  # nanoseconds: slower program that counts allocations and locks, if any

    @property
    def ours(self) -> str:
        """The first program, which uses Fletching."""
        return next(iter(self.programs))
