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
    measure: str  # "instructions": callgrind counts them; "nanoseconds": the program measures them
    programs: dict[str, tuple[str, ...]]  # who -> program in the build's bin folder, arguments
    limits: tuple[Limit, ...] = ()
    rounds: tuple[int, int] = (100, 300)  # instructions: two runs, so that the start does not count
    at_most: float | None = None  # a bound on ours alone, in the row's measure
    repeats: int = 25  # nanoseconds: the median of so many runs, the programs taking turns
    counter: str = ""  # nanoseconds: the program that counts allocations and locks, if any; slower

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


def _async(case: str, mode: str, others: dict[str, float]) -> Row:
    """`others`: whose program, and how much of its time is allowed."""
    names = {"Fletching": "fletching", "by hand": "raw", "libarrow": "libarrow"}
    return Row(
        f"async stream, {case}, a batch",
        "nanoseconds",
        {
            who: ("fletching_bench_async", f"{name}_{mode}", "20000")
            for who, name in names.items()
            if who == "Fletching" or who in others
        },
        tuple(Limit(who, at_most) for who, at_most in others.items()),
        counter="fletching_bench_async_counts",
    )


# A program of `instructions` is called with the case and the number of rounds; one of `nanoseconds`
# with its arguments alone, and prints a line of JSON: {"ns": 498.1}, and one that counts also
# "allocations" and "locks", all of them for one round.
ROWS = {
    "cpp": (
        _owners("move and release", "move_release", 1.1),
        _owners("one leaf: produce, move, release", "leaf", 1.2),
        _owners("handoff of 1,000 columns", "handoff", 1.2),
        _async("on one thread", "inline", {"by hand": 1.5}),
        _async("to another thread, window of 64", "hop", {"by hand": 1.5, "libarrow": 0.2}),
        Row(
            "async stream, 200 ms without work: CPU time",
            "nanoseconds",
            {"Fletching": ("fletching_bench_idle", "200")},
            at_most=1e6,  # half a percent of one core
        ),
    ),
}
