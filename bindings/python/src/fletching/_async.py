# SPDX-License-Identifier: Apache-2.0
"""Async device streams in asyncio: the consumer as an async iterator, the producer from one."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import itertools
import operator
import os
import sys
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Mapping,
)
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn, Self, cast, final

from . import _callbacks, abi
from ._core import AsyncConsumer, AsyncProducer, DeviceArray, Error, Gate, Schema
from ._errno import errno_of

Metadata = (
    Mapping[str, bytes | str] | Mapping[bytes, bytes | str] | Mapping[bytes | str, bytes | str]
)
_END = object()  # not None, because an iterable may yield None by mistake
_NO_METADATA: dict[bytes | str, bytes | str] = {}
_MOST_ADDRESS = 2 * sys.maxsize + 1
_FAIR = 32  # after this many batches, an iterable that never waits yields to the event loop


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "async stream: no event loop of asyncio: expected a running one; hint: run it in "
            "asyncio, also in a program that uses trio"
        ) from None


class _Wake:
    """Wakes a task from any thread. `lost` is called when the loop is closed."""

    def __init__(self) -> None:
        self._loop = _running_loop()
        self._event = asyncio.Event()
        self.gate = Gate()  # closed from a notification until the loop has called `wake`
        self.lost: Callable[[], object] = lambda: None

    def __call__(self) -> None:
        try:
            self._loop.call_soon_threadsafe(_Woken(self))
        except RuntimeError:  # the loop is closed
            self.lost()

    def wake(self) -> None:
        self.gate.open()  # first: anything dropped at the closed gate happened before the event
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self) -> None:
        if asyncio.get_running_loop() is not self._loop:  # notifications would not wake it
            raise RuntimeError("async stream: in another event loop: expected the one of its start")
        await self._event.wait()


class _Woken:
    """A wake-up scheduled on the event loop. A closed loop drops it instead of calling it; its
    finalizer opens the gate, so the next notification calls `lost`."""

    def __init__(self, wake: _Wake) -> None:
        self._wake = wake

    def __call__(self) -> None:
        self._wake.wake()

    def __del__(self) -> None:
        self._wake.gate.open()


@final
class AsyncHandler:
    """The handler of a consumer, for one producer: pass it to `send_async`, or `take` its address.

    If no producer has taken the handler when the object is destroyed, its stream fails.
    """

    def __init__(self, address: int) -> None:
        """Owns the ArrowAsyncDeviceStreamHandler at `address`."""
        self._addresses: list[int] = []  # zero or one element: `pop` is atomic
        number = operator.index(address)
        if not 0 < number <= _MOST_ADDRESS:
            raise Error(errno.EINVAL, f"handler: expected an address, got {address}")
        self._addresses.append(number)
        self._process = os.getpid()
        self._is_own = False  # whether the consumer is of this module; its calls do not block

    def take(self) -> int:
        """Returns the address of the ArrowAsyncDeviceStreamHandler, once, for a producer outside
        Python. The producer calls `on_error` or sends the stream, and releases the handler.

        Raises Error with EINVAL if the handler was already taken.
        """
        with suppress(IndexError):
            return self._addresses.pop()
        raise Error(errno.EINVAL, "handler is taken: expected one without a producer")

    def __reduce__(self) -> NoReturn:
        """Refuses copies, which would own the same handler."""
        raise TypeError("cannot pickle 'AsyncHandler' object")

    def _fail(self, code: int, text: str) -> None:
        """Fails the stream, unless a producer has taken the handler."""
        if getattr(self, "_addresses", None) and self._process == os.getpid():
            _refuse(self.take(), code, text)

    def __del__(self) -> None:
        self._fail(errno.ECANCELED, "no producer: the handler was dropped before one took it")

    def __repr__(self) -> str:
        return f"<fletching.AsyncHandler{'' if self._addresses else ', taken'}>"


class _Ended:
    """The producer of a stream that was not started, which on_error may call."""

    def request(self, _: object, n: int) -> None:
        pass

    def cancel(self, _: object) -> None:
        pass


_ended = abi.ArrowAsyncProducer()
abi.implement(_ended, _Ended())


def _refuse(address: int, code: int, text: str) -> None:
    """Fails a stream that was not started."""
    raw = abi.ArrowAsyncDeviceStreamHandler.from_address(address)
    raw.producer = ctypes.pointer(_ended)
    if raw.on_error:
        raw.on_error(raw, code, text.encode(), None)
    abi.release(raw)


@final
class AsyncDeviceArrayStream:
    """Batches of an async producer, in the running event loop. Created by `connect`.

    Iterate it with `async for`. Leaving the loop body by `break` or an exception, `aclose`, and the
    end of the event loop cancel the stream; received batches stay valid. A producer's error is
    raised once, as a fletching.Error. Canceling a task while it waits loses no batch.

    Threads: the producer may be on any thread; use the object in its event loop.

    Arrow C device data interface, "Async Device Stream Interface".
    """

    _wake: _Wake
    _consumer: AsyncConsumer
    _closed: bool

    def __init__(self) -> None:
        raise TypeError("AsyncDeviceArrayStream: no constructor: expected a call of connect")

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'AsyncDeviceArrayStream' object")

    @classmethod
    def connect(cls, start: Callable[[AsyncHandler], object], window: int = 16) -> Self:
        """Creates a stream and passes its handler to `start`, which passes it to a producer.

        At most `window` batches are requested but not received. If `start` raises, the stream is
        canceled. If no producer takes the handler, the stream fails. Needs a running event loop.
        """
        stream = cls.__new__(cls)
        stream._wake = wake = _Wake()
        stream._consumer = AsyncConsumer.create(wake, wake.gate)
        stream._closed = False
        dropped = weakref.ref(stream)
        wake.lost = lambda: _cancel(dropped())
        handler = AsyncHandler(stream._consumer.handler())
        handler._is_own = True
        try:
            stream._consumer.request(window)
            start(handler)
        except BaseException as error:
            stream.cancel()
            handler._fail(*_error_of(error)[:2])
            raise
        return stream

    async def schema(self) -> Schema:
        """Waits for the producer's schema and returns it."""
        while True:
            self._wake.clear()
            schema = self._consumer.schema
            if schema is not None:
                return schema
            self._raise_if_over()
            await self._wake.wait()

    @property
    def device_type(self) -> int:
        """A value of fletching.abi.DeviceType; 0 before the schema."""
        return self._consumer.device_type

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The stream's metadata (`additional_metadata`); empty before the schema."""
        return self._consumer.metadata

    @property
    def batch_metadata(self) -> dict[bytes, bytes]:
        """The metadata of the last received batch; empty before the first."""
        return self._consumer.batch_metadata

    def __aiter__(self) -> AsyncGenerator[DeviceArray]:
        return self._batches()

    async def _batches(self) -> AsyncGenerator[DeviceArray]:
        """A generator, so that the event loop closes it when the loop ends."""
        take = self._consumer.take
        try:
            while not self._closed:
                # Most batches have already arrived.
                batch = take(1)
                if batch is None and (batch := await self._next()) is None:
                    return
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
            over = self._consumer.ended  # read before `take`: the end comes after the last task
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
        """Cancels the stream and drops the batches that were not received."""
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()


