"""The benchmarks of the C and C++ library: one entry per row of the table."""

from __future__ import annotations

from rows import Limit, Row

# The yardsticks, and the additional work of other implementations.
_BY_HAND = "raw C"
_UNWATCHED = "the same stream alone"
_RING = "hand-written, one thread on each side"  # limitations: see cpp/async_ring.hpp
_NANOARROW = "nanoarrow, typed arrays that can grow"
_LIBARROW = "libarrow, typed arrays and a schema"
_PEERS = {_NANOARROW: "nanoarrow", _LIBARROW: "libarrow"}


def _owners(case: str, name: str, at_most: float, *peers: str) -> Row:
    """`peers` have no limit because they do more."""
    others = {who: (f"fletching_bench_{_PEERS[who]}", name) for who in peers}
    return Row(
        case,
        "instructions",
        {
            "Fletching": ("fletching_bench_owners", name),
            _BY_HAND: ("fletching_bench_raw", name),
            **others,
        },
        (Limit(_BY_HAND, at_most),),
    )


def _async(case: str, mode: str, others: dict[str, float]) -> Row:
    """`others`: maps each program to the allowed multiple of its time."""
    names = {"Fletching": "fletching", _RING: "ring", "libarrow": "libarrow"}
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


def _locks(case: str, mode: str) -> Row:
    return Row(
        f"async stream, {case}, a batch",
        "locks",
        {"Fletching": ("fletching_bench_async_counts", f"fletching_{mode}", "20000")},
        at_most=2,
    )


_INLINE = "on one thread"
_HOP = "to another thread, window of 64"

ROWS = (
    _owners("move and release", "move_release", 1.1, _NANOARROW),
    _owners("one leaf: produce, move, release", "leaf", 1.2, _NANOARROW, _LIBARROW),
    _owners("handoff of 1,000 columns", "handoff", 1.2, _NANOARROW, _LIBARROW),
    # The hand-written code checks neither the structs nor the type; the library does.
    _owners("one leaf: to DLPack and back, release", "tensor", 3.6),
    Row(
        "stream of one batch of 1,000 columns, read",
        "instructions",
        {
            "the validation layer, protocol": ("fletching_bench_validated", "validated"),
            _UNWATCHED: ("fletching_bench_validated", "plain"),
        },
        (Limit(_UNWATCHED, 3),),
    ),
    _locks(_INLINE, "inline"),
    _locks(_HOP, "hop"),
    _async(_INLINE, "inline", {_RING: 2}),
    _async(_HOP, "hop", {_RING: 1.5, "libarrow": 0.2}),
    Row(
        "async stream, 200 ms without work: CPU time",
        "nanoseconds",
        {"Fletching": ("fletching_bench_idle", "200")},
        at_most=1e6,  # half a percent of one core
    ),
)
