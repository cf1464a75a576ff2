"""The two ends of an async stream as tables of C functions, for the traces of the conformance suite
(tests/conformance/README.md)."""

from __future__ import annotations

import ctypes
import errno
import itertools
import queue
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_int64, c_void_p
from typing import Any

from capsules import GivenStructs, struct_in
from fletching import DeviceArray, Error, Schema, abi, make_schema
from fletching._core import AsyncConsumer, AsyncProducer
from fletching._errno import errno_of

# Reports a notification of the application to the suite.
Notify = CFUNCTYPE(None, c_void_p, c_char_p, c_int)


def _table(name: str, **members: Any) -> type[ctypes.Structure]:
    """Returns the struct of that name in conformance.h."""
    first = (("size", ctypes.c_size_t), ("self", c_void_p))
    return type(name, (ctypes.Structure,), {"_fields_": (*first, *members.items())})


def _function(result: Any, *arguments: Any) -> Any:
    return CFUNCTYPE(result, c_void_p, *arguments)


ProducerTable = _table(
    "FletchingSubjectProducer",
    schema=_function(None, POINTER(abi.ArrowSchema)),
    batch=_function(None, POINTER(abi.ArrowDeviceArray)),
    failing_batch=c_void_p,  # a Python batch always exists when it is sent
    end=_function(None),
    fail=_function(None, c_int),
    run=_function(c_int),
    state=_function(c_int32),
    release=_function(None),
)
ConsumerTable = _table(
    "FletchingSubjectConsumer",
    handler=c_void_p,
    request=_function(None, c_int64),
    take=_function(c_int),
    drop=c_void_p,  # a Python application does not discard untaken batches
    cancel=_function(None),
    refuse_next=c_void_p,  # nor does it refuse batches
    state=_function(c_int32),
    release=_function(None),
)

_streams: dict[int, Any] = {}
_numbers = itertools.count(1)


def _trampoline(name: str, kind: Any) -> Any:
    def call(number: int, *arguments: Any) -> Any:
        if name == "release":
            return _streams.pop(number).close()
        return getattr(_streams[number], name)(*arguments)

    return kind(call)


_TRAMPOLINES = {
    kind: {n: _trampoline(n, t) for n, t, *_ in kind._fields_[2:] if t is not c_void_p}
    for kind in (ProducerTable, ConsumerTable)
}


def hand_out(stream: Any, out: Any) -> None:
    """Fills the table with the methods of the stream, which lives until its release."""
    out.self = next(_numbers)
    _streams[out.self] = stream
    for name, function in _TRAMPOLINES[type(out)].items():
        setattr(out, name, function)


# --- The producer --------------------------------------------------------------------------------


class Gate:
    """Blocks the executor's thread from when it arrives here until `open`."""

    def __init__(self, entered: Callable[[], object]) -> None:
        self._entered, self._opened = entered, threading.Event()
        self.gone = threading.Event()
        self._handler = abi.ArrowAsyncDeviceStreamHandler()
        abi.implement(self._handler, self)
        address = ctypes.addressof(self._handler)
        # Producers that were started earlier still make only the calls that are already queued.
        self._producer = AsyncProducer.start(address, 1, {}, int, int, self.gone.set)
        self._producer.schema(make_schema("n"))

    def on_schema(self, *_: object) -> int:
        self._entered()
        self._opened.wait()
        return errno.EPROTO

    def on_next_task(self, *_: object) -> int:
        return errno.EPROTO

    def on_error(self, *_: object) -> None:
        pass

    def open(self) -> None:
        self._opened.set()


