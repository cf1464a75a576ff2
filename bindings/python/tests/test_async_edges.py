"""Edge cases of async streams: orders, failures and references that surviving mutants revealed."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import pytest

from capsules import ProducedOnDevice
from fletching import AsyncDeviceArrayStream, AsyncHandler, DeviceArray, Error, abi, send_async
from fletching._callbacks import _implemented
from fletching._core import AsyncConsumer
from live_objects import alive, leaked
from test_async import SCHEMA, batch_of, connected, gated_batches, one_and_no_end
from test_async_wakes import Handler


class Peer:
    """A producer that only records the requests."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.producer = abi.ArrowAsyncProducer(device_type=1)
        abi.implement(self.producer, self)

    def start(self, handler: AsyncHandler) -> None:
        self.handler = abi.ArrowAsyncDeviceStreamHandler.from_address(handler.take())
        self.handler.producer = ctypes.pointer(self.producer)
        source = ProducedOnDevice()
        assert self.handler.on_schema(self.handler, source.schema) == 0
        source.end()

    def fail(self) -> None:
        self.handler.on_error(self.handler, errno.EIO, None, None)
        self.handler.release(self.handler)

    def request(self, _: object, n: int) -> None:
        self.calls.append(f"request {n}")

    def cancel(self, _: object) -> None:
        self.calls.append("cancel")


def test_connect_requests_window() -> None:
    async def run() -> list[str]:
        peer = Peer()
        stream = AsyncDeviceArrayStream.connect(peer.start, window=3)
        found = list(peer.calls)
        stream.cancel()
        peer.fail()
        return found

    assert asyncio.run(run()) == ["request 3"]


def test_cancel_wakes_waiting_task() -> None:
    async def run() -> None:
        peer = Peer()
        stream = AsyncDeviceArrayStream.connect(peer.start)
        waiting = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0)
        stream.cancel()
        with pytest.raises(StopAsyncIteration):
            await waiting
        assert repr(stream).endswith(", closed>")
        assert peer.calls[-1] == "cancel"
        peer.fail()

    asyncio.run(run())


def test_anext_after_failed_extraction_ends() -> None:
    class Task:
        def extract_data(self, *_: object) -> None:
            raise OSError(errno.EPROTO, "on purpose")

    async def run() -> None:
        peer, task = Peer(), abi.ArrowAsyncTask()
        stream = AsyncDeviceArrayStream.connect(peer.start)
        abi.implement(task, Task())
        assert peer.handler.on_next_task(peer.handler, task, None) == 0
        with pytest.raises(Error) as raised:
            await anext(stream)
        assert raised.value.errno == errno.EPROTO
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        peer.fail()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_send_async_iterable_cancels_stops_iteration() -> None:
    """`push` detects the cancel before the event loop does."""
    streams: list[AsyncDeviceArrayStream] = []
    asked: list[int] = []

    async def batches() -> AsyncIterator[object]:
        for length in (1, 2):
            asked.append(length)
            streams[0].cancel()
            yield batch_of(length)

    async def run() -> None:
        stream, sender = connected(batches(), window=3)
        streams.append(stream)
        await sender

    asyncio.run(run())
    assert asked == [1]


def test_end_after_empty_take_loses_no_batch() -> None:
    """The last batch and the end arrive after `take` has found no batch."""

    class EndAfterTake:
        ended = False
        schema = device_type = None

        def take(self, _: int) -> Any:
            if not self.ended:
                self.ended = True
                return None
            return left.pop() if left else None

        def raise_error(self) -> None:
            pass

        def cancel(self) -> None:
            pass

    left = [DeviceArray.from_arrow(ProducedOnDevice())]

    async def run() -> list[int]:
        stream = AsyncDeviceArrayStream.connect(lambda _: None)
        stream._consumer = EndAfterTake()  # type: ignore[assignment]
        stream._wake()
        asyncio.get_running_loop().call_soon(stream._wake)
        return [len(batch) async for batch in stream]

    assert asyncio.run(run()) == [3]


class StopError(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, StopError])
def test_connect_start_raises_releases_handler(error: type[BaseException]) -> None:
    def start(_: AsyncHandler) -> None:
        raise error

    async def run() -> None:
        with pytest.raises(error):
            AsyncDeviceArrayStream.connect(start)

    before = alive()
    asyncio.run(run())
    assert not leaked(before)  # the handler keeps one until its release


@pytest.mark.parametrize("error", [ValueError, StopError])
def test_connect_start_raises_leaves_taken_handler(error: type[BaseException]) -> None:
    peer = Peer()

    def start(handler: AsyncHandler) -> None:
        peer.start(handler)
        raise error

    async def run() -> None:
        with pytest.raises(error):
            AsyncDeviceArrayStream.connect(start)
        assert peer.calls[-1] == "cancel"
        peer.fail()

    before = alive()
    asyncio.run(run())
    assert not leaked(before)


def test_constructor_raises_type_error() -> None:
    """A stream whose handler has no owner would wait forever."""

    async def run() -> None:
        with pytest.raises(TypeError, match="expected a call of connect"):
            AsyncDeviceArrayStream()

    asyncio.run(run())


def test_connect_wrong_window_releases_handler() -> None:
    async def run() -> None:
        with pytest.raises(Error):
            AsyncDeviceArrayStream.connect(lambda _: None, window=0)

    before = alive()
    asyncio.run(run())
    assert not leaked(before)


