"""An entry of the table: ROWS of the file that `bench.rows` of a language.toml names.

A program of `instructions` is called with the case and the number of rounds; one of `nanoseconds`
with its arguments alone, and prints a line of JSON: {"ns": 498.1}, and one that counts also
"allocations" and "locks", all of them for one round; a program of `locks` prints all three. One of
`allocations` or `bytes` prints those of the language's own memory, which callgrind does not see.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limit:
    """A bound on ours / other."""

    other: str  # the name of another program of the row
    at_most: float


@dataclass(frozen=True)
class Row:
    case: str  # "one leaf"
    measure: str  # "instructions": callgrind counts them; the others: the program prints them
    programs: dict[str, tuple[str, ...]]  # who -> program in the build's bin folder, arguments
    limits: tuple[Limit, ...] = ()
    rounds: tuple[int, int] = (100, 300)  # instructions: two runs, so that the start does not count
    tries: int = 1  # instructions: the least of so many, where a runtime's threads add to them
    at_most: float | None = None  # a bound on ours alone, in the row's measure
    repeats: int = 25  # nanoseconds: the median of so many runs, the programs interleaved
    environment: dict[str, str] = field(default_factory=dict)  # of every program
    counter: str = ""  # nanoseconds: the program that counts allocations and locks, if any; slower

    @property
    def ours(self) -> str:
        """Ours comes first."""
        return next(iter(self.programs))
