"""A handler has one producer, and every ending of the handler ends the stream."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import errno
import gc
import pickle
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fletching import AsyncDeviceArrayStream, AsyncHandler, Error, abi, send_async
from live_objects import alive, leaked
from test_async import SCHEMA, batch_of


async def batches() -> AsyncIterator[object]:
    yield batch_of(1)


def sending(handler: AsyncHandler | int, **changed: Any) -> Any:
    arguments = {"schema": SCHEMA, "device_type": 1, "batches": batches(), **changed}
    return send_async(**arguments, handler=handler)


def test_connect_start_raises_after_send_async_releases_once() -> None:
    """The task still refers to the handler, which has been released."""
    tasks: list[asyncio.Task[None]] = []

    def start(handler: AsyncHandler) -> None:
        tasks.append(asyncio.ensure_future(sending(handler)))
        raise ValueError("afterwards")

    async def run() -> None:
        with pytest.raises(ValueError, match="afterwards"):
            AsyncDeviceArrayStream.connect(start)
        await tasks[0]

    before = alive()
    asyncio.run(run())
    tasks.clear()
    assert not leaked(before)


def test_send_async_taken_handler_raises() -> None:
    async def run() -> None:
        handlers: list[AsyncHandler] = []
        stream = AsyncDeviceArrayStream.connect(handlers.append)
        task = asyncio.ensure_future(sending(handlers[0]))
        with pytest.raises(Error, match="handler is taken") as raised:
            sending(handlers[0])
        assert raised.value.errno == errno.EINVAL
        assert repr(handlers[0]) == "<fletching.AsyncHandler, taken>"
        assert [len(batch) async for batch in stream] == [1]
        await task
        with pytest.raises(Error, match="handler is taken"):  # and the stream has ended
            sending(handlers[0])

    asyncio.run(asyncio.wait_for(run(), 60))


def test_send_async_after_cancel_returns() -> None:
    async def run() -> None:
        handlers: list[AsyncHandler] = []
        stream = AsyncDeviceArrayStream.connect(handlers.append)
        await stream.aclose()
        await sending(handlers[0])

    before = alive()
    asyncio.run(asyncio.wait_for(run(), 60))
    assert not leaked(before)


def start_and_cancel(handler: AsyncHandler) -> None:
    asyncio.ensure_future(sending(handler)).cancel()


def close(handler: AsyncHandler) -> None:
    sending(handler).close()


def throw(handler: AsyncHandler) -> None:
    with pytest.raises(LookupError):
        sending(handler).throw(LookupError())


ENDINGS: dict[str, tuple[Callable[[AsyncHandler], object], int, str]] = {
    "cancelled before the first step": (start_and_cancel, errno.ECANCELED, "CancelledError: the t"),
    "closed before the first step": (close, errno.ECANCELED, "CancelledError: the task"),
    "thrown into before the first step": (throw, errno.ECANCELED, "CancelledError: the task"),
    "dropped": (lambda handler: None, errno.ECANCELED, "no producer: the handler was dropped"),
    "wrong metadata": (
        lambda handler: asyncio.ensure_future(sending(handler, metadata=5)),
        errno.EIO,
        "TypeError: 'int' object is not iterable",
    ),
    "wrong device": (
        lambda handler: asyncio.ensure_future(sending(handler, device_type="x")),
        errno.EIO,
        "TypeError",
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_producer_early_end_ends_stream(ending: str) -> None:
    start, code, text = ENDINGS[ending]
    kept: list[Any] = []

    async def run() -> None:
        stream = AsyncDeviceArrayStream.connect(lambda handler: kept.append(start(handler)))
        with pytest.raises(Error, match=text) as raised:
            await anext(stream)
        assert raised.value.errno == code
        await asyncio.gather(*filter(asyncio.isfuture, kept), return_exceptions=True)

    before = alive()
    asyncio.run(asyncio.wait_for(run(), 60))
    kept.clear()
    assert not leaked(before)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_send_async_never_awaited_ends_stream() -> None:
    async def run() -> None:
        stream = AsyncDeviceArrayStream.connect(sending)
        gc.collect()
        with pytest.raises(Error, match="no producer: the handler was dropped"):
            await anext(stream)

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_handler_and_stream_cannot_be_copied_or_pickled(make: Callable[[object], object]) -> None:
    """Two owners would release the handler twice."""

    async def run() -> None:
        handlers: list[AsyncHandler] = []
        stream = AsyncDeviceArrayStream.connect(handlers.append)
        for each in (handlers[0], stream):
            with pytest.raises(TypeError, match=f"cannot pickle '{type(each).__name__}' object"):
                make(each)
        gc.collect()
        assert repr(handlers[0]) == "<fletching.AsyncHandler>"

    asyncio.run(run())


def test_handler_without_address_is_dropped_silently() -> None:
    with pytest.raises(TypeError, match="address"):
        AsyncHandler()  # type: ignore[call-arg]
    gc.collect()


@pytest.mark.parametrize("address", [0, -1, 2**70])
def test_send_async_rejects_invalid_address(address: int) -> None:
    with pytest.raises(Error, match=f"handler: expected an address, got {address}"):
        sending(address)


def test_send_async_outside_of_asyncio_names_trio() -> None:
    """The call also ends the stream, which has no other producer."""
    with pytest.raises(RuntimeError, match=r"no event loop of asyncio: .* trio"):
        AsyncDeviceArrayStream.connect(lambda _: None)
    calls: list[Any] = []

    class Handler:
        def on_schema(self, *_: object) -> int:
            return 0

        on_next_task = on_schema

        def on_error(self, _: object, code: int, *more: object) -> None:
            calls.append(code)

        def release(self, _: object) -> None:
            calls.append("release")

    handler = abi.ArrowAsyncDeviceStreamHandler()
    abi.implement(handler, Handler())
    with pytest.raises(RuntimeError, match=r"no event loop of asyncio: .* trio"):
        sending(ctypes.addressof(handler)).send(None)
    assert calls == [errno.EIO, "release"]