def _cancel(stream: AsyncDeviceArrayStream | None) -> None:
    if stream is not None:
        stream._closed = True
        stream._consumer.cancel()


class _Sender:
    """Brings the reports of the executor's thread into the event loop."""

    task: asyncio.Task[object]

    def __init__(self) -> None:
        self.wake = _Wake()
        self.stopped = False
        self.waiting: asyncio.Task[object] | None = None  # set while it waits for the iterable
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


@final
class _Sending(Coroutine[Any, Any, None]):
    """The coroutine of `send_async`. Fails the stream if it is closed before its first step."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], handler: AsyncHandler) -> None:
        self._coroutine = coroutine
        self._handler = handler

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(
        self,
        typ: type[BaseException] | BaseException,
        val: object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        self._cancel()
        if val is None and tb is None:
            return self._coroutine.throw(typ)
        return self._coroutine.throw(cast("Any", typ), val, tb)

    def close(self) -> None:
        self._cancel()
        self._coroutine.close()

    def _cancel(self) -> None:
        self._handler._fail(errno.ECANCELED, _CANCELLED)

    def __await__(self) -> Generator[Any, Any, None]:
        return self._coroutine.__await__()


_CANCELLED = "CancelledError: the task of the producer was cancelled"


def send_async(
    schema: Schema,
    device_type: int,
    batches: AsyncIterable[object],
    handler: AsyncHandler | int,
    *,
    metadata: Metadata | None = None,
) -> Coroutine[Any, Any, None]:
    """Sends the batches of an async iterable to a handler's consumer, as that requests them.

    A batch is an object with an array of the type of `schema`, or a pair of such an object and its
    metadata. `metadata` is the metadata of the whole stream. `handler` is the handler of a Python
    consumer, or the address of an ArrowAsyncDeviceStreamHandler.

    The call takes the handler, and raises Error with EINVAL if it already has a producer. The
    coroutine returns after the handler's release. An exception from `batches`, or a batch of
    another type, fails the stream and is raised here too. If the consumer cancels, the iterator is
    closed. If the task is canceled, even before its first step, the stream fails with ECANCELED.
    """
    taken = AsyncHandler(handler.take() if isinstance(handler, AsyncHandler) else handler)
    taken._is_own = isinstance(handler, AsyncHandler) and handler._is_own
    return _Sending(_send_async(schema, device_type, batches, taken, metadata), taken)


async def _send_async(
    schema: Schema,
    device_type: int,
    batches: AsyncIterable[object],
    handler: AsyncHandler,
    metadata: Metadata | None,
) -> None:
    address = handler.take()
    try:
        sender = _Sender()
        wakes = (sender.wake, sender.on_stop, sender.released, sender.wake.gate)
        pairs = dict(cast("Mapping[bytes | str, bytes | str]", metadata or {}))
        producer = AsyncProducer.start(address, device_type, pairs, *wakes, handler._is_own)
    except BaseException as error:
        _refuse(address, *_error_of(error)[:2])
        raise
    iterator: AsyncIterator[object] | None = None
    sender.task = cast("asyncio.Task[object]", asyncio.current_task())
    try:
        iterator = aiter(batches)
        producer.schema(schema)
        await _send(producer, sender, iterator)
    except asyncio.CancelledError:
        producer.fail(errno.ECANCELED, _CANCELLED)
        raise
    except BaseException as error:
        producer.fail(*_error_of(error))
        raise
    finally:
        del sender.task  # an exception keeps the sender alive, and in a cycle with it the batch
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
    await sender.released.wait()


async def _send(producer: AsyncProducer, sender: _Sender, batches: AsyncIterator[object]) -> None:
    demand = 0
    for sent in itertools.count(1):
        if sent % _FAIR == 0:
            await asyncio.sleep(0)
        if demand == 0:
            demand = await _demand(producer, sender)
        if sender.stopped:
            return
        # Inline, because a coroutine per batch costs more than the batch.
        others = sender.task.cancelling()
        sender.waiting = sender.task
        batch: object = _END  # stays set if the consumer cancels meanwhile
        try:
            batch = await anext(batches, _END)
        except asyncio.CancelledError:
            if not sender.stopped or sender.task.cancelling() > others + 1:
                raise
        finally:
            sender.waiting = None
            if sender.stopped:
                sender.task.uncancel()
        if batch is _END:
            producer.end()
            return
        array, metadata = batch, _NO_METADATA
        if isinstance(batch, tuple):
            array, metadata = batch[0], dict(batch[1])
        if not producer.push(array, metadata):
            return
        del array, batch  # the consumer owns it
        demand -= 1


async def _demand(producer: AsyncProducer, sender: _Sender) -> int:
    """Returns the number of batches that the consumer has requested; 0 if it has canceled."""
    sender.wake.clear()
    while (demand := producer.demand) == 0 and not sender.stopped:
        await sender.wake.wait()
        sender.wake.clear()
    return demand


def _error_of(error: BaseException) -> tuple[int, str, object]:
    if isinstance(error, Error):
        text = _callbacks.as_utf8(str(error.strerror or ""))
        return errno_of(error), text, error.metadata
    return errno_of(error), _callbacks.describe(error), None
