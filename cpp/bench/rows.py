"""The benchmarks of the C and C++ library: one entry per row of the table."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rows import BY_HAND, ROOT, Limit, Peer, Row, locked

_BY_HAND = "raw C"
_UNWATCHED = "the same stream without the layer"
_RING = "hand-written, one thread on each side"  # limitations: see cpp/async_ring.hpp
_CALLS = "hand-written driver calls"
_PROGRAMS = {
    "Fletching": "fletching_bench_owners",
    _BY_HAND: "fletching_bench_raw",
    "nanoarrow": "fletching_bench_nanoarrow",
    "libarrow": "fletching_bench_libarrow",
}

_ALL = ("nanoarrow", "libarrow")

PEERS = (
    Peer(
        _BY_HAND,
        "",
        "Hand-written C that implements the interface completely. The structs of a batch are one "
        "counted block, so that a child can be moved out. It checks no argument.",
        BY_HAND,
    ),
    Peer(
        _CALLS,
        "",
        "The same driver calls; `release_after` as a queue, which a thread queries when it adds.",
        BY_HAND,
    ),
    Peer(_RING, "", "Implements the async interface with a ring without locks.", BY_HAND),
    Peer(
        "nanoarrow",
        locked("tests/peers/nanoarrow/source/requirements.txt", r"^nanoarrow==(\S+)"),
        "An array has a type, its buffers can grow, and each child owns its buffers.",
    ),
    Peer(
        "libarrow",
        version("pyarrow"),
        "A batch is a tree of shared pointers to typed arrays, and has a schema. Each batch is "
        "checked.",
    ),
)


def _owners(
    topic: str,
    case: str,
    name: str,
    *limits: Limit,
    peers: tuple[str, ...] = (),
    size: int | None = None,
    rounds: tuple[int, int] = (100, 300),
) -> Row:
    """`peers` have no limit because they do more."""
    programs: dict[str, tuple[str, ...]] = {
        who: (_PROGRAMS[who], name) for who in ("Fletching", _BY_HAND, *peers)
    }
    return Row(topic, case, "instructions", programs, limits, rounds, size=size)


def _async(case: str, mode: str, *limits: Limit) -> Row:
    names = {"Fletching": "fletching", _RING: "ring", "libarrow": "libarrow"}
    others = {limit.other for limit in limits}
    return Row(
        "Async streams",
        f"async stream, {case}, a batch",
        "nanoseconds",
        {
            who: ("fletching_bench_async", f"{name}_{mode}", "20000")
            for who, name in names.items()
            if who == "Fletching" or who in others
        },
        limits,
        counter="fletching_bench_async_counts",
        between_threads=case == _HOP,
    )


# The count of locks has a limit. Times between threads have none: they vary with the machine.
_ONE_LOCK = "takes one lock for each batch; the ring takes none"


def _pairs(threads: int) -> Row:
    """CPU time of all threads; each stream has a thread on each side."""
    names = {"Fletching": "fletching_pairs", _RING: "ring_pairs"}
    return Row(
        "Async streams",
        "async streams, each between two threads, window of 64, a batch",
        "nanoseconds",
        {
            who: ("fletching_bench_async", name, "20000", str(threads))
            for who, name in names.items()
        },
        (Limit(_RING, reason=_ONE_LOCK),),
        repeats=7,
        between_threads=True,
        size=threads,
    )


def _locks(case: str, mode: str) -> Row:
    return Row(
        "Async streams",
        f"async stream, {case}, a batch",
        "locks",
        {"Fletching": ("fletching_bench_async_counts", f"fletching_{mode}", "20000")},
        at_most=2,
    )


def _compile(
    case: str, ours: str, nanoarrow: str = "", libarrow: str = "", at_most: float | None = None
) -> Row:
    """Headers for the same job, separated by spaces; `at_most` limits the ratio to nanoarrow."""
    headers = {"Fletching": ours, "nanoarrow": nanoarrow, "libarrow": libarrow}
    script = str(Path(__file__).with_name("compile.py"))
    reason = "the headers contain the implementation"
    return Row(
        "Compile time",
        case,
        "compile",
        {who: (sys.executable, script, *each.split()) for who, each in headers.items() if each},
        tuple(
            Limit(who, at_most if who == "nanoarrow" else None, reason=reason)
            for who in ("nanoarrow", "libarrow")
            if headers[who]
        ),
    )


def _validation(level: str, goal: float | None, reason: str) -> Row:
    return Row(
        "Validation",
        f"stream of 100 batches of 1,000 columns, read, level {level}",
        "instructions",
        {
            "the validation layer": ("fletching_bench_validated", level),
            _UNWATCHED: ("fletching_bench_validated", "plain"),
        },
        (Limit(_UNWATCHED, 3 if goal else None, goal, reason),),
        (1, 3),
    )


_VALIDATION = (
    _validation("protocol", 2, "records every struct, to find a late call"),
    _validation("shape", None, "also checks every member of every column"),
    _validation("data", None, "also reads the buffers"),
)

_HANDOFF = Limit(
    _BY_HAND,
    1.15,
    1.05,
    "51 instructions a column: 23 fill the struct (raw C: 19), of which 4 reject wrong requests, "
    "6 link the children in a separate loop (0), 12 release (16), 10 read (10). Without the loop "
    "it would be 1.00",
)
_CURVE_OF_COLUMNS = tuple(
    _owners(
        "Handoff of columns",
        "handoff of columns",
        "handoff",
        replace(_HANDOFF, at_most=None, goal=None),
        peers=_ALL,
        size=size,
        rounds=(1, 1 + max(1, 10_000 // size)),
    )
    for size in (1, 10, 100, 1_000, 10_000, 100_000)
)
_STREAM = Limit(_BY_HAND, reason="checks each batch, and moves it through an `optional<Result>`")
_CURVE_OF_BATCHES = tuple(
    _owners(
        "Streams",
        "stream of leaves, read",
        "stream",
        _STREAM,
        peers=_ALL,
        size=size,
        rounds=(1, 1 + max(1, 5_000 // size)),
    )
    for size in (1, 10, 100, 1_000, 10_000)
)
_MEMORY = tuple(
    Row(
        "Memory",
        case,
        "bytes",
        {who: (program, name, rounds) for who, program in _PROGRAMS.items()},
        (Limit(_BY_HAND, reason=reason), Limit("nanoarrow", goal=1)),
    )
    for case, name, rounds, reason in (
        (
            "one leaf, made",
            "hold_leaf",
            "900",
            "the block has a header of 40 bytes, which malloc rounds up",
        ),
        ("batch of 1,000 columns, made", "hold_batch", "100", "the block has a header"),
    )
)


def _libarrow() -> Path:
    """The library in pyarrow's package."""
    spec = find_spec("pyarrow")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("libarrow.so.*"))


