"""Async device streams in asyncio: both ends, against the reference producer and each other."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from capsules import ProducedOnDevice
from fletching import (
    AsyncDeviceArrayStream,
    AsyncHandler,
    DeviceArray,
    Error,
    Schema,
    abi,
    send_async,
)
from producer import Producer

LENGTH = 4  # length of the producer's int32 batches


@pytest.fixture
def producer() -> Iterator[Producer]:
    """The reference producer. Checks afterwards that all its structs are released."""
    producer = Producer()
    producer.reset_counters()
    yield producer
    producer.await_async()
    gc.collect()
    counters = producer.counters()
    assert counters["exported"] == counters["released"] > 0
    assert counters["live_streams"] == counters["live_arrays"] == counters["double_released"] == 0


def received(batches: int, fail_at: int = -1, window: int = 1) -> AsyncDeviceArrayStream:
    """Returns a stream of the reference producer."""
    return AsyncDeviceArrayStream.connect(
        lambda handler: Producer().run_async("int32", batches, fail_at, handler.take()),
        window=window,
    )


@pytest.mark.parametrize("window", [1, 3, 100])
def test_stream_yields_producer_batches(producer: Producer, window: int) -> None:
    async def lengths() -> list[int]:
        stream = received(5, window=window)
        assert (await stream.schema()).type == "int32"
        assert stream.device_type == 1
        return [len(batch) async for batch in stream]

    assert asyncio.run(lengths()) == [LENGTH] * 5


def test_failure_is_raised_once(producer: Producer) -> None:
    async def fail() -> None:
        stream = received(3, fail_at=1)
        assert len(await anext(stream)) == LENGTH
        with pytest.raises(Error, match="the stream fails on purpose before batch 1") as raised:
            await anext(stream)
        assert raised.value.errno == errno.EIO
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(fail())


def test_batch_outlives_aclose(producer: Producer) -> None:
    async def first() -> DeviceArray:
        stream = received(1000, window=10)
        batch = await anext(stream)
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        return batch

    assert len(asyncio.run(first())) == LENGTH


def test_break_cancels(producer: Producer) -> None:
    async def first() -> int:
        async for batch in received(10**9):
            return len(batch)
        return 0

    assert asyncio.run(first()) == LENGTH


def test_aclose_of_iterator_cancels(producer: Producer) -> None:
    async def end() -> None:
        stream = received(10**9)
        batches = aiter(stream)
        await anext(batches)
        await batches.aclose()  # as the event loop does
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(end())


def test_loop_shutdown_cancels(producer: Producer) -> None:
    """The iterator is suspended: asyncio closes it."""
    kept = []

    async def suspend() -> None:
        stream = received(10**9)
        kept.append((stream, aiter(stream)))
        await anext(kept[0][1])

    asyncio.run(suspend())
    producer.await_async()  # with the stream alive; otherwise it would wait forever
    assert kept


def test_closed_loop_cancels(producer: Producer) -> None:
    """No task is iterating: the next task that arrives detects the closed loop."""
    loop = asyncio.new_event_loop()

    async def connect() -> AsyncDeviceArrayStream:
        return received(10**9, window=10**9)

    stream = loop.run_until_complete(connect())
    loop.close()
    producer.await_async()
    assert stream._closed


def test_cancelled_wait_loses_no_batch() -> None:
    async def run() -> list[int]:
        ready = asyncio.Event()
        stream, sender = connected(gated_batches(ready, 3))
        waiting = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        ready.set()
        lengths = [len(batch) async for batch in stream]
        await sender
        return lengths

    assert asyncio.run(run()) == [1, 2, 3]


# --- A producer of Python -------------------------------------------------------------------------

SCHEMA = Schema.from_arrow(ProducedOnDevice())


def batch_of(length: int) -> ProducedOnDevice:
    return ProducedOnDevice(tuple(range(length)))


async def gated_batches(ready: asyncio.Event, count: int) -> AsyncIterator[ProducedOnDevice]:
    await ready.wait()
    for length in range(1, count + 1):
        yield batch_of(length)


def connected(
    batches: AsyncIterator[object], window: int = 2
) -> tuple[AsyncDeviceArrayStream, asyncio.Task[None]]:
    tasks: list[asyncio.Task[None]] = []

    def start(handler: AsyncHandler) -> None:
        tasks.append(asyncio.ensure_future(send_async(SCHEMA, 1, batches, handler)))

    return AsyncDeviceArrayStream.connect(start, window), tasks[0]


@pytest.mark.parametrize("ending", ["none", "failure", "wrong batch"])
def test_send_async_does_not_keep_sent_batches(ending: str) -> None:
    """A sent batch is freed without waiting for the next collection: it may be in device memory."""
    sources = [batch_of(1)]

    async def batches() -> AsyncIterator[object]:
        yield DeviceArray.from_arrow(sources[0])
        if ending == "none":
            await asyncio.Event().wait()
        if ending == "failure":
            raise Error(errno.ENODATA, "no more data")
        sources.append(ProducedOnDevice(device_type=2))
        yield DeviceArray.from_arrow(sources[1])

    async def run() -> None:
        stream, sender = connected(batches(), window=1)
        await anext(stream)
        if ending == "none":
            assert sources[0].releases.count("array") == 1
            stream.cancel()
            await sender
            return
        with pytest.raises(Error):
            await anext(stream)
        await asyncio.wait([sender])
        assert sender.exception() is not None

    gc.disable()
    try:
        asyncio.run(run())
        assert [source.releases.count("array") for source in sources] == [1] * len(sources)
    finally:
        gc.enable()
        gc.collect()


async def one_and_no_end(closed: list[bool]) -> AsyncIterator[object]:
    """Yields one batch and never ends; `closed` records the closing of the iterator."""
    try:
        yield batch_of(1)
        await asyncio.Event().wait()
    finally:
        closed.append(True)


class Refusing:
    """A handler that rejects the schema, and whose release waits for the test."""

    def __init__(self) -> None:
        self.failed, self.may_release = threading.Event(), threading.Event()

    def on_schema(self, _: object, schema: Any) -> int:
        abi.release(schema.contents)
        return errno.EPROTO

    def on_next_task(self, *_: object) -> int:
        return errno.EPROTO

    def on_error(self, *_: object) -> None:
        self.failed.set()

    def release(self, _: object) -> None:
        self.failed.set()
        self.may_release.wait()


def test_send_async_returns_after_release() -> None:
    async def run() -> None:
        methods, handler = Refusing(), abi.ArrowAsyncDeviceStreamHandler()
        abi.implement(handler, methods)
        batches = gated_batches(asyncio.Event(), 1)
        sending = send_async(SCHEMA, 1, batches, ctypes.addressof(handler))
        sender = asyncio.ensure_future(sending)
        while not methods.failed.is_set():
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not sender.done()
        methods.may_release.set()
        await sender

    asyncio.run(run())


async def of(*batches: object) -> AsyncIterator[object]:
    for batch in batches:
        yield batch


TYPE_ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "no batch": (lambda: of(5), "DeviceArray: object has no array"),
    "None, which is not the end": (lambda: of(None, batch_of(1)), "push"),
    "no iterable": (lambda: 5, "'int' object is not an async iterable"),
    "metadata": (lambda: of((batch_of(1), {"a": 5})), "metadata: expected bytes or str"),
}


@pytest.mark.parametrize("name", TYPE_ERRORS)
def test_type_error_reaches_stream_and_send_async(name: str) -> None:
    batches, text = TYPE_ERRORS[name]

    async def run() -> None:
        stream, sender = connected(batches())
        with pytest.raises(Error, match=f"TypeError: {text}"):
            await anext(stream)
        with pytest.raises(TypeError):
            await sender

    asyncio.run(asyncio.wait_for(run(), 60))


def test_metadata_of_stream_and_batches() -> None:
    async def batches() -> AsyncIterator[object]:
        yield batch_of(1), {b"\xff": b"\x00", "text": "\u00e4"}
        yield batch_of(2)

    async def run() -> None:
        tasks: list[asyncio.Task[None]] = []

        def start(handler: AsyncHandler) -> None:
            sending = send_async(SCHEMA, 1, batches(), handler, metadata={"a": b"b"})
            tasks.append(asyncio.ensure_future(sending))

        stream = AsyncDeviceArrayStream.connect(start, window=1)
        assert stream.metadata == {}
        found = [stream.batch_metadata async for _ in stream]
        assert found == [{b"\xff": b"\x00", b"text": "\u00e4".encode()}, {}]
        assert stream.metadata == {b"a": b"b"}
        await tasks[0]

    asyncio.run(run())


def test_error_carries_metadata() -> None:
    async def batches(metadata: Any) -> AsyncIterator[object]:
        yield batch_of(1)
        error = Error(errno.EIO, "no more data")
        error.metadata = metadata
        raise error

    async def run(given: Any, expected: dict[bytes, bytes]) -> None:
        stream, sender = connected(batches(given), window=1)
        await anext(stream)
        with pytest.raises(Error, match="no more data") as raised:
            await anext(stream)
        assert raised.value.metadata == expected
        with pytest.raises(Error):
            await sender

    asyncio.run(run({b"\xff": b"\x00", "text": "\u00e4"}, {b"\xff": b"\0", b"text": b"\xc3\xa4"}))
    for unreadable in ({"a": 5}, {5: "a"}, 5, None):
        asyncio.run(run(unreadable, {}))
    assert Error(errno.EIO, "of something else").metadata == {}


def test_error_of_foreign_producer_carries_metadata() -> None:
    async def run() -> Any:
        def start(taken: AsyncHandler) -> None:
            handler = abi.ArrowAsyncDeviceStreamHandler.from_address(taken.take())
            block = struct.pack("=ii1si2s", 1, 1, b"k", 2, b"v\xff")
            handler.on_error(handler, errno.EPROTO, b"failed", block)
            handler.release(handler)

        stream = AsyncDeviceArrayStream.connect(start)
        with pytest.raises(Error, match="failed") as raised:
            await stream.schema()
        return raised.value.metadata

    assert asyncio.run(run()) == {b"k": b"v\xff"}
