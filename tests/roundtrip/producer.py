"""The reference producer, libfletching_producer (cpp/producer/producer.h)."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_void_p

from fletching.abi import ArrowDeviceArray, ArrowSchema
from libraries import declare, load

BACKEND = "cpu"


class Message(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char * 1024),)
    text: bytes


class Counters(ctypes.Structure):
    """The live structs, and the calls since the last reset."""

    _fields_ = tuple(
        (name, c_int64)
        for name in (
            "live_allocations",
            "live_schemas",
            "live_arrays",
            "live_streams",
            "exported",
            "released",
            "double_released",
        )
    )


class ProducerError(Exception):
    """A function of the producer failed; the message is the producer's."""


class Producer:
    """Typed calls. Functions that can fail raise ProducerError."""

    def __init__(self) -> None:
        library = load("libfletching_producer.so")
        schema, array = POINTER(ArrowSchema), POINTER(ArrowDeviceArray)
        message = POINTER(Message)
        names = (c_char_p, c_char_p)  # backend and case

        def function(name: str, result: type | None, *arguments: type) -> ctypes._NamedFuncPointer:
            return declare(library, f"FletchingProducer{name}", result, *arguments)

        self._case_count = function("CaseCount", c_int32)
        self._case_name = function("CaseName", c_char_p, c_int32)
        self._export_array = function("ExportArray", c_int, *names, schema, array, message)
        run = (c_int64, c_int64, c_void_p)  # batches, fail_at and the handler
        self._run_async = function("RunAsync", c_int, c_char_p, c_void_p, c_char_p, *run, message)
        self._await_async = function("AwaitAsync", None)
        self._read_counters = function("ReadCounters", None, POINTER(Counters))
        self._reset_counters = function("ResetCounters", None)

    def cases(self) -> list[str]:
        return [self._case_name(i).decode() for i in range(self._case_count())]

    def export_array(self, case: str, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
        self._run(self._export_array, case, schema, array)

    def run_async(self, case: str, batches: int, fail_at: int, handler: int) -> None:
        """Sends a stream to an async handler on a producer thread. If `fail_at` is not negative,
        the stream fails before that batch."""
        message = Message()
        arguments = (None, case.encode(), batches, fail_at, handler, message)
        code = self._run_async(BACKEND.encode(), *arguments)
        self._check(code, self._run_async, message)

    def await_async(self) -> None:
        """Blocks until every handler is released."""
        self._await_async()

    def counters(self) -> dict[str, int]:
        counters = Counters()
        self._read_counters(counters)
        return {name: getattr(counters, name) for name, *_ in Counters._fields_}

    def reset_counters(self) -> None:
        self._reset_counters()

    def _run(self, function: ctypes._NamedFuncPointer, case: str, *arguments: object) -> None:
        message = Message()
        code = function(BACKEND.encode(), case.encode(), *arguments, message)
        self._check(code, function, message)

    @staticmethod
    def _check(code: int, function: ctypes._NamedFuncPointer, message: Message) -> None:
        if code != 0:
            text = message.text.decode("utf-8", "backslashreplace")
            raise ProducerError(f"{function.__name__}: failed with {code}: {text}")
