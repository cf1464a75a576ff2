# SPDX-License-Identifier: Apache-2.0
"""Async device streams in asyncio: the consumer as an async iterator, the producer from one."""

from __future__ import annotations

import asyncio
import errno
import itertools
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Self, cast

from . import _callbacks, abi
from ._core import AsyncConsumer, AsyncProducer, DeviceArray, Gate, Schema
from ._error import Error

Metadata = Mapping[bytes | str, bytes | str]
_END = object()  # not None, which an iterable may yield by mistake
_FAIR = 32  # batches, after which an iterable that never waits lets the event loop go on


class _Wake:
    """Wakes a task from any thread. `lost` is called when the loop is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self.gate = Gate()  # closed from a notification until the loop has called `wake`
        self.lost: Callable[[], object] = lambda: None

    def __call__(self) -> None:
        try:
            self._loop.call_soon_threadsafe(_Woken(self))
        except RuntimeError:  # the loop is closed
            self.lost()

    def wake(self) -> None:
        self.gate.open()  # first: what is not passed on now was done before the event
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self) -> None:
        if asyncio.get_running_loop() is not self._loop:  # which no notification would wake
            raise RuntimeError("async stream: in another event loop: expected the one of its start")
        await self._event.wait()


class _Woken:
    """What the loop calls. A loop that is closed drops it: then the next notification is lost."""

    def __init__(self, wake: _Wake) -> None:
        self._wake = wake

    def __call__(self) -> None:
        self._wake.wake()

    def __del__(self) -> None:
        self._wake.gate.open()


class AsyncDeviceArrayStream:
    """Batches of an async producer, in the running loop.

    Iterate it with `async for`. The end of the loop body by `break` or an exception, `aclose` and
    the end of the event loop cancel the stream; batches stay valid. An error of the producer is a
    fletching.Error, once. A task that is cancelled while it waits loses no batch.

    Threads: the producer may be on any thread; use the object in its event loop.

    Arrow C device data interface, "Async Device Stream Interface".
    """

    def __init__(self, window: int = 16) -> None:
        """At most `window` batches are requested and not received. Needs a running event loop."""
        self._wake = _Wake()
        self._consumer = AsyncConsumer.create(self._wake, self._wake.gate)
        self._consumer.request(window)
        self._closed = False
        self_ = weakref.ref(self)
        self._wake.lost = lambda: _cancel(self_())

    @classmethod
    def connect(cls, start: Callable[[int], object], window: int = 16) -> Self:
        """The stream of a producer, to which `start` passes a handler: the address of an
        ArrowAsyncDeviceStreamHandler. The producer releases it; if `start` raises, it is released
        here.
        """
        stream = cls(window)
        handler = stream._consumer.handler()
        try:
            start(handler)
        except BaseException:
            stream.cancel()
            raw = abi.ArrowAsyncDeviceStreamHandler.from_address(handler)
            raw.release(raw)
            raise
        return stream

    async def schema(self) -> Schema:
        """The schema, as soon as the producer has sent it."""
        while True:
            self._wake.clear()
            schema = self._consumer.schema
            if schema is not None:
                return schema
            self._raise_if_over()
            await self._wake.wait()

    @property
    def device_type(self) -> int:
        """A number of fletching.abi.DeviceType; 0 before the schema."""
        return self._consumer.device_type

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The metadata of the stream (`additional_metadata`); empty before the schema."""
        return self._consumer.metadata

    @property
    def batch_metadata(self) -> dict[bytes, bytes]:
        """The metadata of the last batch that was received; empty for none."""
        return self._consumer.batch_metadata

    def __aiter__(self) -> AsyncGenerator[DeviceArray]:
        return self._batches()

    async def _batches(self) -> AsyncGenerator[DeviceArray]:
        """A generator, because the event loop closes it when it ends."""
        try:
            while (batch := await self._next()) is not None:
                yield batch
        finally:
            self.cancel()

    async def __anext__(self) -> DeviceArray:
        batch = await self._next()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def _next(self) -> DeviceArray | None:
        while not self._closed:
            self._wake.clear()
            over = self._consumer.ended  # before `take`: the end comes after the last task
            batch = self._consumer.take(1)
            if batch is not None:
                return batch
            if over:
                self._closed = True
                self._consumer.raise_error()
                return None
            await self._wake.wait()
        return None

    def _raise_if_over(self) -> None:
        if self._closed or self._consumer.ended:
            self._consumer.raise_error()
            raise Error(errno.EINVAL, "schema: stream is over: expected a live stream")

    def cancel(self) -> None:
        """Cancels the stream: batches that were not received are dropped."""
        self._closed = True
        self._consumer.cancel()
        self._wake()

    def __repr__(self) -> str:
        schema = self._consumer.schema
        text = schema.type if schema is not None else "of a schema that is not read"
        closed = ", closed" if self._closed else ""
        return f"<fletching.AsyncDeviceArrayStream {text}{closed}>"

    async def aclose(self) -> None:
        """Cancels the stream."""
        self.cancel()


