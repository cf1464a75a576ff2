"""The comparisons for the package fletching: one entry per row of the table.

Every case has a row of times, which has the limits, and a row of instruction counts, whose limits
`make test-all` checks without depending on a clock.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from rows import Limit, Row

_ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = (str(_ROOT / ".venv" / "bin" / "python"), str(_ROOT / "bindings/python/bench/rounds.py"))
_OURS = "Fletching, Python"
_PYARROW = f"pyarrow {version('pyarrow')}"
_NUMPY = f"NumPy {version('numpy')}, of its own array"
_QUEUE = "asyncio.Queue, without the interface"
# Single-threaded, with a fixed order of hash tables.
_ENVIRONMENT = {
    "PYTHONPATH": str(_ROOT / "build/release/python/package"),
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
}


def _rows(
    case: str, ours: str, other: tuple[str, str], rounds: int, limits: tuple[float, float]
) -> tuple[Row, Row]:
    """`other`: name and case of the peer; `limits`: ours / other, in time and instructions."""
    who, theirs = other
    programs: dict[str, tuple[str, ...]] = {_OURS: (*_PROGRAM, ours), who: (*_PROGRAM, theirs)}
    timed: dict[str, tuple[str, ...]] = {
        name: (*program, str(rounds)) for name, program in programs.items()
    }
    in_time, in_instructions = ((Limit(who, limit),) for limit in limits)
    few = rounds // 100
    return (
        Row(case, "nanoseconds", timed, in_time, repeats=15, environment=_ENVIRONMENT),
        Row(
            case,
            "instructions",
            programs,
            in_instructions,
            (few, 6 * few),
            environment=_ENVIRONMENT,
        ),
    )


ROWS = (
    *_rows(
        "`__arrow_c_device_array__`",
        "fletching.export",
        (_PYARROW, "pyarrow.export"),
        20000,
        (0.6, 0.65),
    ),
    *_rows(
        "round trip of two capsules",
        "fletching.trip",
        (_PYARROW, "pyarrow.trip"),
        20000,
        (0.4, 0.55),
    ),
    *_rows(
        "`numpy.from_dlpack`",
        "fletching.tensor",
        (_NUMPY, "numpy.tensor"),
        20000,
        (1.15, 1.05),
    ),
    *_rows(
        "handoff of 1,000 columns",
        "fletching.handoff",
        (_PYARROW, "pyarrow.handoff"),
        500,
        (0.1, 0.1),
    ),
    # Both stay on the event loop's thread.
    Row(
        "async stream in an event loop, window of 64, a batch",
        "nanoseconds",
        {
            _OURS: (*_PROGRAM, "fletching.stream", "2000"),
            _QUEUE: (*_PROGRAM, "queue.stream", "2000"),
        },
        (Limit(_QUEUE, 2.6),),
        repeats=15,
        environment=_ENVIRONMENT,
    ),
)
