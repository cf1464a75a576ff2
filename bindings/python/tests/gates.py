"""The reference producer's gate and queues (cpp/producer/gate.h), through ctypes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_void_p
from types import TracebackType
from typing import Any, Self

from fletching.abi import ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema
from libraries import declare, load
from producer import Message

OLD, NEW = 0, 1

_library = load("libfletching_producer.so")
_handle = (POINTER(c_void_p), POINTER(Message))


def _function(name: str, *arguments: Any, result: Any = c_int) -> Any:
    return declare(_library, f"FletchingProducer{name}", result, *arguments)


_gate_create = _function("GateCreate", c_char_p, *_handle)
_gate_open = _function("GateOpen", c_void_p, POINTER(Message))
_gate_destroy = _function("GateDestroy", c_void_p, POINTER(Message))
_export_behind = _function(
    "ExportArrayBehind",
    *(c_void_p, c_char_p, POINTER(ArrowSchema), POINTER(ArrowDeviceArray), POINTER(Message)),
)
_stream_behind = _function(
    "ExportStreamBehind",
    *(c_void_p, c_char_p, c_int64, c_int64, POINTER(ArrowDeviceArrayStream), POINTER(Message)),
)
_run_async = _function(
    "RunAsync",
    *(c_char_p, c_void_p, c_char_p, c_int64, c_int64, c_void_p, POINTER(Message)),
)
_await_async = _function("AwaitAsync", result=None)
_queue_create = _function("QueueCreate", c_char_p, *_handle)
_queue_handle = _function("QueueHandle", c_void_p, result=c_void_p)
_queue_read = _function(
    "QueueRead", c_void_p, c_char_p, POINTER(ArrowDeviceArray), POINTER(Message)
)
_queue_idle = _function("QueueIsIdle", c_void_p, POINTER(c_int32), POINTER(Message))
_queue_verify = _function("QueueVerify", c_void_p, c_int32, POINTER(c_int64), POINTER(Message))
_queue_destroy = _function("QueueDestroy", c_void_p, POINTER(Message))


def _run(function: Any, *arguments: Any) -> None:
    message = Message()
    code = function(*arguments, message)
    assert code == 0, message.text.decode("utf-8", "backslashreplace")


class _Owned:
    """An object of the producer's, destroyed at the end of a with block."""

    def __init__(self, create: Any, destroy: Any, backend: str) -> None:
        self.pointer = c_void_p()
        self._destroy = destroy
        _run(create, backend.encode(), byref(self.pointer))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        _run(self._destroy, self.pointer)


class Gate(_Owned):
    """An array behind it waits until it is opened, and so do the batches of its streams."""

    def __init__(self, backend: str, case: str, *, export: bool = True) -> None:
        super().__init__(_gate_create, _gate_destroy, backend)
        self._case = case.encode()
        self.schema, self.array = ArrowSchema(), ArrowDeviceArray()
        if export:
            _run(_export_behind, self.pointer, self._case, self.schema, self.array)

    def export_stream(self, batches: int, fail_at: int) -> ArrowDeviceArrayStream:
        """Fails before batch `fail_at`, if that is not negative."""
        stream = ArrowDeviceArrayStream()
        _run(_stream_behind, self.pointer, self._case, batches, fail_at, stream)
        return stream

    def open(self) -> None:
        _run(_gate_open, self.pointer)

    @contextmanager
    def opened_at_the_end(self) -> Iterator[None]:
        """A queue would wait for ever for a gate that a failed test has left shut."""
        try:
            yield
        finally:
            self.open()


class Queue(_Owned):
    """A consumer's queue, which copies the buffers of an array."""

    def __init__(self, backend: str, case: str) -> None:
        super().__init__(_queue_create, _queue_destroy, backend)
        self._case = case.encode()

    @property
    def handle(self) -> int:
        handle: int | None = _queue_handle(self.pointer)
        return handle or 0

    def read(self, array: ArrowDeviceArray) -> None:
        _run(_queue_read, self.pointer, self._case, array)

    def is_idle(self) -> bool:
        idle = c_int32()
        _run(_queue_idle, self.pointer, byref(idle))
        return bool(idle.value)

    def verify(self, expected: int) -> int:
        """How much was compared with the data before or after the gate."""
        asserted = c_int64()
        _run(_queue_verify, self.pointer, expected, byref(asserted))
        return asserted.value


def run_async(
    backend: str, gate: Gate | None, case: str, batches: tuple[int, int], handler: int
) -> None:
    """Sends a stream to an async handler, on a thread of the producer. `batches`: how many, and
    before which it fails, if that is not negative."""
    pointer = gate.pointer if gate else None
    _run(_run_async, backend.encode(), pointer, case.encode(), *batches, handler)


def await_async() -> None:
    """Blocks until every handler is released."""
    _await_async()
