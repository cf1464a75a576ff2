"""The cost of one round of a case: `rounds.py CASE ROUNDS` prints nanoseconds as JSON.

Times are CPU time. A case imports only the modules that it needs, because callgrind counts imports,
too.
"""

# ruff: noqa: PLC0415
from __future__ import annotations

import array
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

    import fletching

Round = Callable[[], object]

COLUMNS = 1000
WINDOW = 64
WARM_UP = 20


# --- Rounds on one thread ---


def export_by_fletching() -> Round:
    return _leaf().__arrow_c_device_array__


def export_by_pyarrow() -> Round:
    import pyarrow

    exported: Round = pyarrow.array([1, 2, 3]).__arrow_c_device_array__
    return exported


def trip_by_fletching() -> Round:
    from fletching import DeviceArray

    leaf = _leaf()
    return lambda: DeviceArray.from_arrow(leaf)


def trip_by_pyarrow() -> Round:
    """The steps of pyarrow.array after it has found the method."""
    import pyarrow

    leaf, imported = pyarrow.array([1, 2, 3]), pyarrow.Array._import_from_c_device_capsule
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


def _leaf() -> fletching.DeviceArray:
    import fletching

    return fletching.DeviceArray.from_arrow(fletching.from_buffer(array.array("q", [1, 2, 3])))


def _columns() -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.record_batch({f"column {i}": [i] for i in range(COLUMNS)})


ROUNDS: dict[str, Callable[[], Round]] = {
    "fletching.export": export_by_fletching,
    "pyarrow.export": export_by_pyarrow,
    "fletching.trip": trip_by_fletching,
    "pyarrow.trip": trip_by_pyarrow,
    "fletching.tensor": tensor_of_fletching,
    "numpy.tensor": tensor_of_numpy,
    "fletching.handoff": handoff_by_fletching,
    "pyarrow.handoff": handoff_by_pyarrow,
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


def main() -> int:
    known = [*ROUNDS, *STREAMS]
    if len(sys.argv) != 3 or sys.argv[1] not in known:
        print(f"usage: rounds.py CASE ROUNDS, of {', '.join(known)}", file=sys.stderr)
        return 2
    case, rounds = sys.argv[1], int(sys.argv[2])
    taken = measured_stream(case, rounds) if case in STREAMS else measured(ROUNDS[case](), rounds)
    print(json.dumps({"ns": taken}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
