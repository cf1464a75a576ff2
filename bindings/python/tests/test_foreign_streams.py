"""Streams of other libraries, as a handle or an object, on the stand-in for CUDA."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import standin
from fletching import DeviceArray, from_cuda_array_interface
from standin import Gpu, Stream
from test_cuda_arrays import Peer, produced


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    with standin.gpu() as device:
        yield device
        gc.collect()


class WithPointer:
    def __init__(self, stream: Stream, name: str) -> None:
        setattr(self, name, stream.number)


@pytest.mark.parametrize("kind", ["number", "__cuda_stream__", "ptr", "handle"])
def test_streams_of_others(gpu: Gpu, kind: str) -> None:
    stream = gpu.gated()
    objects: dict[str, object] = {"number": stream.number, "__cuda_stream__": stream}
    given = objects.get(kind) or WithPointer(stream, kind)
    array = DeviceArray.from_arrow(produced(gpu)).export_with_event(given)
    assert standin.is_pending(array)
    gpu.open()
    array.synchronize()
    assert array.ready()


def test_the_protocol_is_before_other_attributes(gpu: Gpu) -> None:
    class Both(Stream):
        ptr = handle = "not the stream"

    array = DeviceArray.from_arrow(produced(gpu)).export_with_event(Both())
    array.synchronize()


@pytest.mark.parametrize("stream", [None, "1", 1.0, True, object()], ids=type)
def test_what_is_not_a_stream(gpu: Gpu, stream: object) -> None:
    array = DeviceArray.from_arrow(produced(gpu))
    for method in (array.wait_on, array.export_with_event, array.release_after):
        with pytest.raises(TypeError, match="stream: expected a number"):
            method(stream)


@pytest.mark.parametrize("result", [(1, 5), 5, (0,), ("0", 5)], ids=repr)
def test_wrong_results_of_cuda_stream(gpu: Gpu, result: object) -> None:
    class Wrong:
        def __cuda_stream__(self) -> object:
            return result

    with pytest.raises(TypeError, match="__cuda_stream__"):
        DeviceArray.from_arrow(produced(gpu)).wait_on(Wrong())


@pytest.mark.parametrize("read_only", [False, True])
def test_an_export_with_an_event_is_as_writable(gpu: Gpu, read_only: bool) -> None:
    array = from_cuda_array_interface(Peer(gpu, data=(gpu.pinned, read_only)))
    exported = array.export_with_event(gpu.stream())
    if read_only:
        with pytest.raises(BufferError, match="writable"):
            exported.to_numpy(writable=True)
    else:
        assert exported.to_numpy(writable=True).flags.writeable
