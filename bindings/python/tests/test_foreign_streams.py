"""Other libraries' streams, as handles and as objects, on the stand-in for CUDA."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import standin
from fletching import DeviceArray, Error, from_cuda_array_interface, from_dlpack, pending_releases
from standin import Gpu, Stream
from test_cuda_arrays import Peer, produced
from test_rules_dlpack import on_cuda


class Index:
    """An integer of another library."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def with_attribute(name: str, number: object) -> object:
    return type("Other", (), {name: number})()


KINDS: dict[str, Callable[[int], object]] = {
    "number": lambda number: number,
    "number of NumPy": numpy.uint64,
    "number of another library": Index,
    "__cuda_stream__": lambda number: with_attribute("__cuda_stream__", lambda _: (0, number)),
    "ptr": lambda number: with_attribute("ptr", number),
    "handle": lambda number: with_attribute("handle", Index(number)),
    "cuda_stream": lambda number: with_attribute("cuda_stream", number),
}


def on_gpu(gpu: Gpu) -> DeviceArray:
    return DeviceArray.from_arrow(produced(gpu))


def by_wait_on(gpu: Gpu, stream: object) -> bool:
    on_gpu(gpu).export_with_event(gpu.gated()).wait_on(stream)
    return not gpu.streams[0].is_idle()


def by_dlpack(gpu: Gpu, stream: object) -> bool:
    array = on_gpu(gpu).export_with_event(gpu.gated())
    array.__dlpack__(max_version=(1, 0), stream=stream)
    return not gpu.streams[0].is_idle()


def by_export_with_event(gpu: Gpu, stream: object) -> bool:
    return standin.is_pending(on_gpu(gpu).export_with_event(stream))


def by_from_dlpack(gpu: Gpu, stream: object) -> bool:
    return standin.is_pending(from_dlpack(on_cuda(), stream=stream))


def by_release_after(gpu: Gpu, stream: object) -> bool:
    before = standin.settled().pending
    on_gpu(gpu).release_after(stream)
    return pending_releases().pending == before + 1


def by_from_cuda_array_interface(gpu: Gpu, stream: object) -> bool:
    producer = gpu.stream()
    from_cuda_array_interface(Peer(gpu, stream=producer.number), stream=stream)
    return not producer.is_idle()


READY = [by_wait_on, by_dlpack]  # operations whose stream waits for the array
OPERATIONS = [
    *READY,
    by_export_with_event,
    by_from_dlpack,
    by_release_after,
    by_from_cuda_array_interface,
]
each_operation = pytest.mark.parametrize("operation", OPERATIONS)


@each_operation
@pytest.mark.parametrize("kind", KINDS)
def test_every_function_accepts_every_stream_kind(gpu: Gpu, operation: Any, kind: str) -> None:
    stream = gpu.stream() if operation in READY else gpu.gated()
    assert operation(gpu, KINDS[kind](stream.number))
    gpu.open()
    stream.finish()


@each_operation
@pytest.mark.parametrize("stream", [True, numpy.bool_(True), 1.0, "1", object()], ids=repr)
def test_functions_reject_other_objects(gpu: Gpu, operation: Any, stream: object) -> None:
    with pytest.raises(TypeError, match="stream: expected a number, or an object with"):
        operation(gpu, stream)


@each_operation
@pytest.mark.parametrize("number", [-2, -(2**70), 2**64 - 1, 2**64])
def test_functions_reject_invalid_handle(gpu: Gpu, operation: Any, number: int) -> None:
    for kind in KINDS.values():
        try:
            given = kind(number)
        except OverflowError:  # raised by NumPy
            continue
        with pytest.raises(Error, match="stream: invalid handle") as raised:
            operation(gpu, given)
        assert raised.value.errno == errno.EINVAL


@each_operation
def test_none_is_default_stream_or_rejected(gpu: Gpu, operation: Any) -> None:
    """None means DLPack's default stream, or no wait at the release of an import."""
    if operation in (by_wait_on, by_export_with_event, by_release_after):
        with pytest.raises(TypeError, match="stream: expected a number"):
            operation(gpu, None)
    else:
        operation(gpu, None)


def test_from_dlpack_passes_default_stream_object_as_one(gpu: Gpu) -> None:
    """DLPack rejects 0, which could be another default stream."""
    given = on_cuda()
    from_dlpack(given, stream=KINDS["ptr"](0))
    assert given.asked[0]["stream"] == 1
    array = on_gpu(gpu)
    array.__dlpack__(max_version=(1, 0), stream=KINDS["__cuda_stream__"](0))
    with pytest.raises(BufferError, match="1 for the legacy default stream"):
        array.__dlpack__(max_version=(1, 0), stream=0)
    with pytest.raises(Error, match="1 for the legacy default stream") as raised:
        from_dlpack(on_cuda(), stream=0)
    assert raised.value.errno == errno.EINVAL


@pytest.mark.usefixtures("gpu")
def test_from_dlpack_passes_64_bit_handle() -> None:
    given = on_cuda()
    with pytest.raises(Error, match="INVALID_HANDLE"):
        from_dlpack(given, stream=2**63)
    assert given.asked[0]["stream"] == 2**63


def test_from_dlpack_rejects_stream_object_with_minus_one(gpu: Gpu) -> None:
    with pytest.raises(Error, match="stream: invalid handle"):
        from_dlpack(on_cuda(), stream=KINDS["ptr"](-1))
    assert from_dlpack(on_cuda(), stream=-1).sync_event == 0


def test_cuda_stream_protocol_precedes_attributes(gpu: Gpu) -> None:
    class Both(Stream):
        ptr = handle = "not the stream"

    array = DeviceArray.from_arrow(produced(gpu)).export_with_event(Both())
    array.synchronize()


@pytest.mark.parametrize("result", [(1, 5), 5, (0,), ("0", 5)], ids=repr)
def test_cuda_stream_protocol_rejects_wrong_result(gpu: Gpu, result: object) -> None:
    class Wrong:
        def __cuda_stream__(self) -> object:
            return result

    with pytest.raises(TypeError, match="__cuda_stream__"):
        DeviceArray.from_arrow(produced(gpu)).wait_on(Wrong())


@pytest.mark.parametrize("read_only", [False, True])
def test_export_with_event_keeps_writability(gpu: Gpu, read_only: bool) -> None:
    array = from_cuda_array_interface(Peer(gpu, data=(gpu.pinned, read_only)))
    exported = array.export_with_event(gpu.stream())
    if read_only:
        with pytest.raises(BufferError, match="writable"):
            exported.to_numpy(writable=True)
    else:
        assert exported.to_numpy(writable=True).flags.writeable
