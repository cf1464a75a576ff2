"""What the C and C++ library is measured against: one entry per row of the table."""

from __future__ import annotations

from rows import Limit, Row


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


ROWS = (
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
)
