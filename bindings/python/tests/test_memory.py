"""C++ allocations are freed: memory in use does not grow with the number of calls."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow
import pytest

from capsules import tensor_in
from fletching import (
    Array,
    ArrayStream,
    DeviceArray,
    DeviceArrayStream,
    Error,
    Schema,
    _core,
    from_buffer,
    from_dlpack,
)
from test_async import batch_of, connected
from test_dlpack_table import export, import_

CALLS = 400
LEAST = 16 * CALLS  # bytes; less than the smallest object per call


class Usage(ctypes.Structure):
    """glibc's mallinfo2."""

    _fields_ = [(f"field{n}", ctypes.c_size_t) for n in range(10)]

    @classmethod
    def now(cls) -> int:
        gc.collect()
        call: Any = ctypes.CDLL(None).mallinfo2
        call.restype = cls
        used: int = call().field7  # uordblks
        return used


BATCH = pyarrow.record_batch({"n": [1, 2, 3]})
ARRAYS = [kind.from_arrow(pyarrow.array([1, 2, 3])) for kind in (Array, DeviceArray)]
VALUES = numpy.arange(4)


def batches() -> None:
    stream = DeviceArrayStream.from_batches(Schema.from_arrow(BATCH.schema), 1, [BATCH] * 2)
    next(stream)
    pyarrow.table(ArrayStream.from_arrow(stream))


def of_an_async_stream() -> None:
    async def one() -> Any:
        yield batch_of(1), {"a": b"b"}

    async def run() -> None:
        stream, sender = connected(one())
        assert [len(batch) async for batch in stream] == [1]
        await sender

    asyncio.run(run())


def an_error() -> None:
    with pytest.raises(Error):
        ARRAYS[0].column(7)


USES: dict[str, Callable[[], object]] = {
    "an import": lambda: [kind.from_arrow(BATCH) for kind in (Array, DeviceArray)],
    "an export": lambda: [array.__arrow_c_device_array__() for array in ARRAYS],
    "an export that is imported": lambda: [DeviceArray.from_arrow(array) for array in ARRAYS],
    "columns": lambda: DeviceArray.from_arrow(BATCH).column("n").schema,
    "a schema": lambda: Schema.from_arrow(BATCH.schema).children[0].type,
    "a buffer": lambda: from_buffer(VALUES).__arrow_c_array__(),
    "a stream": batches,
    "a closed stream": lambda: ArrayStream.from_arrow(BATCH).close(),
    "a tensor": lambda: from_dlpack(from_dlpack(VALUES)).to_numpy(),
    "capsules of a tensor": lambda: tensor_in(ARRAYS[0].__dlpack__(max_version=(1, 0))),
    "a copy": lambda: ARRAYS[0].__dlpack__(copy=True),
    "the function table": lambda: import_(export(ARRAYS[1])),
    "a consumer": lambda: _core.AsyncConsumer.create(int),
    "an async stream": of_an_async_stream,
    "an error": an_error,
}


@pytest.mark.parametrize("name", USES)
def test_memory_use_does_not_grow(name: str) -> None:
    use = USES[name]
    for _ in range(CALLS // 2):  # fills caches
        use()
    before = Usage.now()
    for _ in range(CALLS):
        use()
    assert Usage.now() - before < LEAST