def _cancel(stream: AsyncDeviceArrayStream | None) -> None:
    if stream is not None:
        stream._closed = True
        stream._consumer.cancel()


class _Sender:
    """What the executor's thread reports, in the event loop."""

    def __init__(self) -> None:
        self.wake = _Wake()
        self.stopped = False
        self.waiting: asyncio.Task[object] | None = None  # for the iterable
        self.released = _Wake()
        self._loop = asyncio.get_running_loop()

    def on_stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self.stopped = True
        if self.waiting is not None:
            self.waiting.cancel()
        self.wake()


async def send_async(
    schema: Schema,
    device_type: int,
    batches: AsyncIterable[object],
    handler: int,
    *,
    metadata: Metadata | None = None,
) -> None:
    """Sends the batches of an async iterable to the consumer of a handler, as it requests them.

    A batch is an object with an array, or a pair of one and its metadata. `metadata` is the
    metadata of the whole stream.

    Returns when the handler was released. An exception of `batches` is the error of the stream,
    and is raised here too. If the consumer cancels, the iterator is closed; if this task is
    cancelled, the stream fails with ECANCELED. The handler, an ArrowAsyncDeviceStreamHandler by its
    address, is untouched when this raises at once, and when it never runs because its task is
    cancelled before the first step: release it then.
    """
    sender = _Sender()
    wakes = (sender.wake, sender.on_stop, sender.released, sender.wake.gate)
    producer = AsyncProducer.start(handler, device_type, dict(metadata or {}), *wakes)
    iterator: AsyncIterator[object] | None = None
    try:
        iterator = aiter(batches)
        producer.schema(schema)
        await _send(producer, sender, iterator)
    except asyncio.CancelledError:
        producer.fail(errno.ECANCELED, "CancelledError: the task of the producer was cancelled")
        raise
    except BaseException as error:
        producer.fail(*_error_of(error))
        raise
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
    await sender.released.wait()


async def _send(producer: AsyncProducer, sender: _Sender, batches: AsyncIterator[object]) -> None:
    for sent in itertools.count(1):
        if sent % _FAIR == 0:
            await asyncio.sleep(0)
        sender.wake.clear()
        while producer.demand == 0 and not sender.stopped:
            await sender.wake.wait()
            sender.wake.clear()
        if sender.stopped:
            return
        batch = await _next_of(batches, sender)
        if batch is _END:
            producer.end()
            return
        array, metadata = batch if isinstance(batch, tuple) else (batch, {})
        if not producer.push(array, dict(metadata)):
            return


async def _next_of(batches: AsyncIterator[object], sender: _Sender) -> object:
    """_END at the end, and when the consumer has cancelled meanwhile."""
    task = cast("asyncio.Task[object]", asyncio.current_task())
    others = task.cancelling()
    sender.waiting = task
    batch = _END
    try:
        batch = await anext(batches, _END)
    except asyncio.CancelledError:
        if not sender.stopped or task.cancelling() > others + 1:
            raise
    finally:
        sender.waiting = None
        if sender.stopped:
            task.uncancel()
    return batch


def _error_of(error: BaseException) -> tuple[int, str, object]:
    if isinstance(error, Error):
        text = _callbacks.as_utf8(str(error.strerror or ""))
        return _callbacks._errno_of(error), text, error.metadata
    return _callbacks._errno_of(error), _callbacks.describe(error), None
