"""The rows of the benchmark table: the crate `fletching` and the programs it is compared with."""

from __future__ import annotations

from rows import WITHOUT, Limit, Peer, Row, locked

_OURS = "Fletching, Rust"
_RAW = "raw C"
_PAIR = "a queue with a mutex, without the interface"
_ARROW = "arrow-rs"
_DLPARK = "fletching_bench_dlpark"

PEERS = (
    Peer(_PAIR, "", "Rust code without the structs of the async interface.", WITHOUT),
    Peer(
        "dlpark",
        locked("bindings/rust/dlpark/Cargo.toml", r'^dlpark = .*"=([\d.]+)"'),
        "Has no Arrow arrays. It checks the tensor when it is viewed.",
    ),
    Peer(
        _ARROW,
        locked("bindings/rust/Cargo.lock", r'"fletching-bench"\n[^\]]*"arrow-array ([\d.]+)"'),
        "An array has a type and shared buffers, a batch has a schema. It has no device array.",
    ),
)


_BY_OWNER = "allocates the owner and the tensor separately, and supports negative strides"


def _owners(topic: str, case: str, name: str, limit: Limit, arrow: float) -> Row:
    """`arrow` is the maximum cost as a fraction of arrow-rs' cost."""
    programs = {
        _OURS: ("fletching_bench_rust", name),
        _RAW: ("fletching_bench_raw", name),
        _ARROW: ("fletching_bench_arrow_rs", name),
    }
    return Row(topic, case, "instructions", programs, (limit, Limit(_ARROW, arrow)))


ROWS = (
    _owners(
        "Ownership",
        "move and release",
        "move_release",
        Limit(_RAW, 1.1, reason="the destructor tests whether the array is released"),
        1,
    ),
    # Raw C itself costs a tenth of arrow-rs' leaf, so Fletching cannot cost much less.
    _owners(
        "Ownership",
        "one leaf: produce, move, release",
        "leaf",
        Limit(
            _RAW,
            1.17,
            1.1,
            "38 instructions more: 18 for a second call in `release`, without which it would be "
            "1.09, 9 in Rust's `alloc` around malloc, the rest in the builder",
        ),
        0.12,
    ),
    _owners(
        "Handoff of columns",
        "handoff of 1,000 columns",
        "handoff",
        Limit(
            _RAW,
            1.13,
            1.05,
            "50 instructions a column: 27 fill and link the struct (raw C: 19) and reject wrong "
            "requests, 13 release (16), 10 read (10)",
        ),
        0.02,
    ),
    Row(
        "DLPack",
        "one leaf: to DLPack and back, release",
        "instructions",
        {_OURS: ("fletching_bench_rust", "tensor"), _RAW: ("fletching_bench_raw", "tensor")},
        (Limit(_RAW, 3.6, reason="checks both structs and the type; raw C checks neither"),),
    ),
    Row(
        "DLPack",
        "a tensor of a `Vec`: make, view with `ndarray`, delete",
        "instructions",
        {_OURS: (_DLPARK, "fletching"), "dlpark": (_DLPARK, "dlpark")},
        (Limit("dlpark", 1.6, reason=_BY_OWNER),),
    ),
    Row(
        "Async streams",
        "async stream, to another thread, window of 64, a batch",
        "nanoseconds",
        {
            _OURS: ("fletching_bench_async_rust", "fletching", "100000"),
            _PAIR: ("fletching_bench_async_rust", "pair", "100000"),
        },
        (Limit(_PAIR, None, 1.5, "a batch passes the callbacks of the interface"),),
        between_threads=True,
    ),
)
