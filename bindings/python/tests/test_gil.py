"""Operations that may wait must not hold the GIL. A release, here C's pause, waits for a signal
from another Python thread. If it held the GIL, that thread could not run: the test would hang."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from capsules import GivenStructs, Produced, ProducedOnDevice, rename
from fletching import (
    ArrayStream,
    AsyncDeviceArrayStream,
    AsyncHandler,
    DeviceArray,
    DeviceArrayStream,
    Error,
    Schema,
    abi,
    send_async,
)

PAUSE = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p).value


@pytest.fixture
def signals() -> Iterator[None]:
    """Another thread sends signals to this thread."""
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    done, receiver = threading.Event(), threading.get_ident()

    def send() -> None:
        while not done.is_set():
            signal.pthread_kill(receiver, signal.SIGUSR1)
            time.sleep(0)

    sender = threading.Thread(target=send)
    sender.start()
    yield
    done.set()
    sender.join()
    signal.signal(signal.SIGUSR1, before)


def streams() -> Iterator[tuple[Any, Any]]:
    """Yields streams whose callbacks are C's pause, which returns -1."""
    plain = abi.ArrowArrayStream(release=abi.ArrowArrayStreamRelease(PAUSE))
    plain.get_schema = abi.ArrowArrayStreamGetSchema(PAUSE)
    yield ArrayStream, GivenStructs("stream", plain)
    device = abi.ArrowDeviceArrayStream(device_type=1)
    device.get_schema = abi.ArrowDeviceArrayStreamGetSchema(PAUSE)
    device.release = abi.ArrowDeviceArrayStreamRelease(PAUSE)
    yield DeviceArrayStream, GivenStructs("device_stream", device)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("read", [next, lambda stream: stream.schema], ids=["next", "schema"])
def test_stream_read_releases_gil(read: Any) -> None:
    for kind, source in streams():
        with pytest.raises(Error):
            read(kind.from_arrow(source))


@pytest.mark.usefixtures("signals")
def test_stream_release_releases_gil() -> None:
    for kind, source in streams():
        stream = kind.from_arrow(source)
        del stream
    for kind, source in streams():
        kind.from_arrow(source).close()
    for kind, source in streams():
        capsule = kind.from_arrow(source).__arrow_c_device_stream__()
        del capsule


@pytest.mark.usefixtures("signals")
def test_device_array_release_releases_gil() -> None:
    for keeps in (False, True):
        source = ProducedOnDevice(device_type=2, device_id=0)
        source.array.release = abi.ArrowArrayRelease(PAUSE)
        kept: Any = DeviceArray.from_arrow(source)
        if keeps:
            kept = kept.__arrow_c_device_array__()
        del kept
        abi.release(source.schema)


class Paused:
    """A stream with one batch on a device, whose release is C's pause."""

    def __init__(self, source: ProducedOnDevice) -> None:
        self.source: ProducedOnDevice | None = source

    def get_schema(self, stream: object, out: Any) -> None:
        schema = Produced()
        abi.release(schema.array)
        abi.move(schema.schema, out.contents)

    def get_next(self, stream: object, out: Any) -> None:
        if self.source is not None:
            abi.move(self.source.device, out.contents)
        self.source = None


def paused() -> ProducedOnDevice:
    source = ProducedOnDevice(device_type=2, device_id=0)
    abi.withdraw(source.array)
    source.array.release = abi.ArrowArrayRelease(PAUSE)
    return source


@pytest.mark.usefixtures("signals")
def test_stream_batch_release_releases_gil() -> None:
    source = paused()
    stream = abi.ArrowDeviceArrayStream(device_type=2)
    abi.implement(stream, Paused(source))
    batch = next(DeviceArrayStream.from_arrow(GivenStructs("device_stream", stream)))
    del batch
    abi.release(source.schema)


@pytest.mark.usefixtures("signals")
def test_async_batch_release_releases_gil() -> None:
    source = paused()
    schema = Schema.from_arrow(Produced())

    async def batches() -> AsyncIterator[object]:
        yield source

    async def run() -> DeviceArray:
        tasks: list[asyncio.Task[None]] = []

        def start(handler: AsyncHandler) -> None:
            tasks.append(asyncio.ensure_future(send_async(schema, 2, batches(), handler)))

        stream = AsyncDeviceArrayStream.connect(start)
        batch = await anext(stream)
        await tasks[0]
        return batch

    batch = asyncio.run(run())
    del batch
    abi.release(source.schema)


@pytest.mark.usefixtures("signals")
def test_device_tensor_release_releases_gil() -> None:
    source = paused()
    capsule = DeviceArray.from_arrow(source).__dlpack__(max_version=(1, 0), stream=-1)
    del capsule
    abi.release(source.schema)


def test_destructor_ignores_renamed_capsule() -> None:
    source = Produced()
    capsules = DeviceArray.from_arrow(source).__arrow_c_device_array__()
    for capsule in capsules:
        rename(capsule, b"used")
    del capsule, capsules
    assert source.releases == []
