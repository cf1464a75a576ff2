"""The rows of the benchmark table: the crate `fletching` and the programs it is compared with."""

from __future__ import annotations

from rows import Limit, Row

_RAW = "raw C"
_PAIR = "hand-written, a queue with a mutex"
_ARROW = "arrow-rs, typed arrays and a schema"


def _owners(case: str, name: str, at_most: float, arrow: float) -> Row:
    """Makes a row. `arrow` is the maximum cost as a fraction of arrow-rs' cost."""
    programs = {
        "Fletching, Rust": ("fletching_bench_rust", name),
        _RAW: ("fletching_bench_raw", name),
        _ARROW: ("fletching_bench_arrow_rs", name),
    }
    return Row(case, "instructions", programs, (Limit(_RAW, at_most), Limit(_ARROW, arrow)))


ROWS = (
    _owners("move and release", "move_release", 1.1, 1),
    # Raw C itself costs a tenth of arrow-rs' leaf, so Fletching cannot cost much less.
    _owners("one leaf: produce, move, release", "leaf", 1.2, 0.12),
    _owners("handoff of 1,000 columns", "handoff", 1.2, 0.02),
    Row(
        "one leaf: to DLPack and back, release",
        "instructions",
        {
            "Fletching, Rust": ("fletching_bench_rust", "tensor"),
            _RAW: ("fletching_bench_raw", "tensor"),
        },
        (Limit(_RAW, 3.6),),
    ),
    Row(
        "async stream, to another thread, window of 64, a batch",
        "nanoseconds",
        {
            "Fletching, Rust": ("fletching_bench_async_rust", "fletching", "100000"),
            _PAIR: ("fletching_bench_async_rust", "pair", "100000"),
        },
        (Limit(_PAIR, 1.5),),
    ),
)
