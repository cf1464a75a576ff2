"""The part of pylibcudf 26.10.2 that examples/pylibcudf_column.py uses, on the CUDA driver.

As there, `from_arrow` calls `__arrow_c_device_array__` without arguments, moves the array out of
the capsule, and makes the stream wait for the event. The array is released with the column,
without a wait for the stream.
"""

from __future__ import annotations

import array
import ctypes
from types import SimpleNamespace
from typing import Any

from rmm.pylibrmm.stream import Stream

import cuda
from capsules import struct_in
from fletching.abi import ArrowDeviceArray


class Column:
    """A column in memory of the device."""

    def __init__(self, size: int) -> None:
        self.address, self.length = ctypes.c_uint64(), size
        cuda.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(size))

    def __del__(self) -> None:
        cuda.call("cuMemFree_v2", self.address)

    @staticmethod
    def from_arrow(obj: Any, stream: Stream) -> _ArrowColumn:
        if not hasattr(obj, "__arrow_c_device_array__"):
            raise NotImplementedError("Device streams not yet supported")
        _schema, capsule = obj.__arrow_c_device_array__()
        theirs = struct_in(ArrowDeviceArray, capsule)
        column = _ArrowColumn(ArrowDeviceArray.from_buffer_copy(theirs))
        theirs.array.release = type(theirs.array.release)()
        event = ctypes.c_void_p.from_address(theirs.sync_event)
        cuda.call("cuStreamWaitEvent", ctypes.c_void_p(stream.handle), event, 0)
        return column

    def size(self) -> int:
        return self.length

    def to_arrow(self, stream: Stream) -> SimpleNamespace:
        values = cuda.copy_to_host(self.address.value, self.length, stream.handle)
        cuda.synchronize(stream.handle)
        return SimpleNamespace(to_pylist=lambda: list(array.array("b", bytes(values))))


class _ArrowColumn:
    """A column over the memory of an Arrow array."""

    def __init__(self, arrow: ArrowDeviceArray) -> None:
        self.arrow = arrow

    def __del__(self) -> None:
        self.arrow.array.release(ctypes.byref(self.arrow.array))


def _concatenate(columns: list[_ArrowColumn], stream: Stream) -> Column:
    """Returns while the copies run."""
    whole = Column(sum(column.arrow.array.length for column in columns))
    target = whole.address.value
    for column in columns:
        source, length = column.arrow.array.buffers[1], column.arrow.array.length
        addresses = (ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(length))
        cuda.call("cuMemcpyDtoDAsync_v2", *addresses, ctypes.c_void_p(stream.handle))
        target += length
    return whole


concatenate = SimpleNamespace(concatenate=_concatenate)
