"""When an async stream wakes its event loop, and when the loop continues."""

from __future__ import annotations

import asyncio
import ctypes
import errno
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fletching import AsyncDeviceArrayStream, AsyncHandler, Error, abi
from fletching._async import _Wake, _Woken
from fletching._core import AsyncConsumer, Gate
from test_async import batch_of, connected


class Producer:
    def request(self, *_: object) -> None:
        pass

    def cancel(self, *_: object) -> None:
        pass


class Handler:
    """A consumer's handler that the test calls."""

    def __init__(self, consumer: AsyncConsumer) -> None:
        self.consumer = consumer  # kept, because its destruction would cancel the stream
        self.raw = abi.ArrowAsyncDeviceStreamHandler.from_address(consumer.handler())
        self.producer = abi.ArrowAsyncProducer(device_type=1)
        abi.implement(self.producer, Producer())
        self.raw.producer = ctypes.pointer(self.producer)

    def fail(self) -> None:
        self.raw.on_error(self.raw, errno.EIO, None, None)
        self.raw.release(self.raw)
        abi.withdraw(self.producer)


def test_closed_gate_suppresses_notifications() -> None:
    calls: list[bool] = []
    gate = Gate()
    for opens, expected in ((False, 1), (False, 1), (True, 2)):
        if opens:
            gate.open()
        consumer = AsyncConsumer.create(lambda: calls.append(True), gate)
        Handler(consumer).fail()
        assert consumer.ended
        assert len(calls) == expected


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_raising_notification_opens_gate() -> None:
    calls: list[bool] = []

    def notify() -> None:
        calls.append(True)
        raise ValueError("not passed on")

    gate = Gate()
    for _ in range(2):
        Handler(AsyncConsumer.create(notify, gate)).fail()
    assert len(calls) == 2


def test_loop_opens_gate() -> None:
    async def run() -> None:
        wake = _Wake()
        for _ in range(2):
            Handler(AsyncConsumer.create(wake, wake.gate)).fail()
            await asyncio.wait_for(wake.wait(), 60)
            wake.clear()

    asyncio.run(run())


def test_gate_opens_before_task_resumes() -> None:
    """A notification in between must be delivered, because the task may have checked before it."""

    async def run() -> None:
        wake, calls = _Wake(), list[bool]()
        woken = _Woken(wake)  # kept, because its destruction opens the gate, too
        for expected in (1, 2):
            Handler(AsyncConsumer.create(lambda: calls.append(True), wake.gate)).fail()
            assert len(calls) == expected
            woken()

    asyncio.run(run())


def test_closed_loop_before_wake_is_detected() -> None:
    """The loop drops the pending notification; the next notification detects that the loop is
    closed.
    """
    lost: list[bool] = []

    async def begin() -> _Wake:
        wake = _Wake()
        wake.lost = lambda: lost.append(True)
        return wake

    loop = asyncio.new_event_loop()
    wake = loop.run_until_complete(begin())
    Handler(AsyncConsumer.create(wake, wake.gate)).fail()
    loop.close()
    assert lost == []
    Handler(AsyncConsumer.create(wake, wake.gate)).fail()
    assert lost == [True]


def test_second_loop_raises() -> None:
    """Its task would wait forever: notifications go to the first loop, which is closed."""

    handlers: list[AsyncHandler] = []

    async def connect() -> AsyncDeviceArrayStream:
        return AsyncDeviceArrayStream.connect(handlers.append)

    stream = asyncio.run(connect())
    for waiting in (stream.schema(), stream.__anext__()):
        with pytest.raises(RuntimeError, match="in another event loop: expected the one"):
            asyncio.run(asyncio.wait_for(waiting, 60))


async def endless() -> AsyncIterator[object]:
    while True:
        yield batch_of(1)


def test_send_async_nonwaiting_iterable_yields_to_loop() -> None:
    async def run() -> None:
        stream, sender = connected(endless(), window=10**9)
        await anext(stream)
        await stream.aclose()
        await sender

    asyncio.run(run())


def test_consumer_cancel_does_not_cancel_task() -> None:
    """Waiting for the iterable is interrupted, and the task continues."""

    async def waiting() -> AsyncIterator[object]:
        yield batch_of(1)
        await asyncio.Event().wait()

    async def stubborn() -> AsyncIterator[object]:
        yield batch_of(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield batch_of(1)

    async def run(batches: Any) -> None:
        stream, sender = connected(batches, window=2)
        await anext(stream)
        for _ in range(10):  # the sender waits for the iterable
            await asyncio.sleep(0)
        await stream.aclose()
        await sender
        assert sender.cancelling() == 0

    asyncio.run(run(waiting()))
    asyncio.run(run(stubborn()))


def test_task_cancelled_with_stream_stays_cancelled() -> None:
    async def run() -> None:
        stream, sender = connected(endless_wait())
        await stream.schema()
        await asyncio.sleep(0)
        stream.cancel()
        sender.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sender

    async def endless_wait() -> AsyncIterator[object]:
        await asyncio.Event().wait()
        yield None

    asyncio.run(run())


def test_error_after_closed_gate_is_raised() -> None:
    """The closed gate drops the error's notification, and the waiting task still sees the error."""

    async def run() -> None:
        handlers: list[Any] = []

        def start(taken: AsyncHandler) -> None:
            handler = abi.ArrowAsyncDeviceStreamHandler.from_address(taken.take())
            handlers.append(handler)

        stream = AsyncDeviceArrayStream.connect(start)
        waiting = asyncio.ensure_future(stream.schema())
        await asyncio.sleep(0)
        stream._wake()  # pending when the error arrives
        handlers[0].on_error(handlers[0], errno.EPROTO, b"too late", None)
        handlers[0].release(handlers[0])
        with pytest.raises(Error, match="too late"):
            await asyncio.wait_for(waiting, 60)

    asyncio.run(run())
