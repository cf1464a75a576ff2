"""What is measured against what: one entry per row of the table. Plain data for bench.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """A bound on ours / other."""

    other: str  # the name of another program of the row
    at_most: float


@dataclass(frozen=True)
class Row:
    case: str  # "one leaf"
    measure: str  # "instructions": callgrind counts; "nanoseconds": the program prints the number
    programs: dict[str, tuple[str, ...]]  # who -> program in the build's bin folder, arguments
    limits: tuple[Limit, ...] = ()
    rounds: tuple[int, int] = (100, 300)  # instructions: two runs, so that the start does not count
    repeats: int = 7  # nanoseconds: the median of so many runs, the programs taking turns

    @property
    def ours(self) -> str:
        """Ours comes first."""
        return next(iter(self.programs))


def _owners(case: str, name: str, at_most: float) -> Row:
    return Row(
        case,
        "instructions",
        {
            "Fletching": ("fletching_bench_owners", name),
            "raw C": ("fletching_bench_raw", name),
        },
        (Limit("raw C", at_most),),
    )


# A program of `instructions` is called with the case and the number of rounds; one of `nanoseconds`
# with its arguments alone, and prints one number.
ROWS = {
    "cpp": (
        _owners("move and release", "move_release", 1.1),
        _owners("one leaf: produce, move, release", "leaf", 1.2),
        _owners("handoff of 1,000 columns", "handoff", 1.2),
    ),
}
