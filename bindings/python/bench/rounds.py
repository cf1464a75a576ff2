"""The cost of one round of a case: `rounds.py CASE ROUNDS [COLUMNS]` prints nanoseconds as JSON.

Times are CPU time. A case imports only the modules that it needs, because callgrind counts imports,
too. `rounds.py memory CASE ROUNDS [COLUMNS]` keeps the result of each round and prints the bytes of
each; run it with PYTHONMALLOC=malloc. `rounds.py load MODULE` prints the time of an import, and
`rounds.py size MODULE` the bytes of the installed package.
"""

# ruff: noqa: PLC0415
from __future__ import annotations

import array
import asyncio
import ctypes
import importlib.util
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

    import fletching

Round = Callable[[], object]

WINDOW = 64
LIBRARIES = ("fletching", "pyarrow", "nanoarrow", "arro3")
WARM_UP = 20


# --- Rounds on one thread ---


def export_by_fletching() -> Round:
    return _leaf().__arrow_c_device_array__


def export_by_pyarrow() -> Round:
    return _pyarrow_leaf().__arrow_c_device_array__  # type: ignore[no-any-return]


def trip_by_fletching() -> Round:
    from fletching import DeviceArray

    leaf = _leaf()
    return lambda: DeviceArray.from_arrow(leaf)


def trip_by_pyarrow() -> Round:
    """The steps of pyarrow.array after it has found the method."""
    import pyarrow

    leaf, imported = _pyarrow_leaf(), pyarrow.Array._import_from_c_device_capsule
    return lambda: imported(*leaf.__arrow_c_device_array__())


def tensor_of_fletching() -> Round:
    import numpy

    import fletching

    leaf = fletching.from_dlpack(numpy.arange(3))
    return lambda: numpy.from_dlpack(leaf)


def tensor_of_numpy() -> Round:
    import numpy

    leaf = numpy.arange(3)
    return lambda: numpy.from_dlpack(leaf)


def handoff_by_fletching() -> Round:
    from fletching import DeviceArray

    batch = DeviceArray.from_arrow(_columns())
    return lambda: DeviceArray.from_arrow(batch)


def handoff_by_pyarrow() -> Round:
    import pyarrow

    batch, imported = _columns(), pyarrow.RecordBatch._import_from_c_device_capsule
    return lambda: imported(*batch.__arrow_c_device_array__())


def handoff_by_arro3() -> Round:
    from arro3.core import RecordBatch

    batch = RecordBatch.from_arrow(_columns())
    return lambda: RecordBatch.from_arrow(batch)


def to_numpy_by_fletching() -> Round:
    return _leaf().to_numpy


def to_numpy_by_pyarrow() -> Round:
    return _pyarrow_leaf().to_numpy  # type: ignore[no-any-return]


def to_numpy_by_arro3() -> Round:
    from arro3.core import Array

    return Array.from_arrow(_pyarrow_leaf()).to_numpy


def from_dlpack_by_fletching() -> Round:
    import numpy

    import fletching

    leaf = numpy.arange(3)
    return lambda: fletching.from_dlpack(leaf)


def _importing(name: str) -> Callable[[Any], object]:
    """The function of a library that imports an array of another library."""
    if name == "nanoarrow":
        import nanoarrow

        return nanoarrow.c_array  # type: ignore[no-any-return]
    if name == "arro3":
        from arro3.core import Array

        return Array.from_arrow
    if name == "fletching":
        import fletching

        return fletching.Array.from_arrow
    import pyarrow

    imported = pyarrow.Array._import_from_c_capsule
    return lambda leaf: imported(*leaf.__arrow_c_array__())


def _import_of(name: str, source: Callable[[], Any]) -> Callable[[], Round]:
    def make() -> Round:
        imported, value = _importing(name), source()
        return lambda: imported(value)

    return make


def _pyarrow_leaf() -> Any:
    """Does not call pyarrow.array, which imports pandas: a minute under callgrind."""
    import pyarrow

    values = pyarrow.py_buffer(array.array("q", [1, 2, 3]))
    return pyarrow.Array.from_buffers(pyarrow.int64(), 3, [None, values], null_count=0)


def _leaf() -> fletching.DeviceArray:
    import fletching

    return fletching.DeviceArray.from_arrow(fletching.from_buffer(array.array("q", [1, 2, 3])))


def _struct() -> Any:
    return _columns().to_struct_array()


def _columns() -> pyarrow.RecordBatch:
    import pyarrow

    columns = int(sys.argv[-1]) if sys.argv[-2].isdigit() else 1000
    names = [f"column {i}" for i in range(columns)]
    return pyarrow.RecordBatch.from_arrays([_pyarrow_leaf() for _ in names], names)