def test_dropped_stream_is_collected() -> None:
    async def run() -> None:
        handlers: list[AsyncHandler] = []
        stream = AsyncDeviceArrayStream.connect(handlers.append)
        alive = weakref.ref(stream)
        del stream
        gc.collect()
        assert alive() is None

    asyncio.run(run())


@pytest.mark.parametrize("ending", ["end", "failure", "cancel"])
def test_send_async_closes_iterator_after_stream_end(ending: str) -> None:
    class Batches:
        def __init__(self) -> None:
            self.may_close = asyncio.Event()
            self.is_closed = False

        def __aiter__(self) -> AsyncIterator[object]:
            return self

        async def __anext__(self) -> object:
            if ending == "failure":
                raise Error(errno.ENODATA, "no more data")
            if ending == "cancel":
                await asyncio.Event().wait()
            raise StopAsyncIteration

        async def aclose(self) -> None:
            await self.may_close.wait()
            self.is_closed = True

    async def run() -> None:
        batches: Any = Batches()
        stream, sender = connected(batches)
        if ending == "cancel":
            await stream.schema()
            stream.cancel()
        error = pytest.raises(Error, match="no more data") if ending == "failure" else nullcontext()
        with error:
            assert [batch async for batch in stream] == []
        assert not sender.done()
        batches.may_close.set()
        with error:
            await sender
        assert batches.is_closed

    asyncio.run(run())


def test_send_async_closes_iterator_after_task_cancel() -> None:
    closed: list[bool] = []

    async def run() -> None:
        stream, sender = connected(one_and_no_end(closed))
        await anext(stream)
        await asyncio.sleep(0)
        sender.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sender
        assert closed == [True]
        with pytest.raises(Error) as raised:
            await anext(stream)
        assert raised.value.errno == errno.ECANCELED

    asyncio.run(run())


class LimitedHandler:
    """A handler that requests the given number of batches and drops them."""

    def __init__(self, demand: int) -> None:
        self.demand, self.handler = demand, abi.ArrowAsyncDeviceStreamHandler()
        self.has_schema = threading.Event()
        abi.implement(self.handler, self)

    def on_schema(self, handler: Any, schema: Any) -> None:
        abi.release(schema.contents)
        if self.demand > 0:
            handler.producer.contents.request(handler.producer, self.demand)
        self.has_schema.set()

    def on_next_task(self, _: object, task: Any, __: object) -> None:
        if task:
            task.contents.extract_data(task, None)

    def on_error(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("demand", [0, 1, 2])
def test_send_async_reads_no_more_than_demand(demand: int) -> None:
    asked = []

    async def batches() -> AsyncIterator[object]:
        for _ in range(9):
            asked.append(1)
            yield batch_of(1)

    async def run() -> None:
        limited = LimitedHandler(demand)
        sending = send_async(SCHEMA, 1, batches(), ctypes.addressof(limited.handler))
        sender = asyncio.ensure_future(sending)
        while not limited.has_schema.is_set() or len(asked) < demand:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        sender.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sender
        assert len(asked) == demand

    asyncio.run(run())


# --- Notifications -------------------------------------------------------------------------------


def ended(notify: Any) -> AsyncConsumer:
    """Returns a consumer that was notified of an error."""
    consumer = AsyncConsumer.create(notify)
    Handler(consumer).fail()
    return consumer


def test_notify_exception_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: seen.append(found.exc_value))

    def notify() -> None:
        raise ValueError("of a notification")

    assert ended(notify).ended
    assert str(seen[0]) == "of a notification"


def test_notify_result_is_released() -> None:
    result = object()
    before = sys.getrefcount(result)
    ended(lambda: result)
    gc.collect()
    assert sys.getrefcount(result) == before


def test_raise_error_raises_once() -> None:
    consumer = ended(int)
    with pytest.raises(Error):
        consumer.raise_error()
    consumer.raise_error()


# --- Callbacks -----------------------------------------------------------------------------------


def test_raising_release_is_called_once() -> None:
    class Raising:
        def release(self, _: object) -> None:
            raise ValueError

    before = set(_implemented)
    schema = abi.ArrowSchema()
    abi.implement(schema, Raising())
    abi.release(schema)
    assert abi.is_released(schema)
    assert set(_implemented) <= before  # threads of earlier tests may end meanwhile


def test_release_does_not_write_to_released_handler() -> None:
    """The release may free the handler. Here another object is at its address afterwards."""

    @abi.ArrowAsyncDeviceStreamHandlerRelease
    def release(_: object) -> None:
        ctypes.memset(ctypes.addressof(handler), 1, ctypes.sizeof(handler))

    handler = abi.ArrowAsyncDeviceStreamHandler(release=release)
    abi.release(handler)
    assert bytes(handler) == b"\1" * ctypes.sizeof(handler)


def test_release_marks_struct_before_callback() -> None:
    class InspectingRelease:
        def release(self, given: abi.ArrowSchema) -> None:
            assert ctypes.addressof(given) != ctypes.addressof(schema)
            seen.append(abi.is_released(schema))

    seen: list[bool] = []
    schema = abi.ArrowSchema()
    abi.implement(schema, InspectingRelease())
    abi.release(schema)
    assert seen == [True]


def test_schema_wakes_waiting_tasks() -> None:
    async def run() -> None:
        ready = asyncio.Event()
        stream, sender = connected(gated_batches(ready, 1))
        assert (await asyncio.gather(stream.schema(), stream.schema()))[1].type == "int32"
        ready.set()
        assert [len(batch) async for batch in stream] == [1]
        await sender

    asyncio.run(run())
