"""Columns as NumPy arrays, which keep the columns alive."""

from __future__ import annotations

import gc

import numpy
import pyarrow
import pytest

from capsules import ProducedOnDevice
from fletching import Array, DeviceArray, from_dlpack


def test_to_numpy_shares_memory() -> None:
    values = numpy.arange(3, dtype="f4")
    array = from_dlpack(values)
    found = array.to_numpy()
    assert found.ctypes.data == values.ctypes.data
    assert not found.flags.writeable
    written = array.to_numpy(writable=True)
    written[1] = 7
    assert values.tolist() == [0, 7, 2]
    del array
    gc.collect()
    assert found.tolist() == [0, 7, 2]


def test_to_numpy_of_column_shares_memory() -> None:
    batch = pyarrow.record_batch({"n": numpy.arange(3), "t": ["a", "b", "c"]})
    column = DeviceArray.from_arrow(batch).column("n")
    assert column.to_numpy().ctypes.data == batch.column(0).buffers()[1].address
    for read_only in (column, Array.from_arrow(batch).column(0)):
        with pytest.raises(BufferError, match="writable: memory is read-only"):
            read_only.to_numpy(writable=True)
    with pytest.raises(BufferError, match="no DLPack type"):
        DeviceArray.from_arrow(batch).column("t").to_numpy()


def test_to_numpy_keeps_read_only_numpy_memory() -> None:
    values = numpy.arange(3)
    values.flags.writeable = False
    with pytest.raises(BufferError, match="writable"):
        from_dlpack(values).to_numpy(writable=True)


def test_to_numpy_rejects_device_memory() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=0))
    with pytest.raises(BufferError, match="memory that the CPU can read"):
        array.to_numpy()
