"""Tensors and buffers of pyarrow, nanoarrow and cuda-core's StridedMemoryView, both ways.

On the stand-in for CUDA, cuda-core cannot import the CUDA Array Interface: it looks up the driver's
functions with cuGetProcAddress for that.
"""

from __future__ import annotations

import gc
from typing import Any

import nanoarrow
import numpy
import pyarrow
import pytest
from cuda.core.utils import StridedMemoryView

from capsules import ProducedOnDevice
from fletching import Array, DeviceArray, from_buffer, from_dlpack
from standin import Gpu


def test_pyarrow_and_nanoarrow_exchange_tensors() -> None:
    """pyarrow's arrays have __dlpack__. nanoarrow's buffers take the struct from before DLPack 1.0,
    which is a copy, and support the buffer protocol."""
    source = pyarrow.array([1, 2, 3], pyarrow.int16())
    array = from_dlpack(source)
    assert (array.type, array.buffers[1]) == ("int16", source.buffers()[1].address)
    buffer = nanoarrow.c_buffer(array)
    assert list(buffer) == [1, 2, 3]
    assert from_buffer(buffer).to_numpy().tolist() == [1, 2, 3]
    with pytest.raises(pyarrow.ArrowTypeError, match="null"):
        from_dlpack(pyarrow.array([1, None]))


def view_of(source: Any, stream: int = -1) -> Any:
    return StridedMemoryView.from_dlpack(source, stream_ptr=stream)


@pytest.mark.parametrize("kind", [Array, DeviceArray])
@pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f4", "f8"])
def test_cuda_core_views_cpu_memory(kind: Any, dtype: str) -> None:
    values = numpy.arange(3, dtype=dtype)
    view = view_of(kind.from_arrow(from_dlpack(values)))
    assert (view.shape, view.dtype, view.ptr) == ((3,), values.dtype, values.ctypes.data)
    assert view.readonly
    assert not view.is_device_accessible
    again = from_dlpack(view)
    del view
    gc.collect()
    assert again.to_numpy().tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="memory is read-only"):
        again.to_numpy(writable=True)


def test_cuda_core_view_of_device_memory_waits_on_stream(gpu: Gpu) -> None:
    source = ProducedOnDevice(device_type=2, device_id=0)
    source._buffers[1] = gpu.memory
    array = DeviceArray.from_arrow(source).export_with_event(gpu.gated())
    stream = gpu.stream()
    view = view_of(array, stream.number)
    assert (view.ptr, view.device_id, view.is_device_accessible) == (gpu.memory, 0, True)
    assert not stream.is_idle()
    gpu.open()
    stream.finish()
    assert array.ready()
    again = from_dlpack(view, stream=stream.number)
    assert repr(again).startswith("<fletching.DeviceArray int32, length 3, cuda:0, ")
    assert "array" not in source.releases
    del array, view, again
    gc.collect()
    assert "array" in source.releases
