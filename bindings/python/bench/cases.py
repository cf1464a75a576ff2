"""The comparisons for the package fletching: one entry per row of the table.

Every case has a row of times, which has the limits, and a row of instruction counts, whose limits
`make test-all` checks without depending on a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

from rows import WITHOUT, Limit, Peer, Row

_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = (str(_ROOT / ".venv" / "bin" / "python"), str(_ROOT / "bindings/python/bench/rounds.py"))
_OURS = "Fletching, Python"
_PYARROW = "pyarrow"
_NUMPY = "NumPy"
_NANOARROW = "nanoarrow"
_ARRO3 = "arro3"
_LIBRARIES = {_OURS: "fletching", _PYARROW: "pyarrow", _NANOARROW: "nanoarrow", _ARRO3: "arro3"}
_REPEATS = 7
_QUEUE = "asyncio.Queue, without the interface"
# Single-threaded, with a fixed order of hash tables.
_ENVIRONMENT = {
    "PYTHONPATH": str(_ROOT / "build/release/python/package"),
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
}

PEERS = (
    Peer(_PYARROW, version("pyarrow"), "Makes typed arrays of libarrow, and checks each batch."),
    Peer(
        _NANOARROW, version("nanoarrow"), "Its `c_array` takes the struct and makes no typed array."
    ),
    Peer(_ARRO3, version("arro3-core"), "Makes typed arrays of arrow-rs."),
    Peer(_NUMPY, version("numpy"), "Takes its own array, which needs no conversion."),
    Peer(_QUEUE, "", "Stays in Python, and passes no struct.", WITHOUT),
)


def _rows(
    topic: str,
    case: str,
    ours: str,
    *,
    other: tuple[str, str],
    rounds: int,
    limits: tuple[float, float],
    goal: float | None = None,
    spent: str = "",
    reason: str = "",
) -> tuple[Row, Row]:
    """`other`: name and case of the peer; `limits`: ours / other, in time and instructions."""
    who, theirs = other
    programs: dict[str, tuple[str, ...]] = {_OURS: (*_PROGRAM, ours), who: (*_PROGRAM, theirs)}
    timed: dict[str, tuple[str, ...]] = {
        name: (*program, str(rounds)) for name, program in programs.items()
    }
    in_time, in_instructions = ((Limit(who, limit, reason=reason),) for limit in limits)
    few = rounds // 100
    return (
        Row(
            topic,
            case,
            "nanoseconds",
            timed,
            in_time,
            goal=goal,
            reason=spent,
            repeats=_REPEATS,
            environment=_ENVIRONMENT,
        ),
        Row(
            topic,
            case,
            "instructions",
            programs,
            in_instructions,
            (few, 6 * few),
            environment=_ENVIRONMENT,
        ),
    )


def _peers(
    topic: str,
    case: str,
    name: str,
    others: tuple[str, ...],
    *limits: Limit,
    rounds: int = 20000,
    size: int | None = None,
) -> Row:
    """A row of times beside several libraries, whose programs are LIBRARY.name."""
    last = (str(rounds),) if size is None else (str(rounds), str(size))
    return Row(
        topic,
        case,
        "nanoseconds",
        {who: (*_PROGRAM, f"{_LIBRARIES[who]}.{name}", *last) for who in (_OURS, *others)},
        limits,
        repeats=_REPEATS,
        environment=_ENVIRONMENT,
        size=size,
    )


def _facts(
    topic: str, case: str, measure: str, arguments: Callable[[str], tuple[str, ...]], *limits: Limit
) -> Row:
    """A row of another measure beside all libraries."""
    return Row(
        topic,
        case,
        measure,
        {who: (*_PROGRAM, *arguments(name)) for who, name in _LIBRARIES.items()},
        limits,
        repeats=_REPEATS,
        environment=_ENVIRONMENT | {"PYTHONMALLOC": "malloc"},
    )


def _memory(kind: str, rounds: str, name: str) -> tuple[str, ...]:
    return ("memory", f"{name}.{kind}", rounds)


_BY_DLPACK = "makes a tensor and its capsule, from which NumPy makes the array"
_BY_TENSOR = (
    "a third on the schema, the array and their checks, an eighth on allocations, the rest in "
    "Python and NumPy, whose two methods alone cost 0.6"
)
_MODULES = {"fletching": "fletching._core", "arro3": "arro3.core"}

ROWS = (
    *_rows(
        "Capsules",
        "`__arrow_c_device_array__`",
        "fletching.export",
        other=(_PYARROW, "pyarrow.export"),
        rounds=20000,
        limits=(0.6, 0.65),
        goal=150,
        spent="a quarter on four allocations, a third on the two structs and their counters",
    ),
    *_rows(
        "Capsules",
        "round trip of two capsules",
        "fletching.trip",
        other=(_PYARROW, "pyarrow.trip"),
        rounds=20000,
        limits=(0.4, 0.55),
    ),
    *_rows(
        "DLPack",
        "`numpy.from_dlpack`",
        "fletching.tensor",
        other=(_NUMPY, "numpy.tensor"),
        rounds=20000,
        limits=(1.15, 1.05),
        reason="the capsule's tensor is made from a device array",
    ),
    *_rows(
        "Handoff of columns",
        "handoff of 1,000 columns",
        "fletching.handoff",
        other=(_PYARROW, "pyarrow.handoff"),
        rounds=500,
        limits=(0.1, 0.1),
    ),
    _peers(
        "Capsules",
        "import of a leaf of pyarrow",
        "leaf",
        (_PYARROW, _NANOARROW, _ARRO3),
        Limit(_NANOARROW, None, 1),
    ),
    _peers(
        "Capsules",
        "`to_numpy` of a leaf",
        "to_numpy",
        (_PYARROW, _ARRO3),
        Limit(_PYARROW, 1.1, 1, _BY_DLPACK),
        Limit(_ARRO3, reason=_BY_DLPACK),
    ),
    Row(
        "DLPack",
        "`from_dlpack` of an array of NumPy",
        "nanoseconds",
        {
            _OURS: (*_PROGRAM, "fletching.from_dlpack", "20000"),
            _NUMPY: (*_PROGRAM, "numpy.tensor", "20000"),
        },
        (Limit(_NUMPY, 3.5, 2, _BY_TENSOR),),
        repeats=_REPEATS,
        environment=_ENVIRONMENT,
    ),
    *(
        _peers(
            "Handoff of columns",
            "handoff of columns",
            "handoff",
            (_PYARROW, _ARRO3),
            rounds=max(3, 100_000 // size),
            size=size,
        )
        for size in (1, 10, 100, 1_000, 10_000, 100_000)
    ),
    *(
        _facts(
            "Memory",
            f"{case}, imported from pyarrow",
            "bytes",
            partial(_memory, kind, rounds),
            Limit(_NANOARROW, goal=1),
        )
        for case, kind, rounds in (
            ("one leaf", "leaf", "1000"),
            ("batch of 1,000 columns", "batch", "20"),
        )
    ),
    _facts(
        "Load time and size",
        "import of the package",
        "nanoseconds",
        lambda name: ("load", _MODULES.get(name, name)),
        Limit(_ARRO3, reason="both load one extension module; the ratio is within the spread"),
    ),
    _facts(
        "Load time and size",
        "installed package",
        "bytes",
        lambda name: ("size", _MODULES.get(name, name)),
    ),
    # Both stay on the event loop's thread.
    Row(
        "Async streams",
        "async stream in an event loop, window of 64, a batch",
        "nanoseconds",
        {
            _OURS: (*_PROGRAM, "fletching.stream", "2000"),
            _QUEUE: (*_PROGRAM, "queue.stream", "2000"),
        },
        (Limit(_QUEUE, 2.6, reason="each batch wakes the event loop through a handler"),),
        repeats=_REPEATS,
        environment=_ENVIRONMENT,
    ),
)