class PlayedProducer:
    """Makes its calls on the single thread of the module's executor, which a Gate holds until the
    suite runs a job. The executor lets a producer with more calls make them at once: such a call
    waits here until it is due."""

    def __init__(self, handler: int) -> None:
        self._theirs = abi.ArrowAsyncDeviceStreamHandler.from_address(handler)
        # Where the executor's thread has stopped: True at a call that is not due, False at a gate.
        self._arrivals: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._due: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._is_due = self._has_called = self._is_inside = self._waits = False
        self._is_closing = False
        self._gates: list[Gate] = []
        self._add_gate()
        self._arrivals.get()
        self._gone = threading.Event()
        self._handler = abi.ArrowAsyncDeviceStreamHandler()
        abi.implement(self._handler, self)
        address = ctypes.addressof(self._handler)
        self._producer = AsyncProducer.start(address, 1, {}, int, int, self._end)
        self._theirs.producer = self._handler.producer

    def _add_gate(self) -> None:
        self._gates.append(Gate(lambda: self._arrivals.put(False)))

    def _end(self) -> None:
        self._gone.set()
        if self._is_closing:
            self._arrivals.put(False)

    # --- Functions of the table

    def schema(self, schema: Any) -> None:
        self._producer.schema(Schema.from_arrow(GivenStructs("schema", schema.contents)))

    def batch(self, batch: Any) -> None:
        schema = make_schema("+s").__arrow_c_schema__()
        given = GivenStructs("device_array", struct_in(abi.ArrowSchema, schema), batch.contents)
        self._producer.push(DeviceArray.from_arrow(given), {})

    def end(self) -> None:
        self._producer.end()

    def fail(self, code: int) -> None:
        self._producer.fail(code, "the source has failed")

    def run(self) -> int:
        """Runs the pending jobs until one has called the handler."""
        if self._is_inside:
            return 0
        self._is_due, self._has_called = True, False
        for _ in range(3):  # a job that makes no call may queue another job
            if self._waits:
                self._waits = False
                self._due.put(True)
            else:
                self._add_gate()
                self._gates[-2].open()
            self._waits = self._arrivals.get()
            if self._has_called:
                break
        self._is_due = False
        return 0

    def state(self) -> int:
        """Returns -1, which is ahead of the trace, while a call waits."""
        return -1 if self._waits else self._producer.state

    def close(self) -> None:
        self._is_closing = True
        if self._waits:
            self._due.put(False)
        self._gates[-1].open()
        self._producer.fail(errno.EIO, "the trace has ended")
        while not self._gone.is_set():
            if self._arrivals.get():
                self._due.put(False)
        for gate in self._gates:
            gate.gone.wait()
        del self._producer  # the producer keeps the schema

    # --- Callbacks of the handler

    def _call(self, name: str, *arguments: Any) -> Any:
        if not self._is_due:
            self._arrivals.put(True)
            if not self._due.get():
                return errno.EIO
        self._is_due, self._has_called = False, True
        self._is_inside = True
        result = getattr(self._theirs, name)(self._theirs, *arguments)
        self._is_inside = False
        return result

    def on_schema(self, _: object, *arguments: Any) -> Any:
        return self._call("on_schema", *arguments)

    def on_next_task(self, _: object, *arguments: Any) -> Any:
        return self._call("on_next_task", *arguments)

    def on_error(self, _: object, *arguments: Any) -> Any:
        return self._call("on_error", *arguments)

    def release(self, _: object) -> None:
        self._call("release")


# --- The consumer --------------------------------------------------------------------------------


class PlayedConsumer:
    """The consumer only notifies of a change; this class determines the change."""

    def __init__(self, notify: Any, context: int | None) -> None:
        self._notify, self._context = notify, context
        self._knows_schema = self._knows_end = False
        self._consumer = AsyncConsumer.create(self._wake)
        self.handler = self._consumer.handler()

    def _wake(self) -> None:
        what, code = b"task", 0
        if self._consumer.schema is not None and not self._knows_schema:
            self._knows_schema, what = True, b"schema"
        elif self._consumer.ended and not self._knows_end:
            self._knows_end, what = True, b"end"
            try:
                self._consumer.raise_error()
            except (Error, MemoryError) as error:
                what, code = b"error", errno_of(error)
        self._notify(self._context, what, code)

    def request(self, n: int) -> None:
        self._consumer.request(n)

    def take(self) -> int:
        try:
            return errno.ENOENT if self._consumer.take(0) is None else 0
        except (Error, MemoryError) as error:
            return errno_of(error)

    def cancel(self) -> None:
        self._consumer.cancel()

    def state(self) -> int:
        return self._consumer.state

    def close(self) -> None:
        del self._consumer