ROUNDS: dict[str, Callable[[], Round]] = {
    "fletching.export": export_by_fletching,
    "pyarrow.export": export_by_pyarrow,
    "fletching.trip": trip_by_fletching,
    "pyarrow.trip": trip_by_pyarrow,
    "fletching.tensor": tensor_of_fletching,
    "numpy.tensor": tensor_of_numpy,
    "fletching.handoff": handoff_by_fletching,
    "pyarrow.handoff": handoff_by_pyarrow,
    "arro3.handoff": handoff_by_arro3,
    "fletching.to_numpy": to_numpy_by_fletching,
    "pyarrow.to_numpy": to_numpy_by_pyarrow,
    "arro3.to_numpy": to_numpy_by_arro3,
    "fletching.from_dlpack": from_dlpack_by_fletching,
    **{f"{name}.leaf": _import_of(name, _pyarrow_leaf) for name in LIBRARIES},
    **{f"{name}.batch": _import_of(name, _struct) for name in LIBRARIES},
}


def measured(call: Round, rounds: int) -> float:
    for _ in range(WARM_UP):
        call()
    start = time.process_time_ns()
    for _ in range(rounds):
        call()
    return (time.process_time_ns() - start) / rounds


# --- Async streams, in one event loop ---


async def _batches(count: int) -> AsyncIterator[fletching.DeviceArray]:
    leaf = _leaf()
    for _ in range(count):
        yield leaf


async def stream_by_fletching(count: int) -> int:
    import fletching

    schema, tasks = _leaf().schema, []

    def start(handler: fletching.AsyncHandler) -> None:
        sending = fletching.send_async(schema, 1, _batches(count), handler)
        tasks.append(asyncio.create_task(sending))

    stream = fletching.AsyncDeviceArrayStream.connect(start, window=WINDOW)
    read = len([None async for _ in stream])
    await tasks[0]
    return read


async def stream_by_queue(count: int) -> int:
    """A baseline without the interface: an asyncio queue."""
    queue = asyncio.Queue[object](WINDOW)

    async def send() -> None:
        async for batch in _batches(count):
            await queue.put(batch)
        await queue.put(None)

    sending, read = asyncio.create_task(send()), 0
    while await queue.get() is not None:
        read += 1
    await sending
    return read


STREAMS = {"fletching.stream": stream_by_fletching, "queue.stream": stream_by_queue}


def measured_stream(case: str, count: int) -> float:
    asyncio.run(STREAMS[case](WARM_UP))  # runs the imports of the case
    start = time.process_time_ns()
    read = asyncio.run(STREAMS[case](count))
    taken = (time.process_time_ns() - start) / count
    if read != count:
        raise RuntimeError(f"{case}: wrong number of batches: expected {count}, got {read}")
    return taken


# --- Memory, load time, size ---


class _MallocInfo(ctypes.Structure):
    """glibc's struct mallinfo2, with letters as names."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in "abcdefghij")


def _bytes_in_use() -> int:
    info = ctypes.CDLL(None).mallinfo2
    info.restype = _MallocInfo
    found = info()
    return int(found.h + found.e)  # uordblks, hblkhd


def held_bytes(call: Round, rounds: int) -> float:
    kept: list[object] = [None] * rounds
    for _ in range(WARM_UP):
        call()
    before = _bytes_in_use()
    for number in range(rounds):
        kept[number] = call()
    return (_bytes_in_use() - before) / rounds


def load_time(module: str) -> int:
    start = time.process_time_ns()
    __import__(module)
    return time.process_time_ns() - start


def package_size(module: str) -> int:
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(module)
    files = Path(found.origin).parent.rglob("*")
    return sum(each.stat().st_size for each in files if each.is_file() and each.suffix != ".pyc")


def main() -> int:
    match sys.argv[1:]:
        case ["memory", case, rounds, *_] if case in ROUNDS:
            print(json.dumps({"bytes": held_bytes(ROUNDS[case](), int(rounds))}))
        case ["load", module]:
            print(json.dumps({"ns": load_time(module)}))
        case ["size", module]:
            print(json.dumps({"bytes": package_size(module)}))
        case [case, rounds, *_] if case in STREAMS:
            print(json.dumps({"ns": measured_stream(case, int(rounds))}))
        case [case, rounds, *_] if case in ROUNDS:
            print(json.dumps({"ns": measured(ROUNDS[case](), int(rounds))}))
        case _:
            known = ", ".join([*ROUNDS, *STREAMS])
            print(f"usage: rounds.py CASE ROUNDS [COLUMNS], of {known}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