# Only the rounds on the calling thread are counted.
_STANDIN = {
    "LD_LIBRARY_PATH": str(ROOT / "build/release/lib/standin"),
    "VALGRIND_OPTS": "--toggle-collect=*take_rounds*",
}


def _standin(case: str, name: str, limit: Limit, *, between_threads: bool = False) -> Row:
    """Both programs include the stand-in's cost for the same driver calls."""
    programs = {"Fletching": name, _CALLS: f"{name}_by_hand"}
    return Row(
        "Events",
        case,
        "instructions",
        {who: ("fletching_gpu_bench", each) for who, each in programs.items()},
        (limit,),
        tries=3,
        environment=_STANDIN,
        between_threads=between_threads,
    )


_INLINE = "on one thread"
_HOP = "to another thread, window of 64"

ROWS = (
    _owners(
        "Ownership",
        "move and release",
        "move_release",
        Limit(_BY_HAND, 1.1, reason="the destructor tests whether the array is released"),
        Limit("nanoarrow", reason="the destructor tests whether the array is released"),
        peers=("nanoarrow",),
    ),
    _owners(
        "Ownership",
        "one leaf: produce, move, release",
        "leaf",
        Limit(
            _BY_HAND,
            1.1,
            1.1,
            "16 instructions are in `operator new` and `operator delete`, around malloc and free",
        ),
        peers=_ALL,
    ),
    _owners(
        "Handoff of columns",
        "handoff of 1,000 columns",
        "handoff",
        _HANDOFF,
        peers=_ALL,
    ),
    *_CURVE_OF_COLUMNS,
    _owners(
        "Streams", "stream of 1,000 leaves, read", "stream", _STREAM, peers=_ALL, rounds=(2, 7)
    ),
    *_CURVE_OF_BATCHES,
    _owners(
        "DLPack",
        "one leaf: to DLPack and back, release",
        "tensor",
        Limit(_BY_HAND, 3.6, reason="checks both structs and the type; raw C checks neither"),
    ),
    _standin(
        "event on the CUDA stand-in: wait on a stream",
        "wait",
        Limit(_CALLS, 1.3, reason="checks the event and finds its runtime"),
    ),
    _standin(
        "array on the CUDA stand-in: `release_after`",
        "release_after",
        Limit(_CALLS, reason="another thread queries the event and releases the array"),
        between_threads=True,
    ),
    *_VALIDATION,
    *_MEMORY,
    Row(
        "Load time and size",
        "shared library: dlopen, dlclose",
        "instructions",
        {
            who: ("fletching_bench_load", str(library))
            for who, library in (
                ("Fletching", ROOT / "build/release/lib/libfletching.so"),
                ("libarrow", _libarrow()),
            )
        },
        rounds=(0, 1),
    ),
    _locks(_INLINE, "inline"),
    _locks(_HOP, "hop"),
    _async(
        _INLINE,
        "inline",
        Limit(
            _RING,
            2,
            1.5,
            "867 instructions; the ring, which allows one thread on each side, takes 247. Most "
            "keep the states of a stream that any thread may call. The lock takes a seventh of the "
            "time: without it the ratio would be 1.4",
        ),
    ),
    _async(_HOP, "hop", Limit(_RING, None, 1.5, _ONE_LOCK), Limit("libarrow", 0.2)),
    *(_pairs(threads) for threads in (1, 2, 4)),
    Row(
        "Async streams",
        "async stream, 200 ms without work: CPU time",
        "nanoseconds",
        {"Fletching": ("fletching_bench_idle", "200")},
        at_most=1e6,  # half a percent of one core
    ),
    _compile("`fletching/result.hpp` alone", "fletching/result.hpp"),
    _compile("`fletching/owner.hpp` alone", "fletching/owner.hpp"),
    _compile(
        "headers to make, export and import arrays and streams",
        "fletching/array_builder.hpp fletching/schema_builder.hpp fletching/stream_producer.hpp",
        "nanoarrow/nanoarrow.hpp",
        "arrow/c/bridge.h arrow/builder.h",
        at_most=3.1,
    ),
    _compile(
        "headers to import device arrays and wait for their events",
        "fletching/sync_event.hpp",
        "nanoarrow/nanoarrow_device.hpp",
        "arrow/c/bridge.h",
        at_most=2,
    ),
    _compile("headers to export DLPack tensors", "fletching/dlpack.hpp", "", "arrow/c/dlpack.h"),
    _compile(
        "headers of all interfaces",
        "fletching/fletching.hpp",
        "nanoarrow/nanoarrow_device.hpp",
        "arrow/c/bridge.h arrow/c/dlpack.h arrow/builder.h",
    ),
)
