"""The comparisons of package fletching: one entry per row of the table.

Callgrind counts Go instructions like C instructions. Preemption by signals is disabled because
Callgrind does not survive it.
"""

from __future__ import annotations

from rows import BY_HAND, WITHOUT, Limit, Peer, Row, locked

_OURS = "Fletching, Go"
_FLOOR = "the floor: the calls and allocations that the job needs"
_TYPED = "Fletching, Go: arrowgo"
_ARROW = "arrow-go"
_RAW = "raw C"
_CHANNEL = "a channel, without the interface"
_GO = {"GODEBUG": "asyncpreemptoff=1"}

PEERS = (
    Peer(
        _FLOOR, "", "Hand-written cgo for one case. It checks nothing, returns no error.", BY_HAND
    ),
    Peer(
        _CHANNEL,
        "",
        "Stays in Go, while a batch of the interface crosses to or from C 4 times.",
        WITHOUT,
    ),
    Peer(
        _ARROW,
        locked("bindings/go/bench/go.mod", r"arrow-go/v18 v(\S+)"),
        "Its package `cdata` makes typed arrays. It has no device array.",
    ),
)


def _leaf(case: str, name: str, floor: Limit, arrow: float) -> Row:
    """`arrow`: the allowed multiple of its cost."""
    programs = {
        _OURS: ("fletching_bench_go", name),
        _FLOOR: ("fletching_bench_floor_go", name),
        _ARROW: ("fletching_bench_arrow_go", name),
    }
    limits = (floor, Limit(_ARROW, arrow))
    return Row(
        "Ownership",
        case,
        "instructions",
        programs,
        limits,
        (2000, 12000),
        tries=5,
        environment=_GO,
    )


ROWS = (
    # Runs on different machines measured 1.28 to 1.30.
    _leaf(
        "one leaf of C: import, close",
        "import",
        Limit(
            _FLOOR, 1.35, reason="a larger object with pointers, from a `sync.Pool`, and a check"
        ),
        0.25,
    ),
    # The floor, which pins, costs more than a fifth of arrow-go here.
    _leaf(
        "one leaf of Go: export, import, close",
        "export",
        Limit(
            _FLOOR,
            1.55,
            1.2,
            "1,250 instructions more: 300 for a third Go object, 500 for the handle and the pools, "
            "900 in this package; 450 less for calls of C, because the floor's release calls Go. "
            "Without handle and pools, which find leaks and stale numbers, it would be 1.3",
        ),
        0.36,
    ),
    Row(
        "DLPack",
        "one leaf of C: to DLPack and back, close",
        "instructions",
        {_OURS: ("fletching_bench_go", "tensor"), _FLOOR: ("fletching_bench_floor_go", "tensor")},
        (Limit(_FLOOR, 3, reason="checks both structs and the type"),),
        (2000, 12000),
        tries=5,
        environment=_GO,
    ),
    *(
        Row(
            "Ownership" if name == "import" else "Handoff of columns",
            case,
            "instructions",
            {
                _TYPED: ("fletching_bench_typed_go", name),
                _ARROW: ("fletching_bench_arrow_go", name),
            },
            (Limit(_ARROW, 0.9),),
            rounds,
            environment=_GO,
        )
        for case, name, rounds in (
            ("one leaf of C: import as an array of arrow-go", "import", (2000, 12000)),
            ("100 columns of C: import as arrays of arrow-go", "import_table", (20, 120)),
        )
    ),
    Row(
        "Ownership",
        "one leaf of C: import, close",
        "allocations",
        {
            _OURS: ("fletching_bench_go", "import", "100000"),
            _ARROW: ("fletching_bench_arrow_go", "import", "100000"),
        },
        at_most=1.01,  # allocations of the Go runtime during the rounds are counted too
    ),
    Row(
        "Handoff of columns",
        "handoff of 1,000 columns",
        "instructions",
        {
            _OURS: ("fletching_bench_go", "handoff"),
            _RAW: ("fletching_bench_raw", "handoff"),
            _ARROW: ("fletching_bench_arrow_go", "handoff"),
        },
        (
            Limit(
                _RAW,
                None,
                5,
                "of 400 instructions a column, 180 write the struct from its builder, 60 count the "
                "builders first, 40 release, 100 make the slice of builders and its memory",
            ),
            Limit(_ARROW, 0.06),
        ),
        (10, 60),
        environment=_GO,
    ),
    # arrow-go's own async stream is not included: it spins, and crashed in most runs.
    Row(
        "Async streams",
        "async stream, to another goroutine, window of 64, a batch",
        "nanoseconds",
        {
            _OURS: ("fletching_bench_async_go", "fletching", "20000"),
            _CHANNEL: ("fletching_bench_async_go", "channel", "20000"),
        },
        (Limit(_CHANNEL, reason="a batch crosses between Go and C four times"),),
        goal=1000,
        reason="a quarter in Go's scheduler, a fifth in this package, a seventh on calls of C",
        between_threads=True,
    ),
)
