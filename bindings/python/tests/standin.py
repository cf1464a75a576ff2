"""CUDA without a GPU: the stand-in for its driver (tests/standin), streams and gates.

Importing this module loads the stand-in before the extension looks for a driver, which it finds by
name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

import libraries
from fletching import pending_releases
from fletching._pending import PendingReleases

_library = libraries.load("standin/libcuda.so.1")
PINNED, WAIT_VALUE_GEQ, NON_BLOCKING, NOT_READY = 2, 0, 1, 600


def _function(name: str, *arguments: Any) -> Any:
    function = libraries.declare(_library, name, c_int, *arguments)

    def call(*values: object) -> None:
        result = function(*values)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    return call


_out = ctypes.POINTER(c_void_p)
_retain = _function("cuDevicePrimaryCtxRetain", _out, c_int)
_release = _function("cuDevicePrimaryCtxRelease_v2", c_int)
_set_current = _function("cuCtxSetCurrent", c_void_p)
_alloc = _function("cuMemAlloc_v2", ctypes.POINTER(c_uint64), c_size_t)
_free = _function("cuMemFree_v2", c_uint64)
_host_alloc = _function("cuMemHostAlloc", _out, c_size_t, c_uint)
_host_free = _function("cuMemFreeHost", c_void_p)
_managed_alloc = _function("cuMemAllocManaged", ctypes.POINTER(c_uint64), c_size_t, c_uint)
_make_stream = _function("cuStreamCreate", _out, c_uint)
_destroy_stream = _function("cuStreamDestroy_v2", c_void_p)
_wait_value = _function("cuStreamWaitValue32_v2", c_void_p, c_uint64, c_uint32, c_uint)
_synchronize = _function("cuStreamSynchronize", c_void_p)
_begin_capture = _function("cuStreamBeginCapture_v2", c_void_p, c_uint)
_end_capture = _function("cuStreamEndCapture", c_void_p, _out)
_instantiate = _function("cuGraphInstantiateWithFlags", _out, c_void_p, c_uint64)
_launch = _function("cuGraphLaunch", c_void_p, c_void_p)
_destroy_graph = _function("cuGraphDestroy", c_void_p)
_destroy_executable = _function("cuGraphExecDestroy", c_void_p)
_query = libraries.declare(_library, "cuStreamQuery", c_int, c_void_p)
_calls = libraries.declare(_library, "FletchingStandinCalls", c_int64, c_char_p)
_settle = libraries.declare(_library, "FletchingStandinSettle", None)
_set_fault = libraries.declare(_library, "FletchingStandinSetFault", c_int, c_char_p)
reset_faults = libraries.declare(_library, "FletchingStandinResetFaults", None)


def calls(function: str) -> int:
    count: int = _calls(function.encode())
    return count


def set_fault(text: str) -> None:
    assert _set_fault(text.encode()) == 0


def is_pending(array: Any) -> bool:
    """Returns whether the event is pending after all runnable work is done."""
    _settle()
    return not array.ready()


class Stream:
    """A stream of device 0."""

    def __init__(self) -> None:
        handle = c_void_p()
        _make_stream(ctypes.byref(handle), NON_BLOCKING)
        assert handle.value is not None
        self.number = handle.value

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.number

    def is_idle(self) -> bool:
        """Returns whether the stream is idle after all runnable work is done."""
        _settle()
        return bool(_query(self.number) == 0)

    def finish(self) -> None:
        _synchronize(self.number)

    @contextmanager
    def captured(self) -> Iterator[Graph]:
        _begin_capture(self.number, 2)
        graph, made = c_void_p(), Graph(self)
        yield made
        _end_capture(self.number, ctypes.byref(graph))
        _instantiate(ctypes.byref(made.executable), graph, 0)
        _destroy_graph(graph)


class Graph:
    """A graph captured from a stream, to be launched on that stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.executable = stream, c_void_p()

    def launch(self) -> None:
        _launch(self.executable, self.stream.number)

    def destroy(self) -> None:
        self.stream.finish()
        _destroy_executable(self.executable)


class Gpu:
    """Device 0 with 64 bytes of memory, and a gate that streams can wait at."""

    def __init__(self) -> None:
        _function("cuInit", c_uint)(0)
        context = c_void_p()
        _retain(ctypes.byref(context), 0)
        _set_current(context)
        memory, word = c_uint64(), c_void_p()
        _alloc(ctypes.byref(memory), 64)
        _host_alloc(ctypes.byref(word), 64, PINNED)
        assert word.value is not None
        self.memory, self.pinned = memory.value, word.value
        self._word = c_int32.from_address(self.pinned)
        self._word.value = 0
        self.streams: list[Stream] = []

    def stream(self) -> Stream:
        self.streams.append(Stream())
        return self.streams[-1]

    def gated(self) -> Stream:
        """Returns a stream that waits until the gate is open."""
        stream = self.stream()
        _wait_value(stream.number, self.pinned, 1, WAIT_VALUE_GEQ)
        return stream

    def open(self) -> None:
        self._word.value = 1

    def managed(self) -> int:
        memory = c_uint64()
        _managed_alloc(ctypes.byref(memory), 64, 1)
        return memory.value

    def close(self) -> None:
        self.open()
        for stream in self.streams:
            stream.finish()
            _destroy_stream(stream.number)
        _free(self.memory)
        _host_free(self.pinned)
        _set_current(None)
        _release(0)


@contextmanager
def active_device(device: int) -> Iterator[None]:
    """Makes a device's primary context active but not current."""
    _retain(ctypes.byref(c_void_p()), device)
    try:
        yield
    finally:
        _release(device)


@contextmanager
def gpu() -> Iterator[Gpu]:
    device = Gpu()
    try:
        yield device
    finally:
        reset_faults()
        device.close()


def settled() -> PendingReleases:
    """Returns the counts after the releases of earlier tests have returned."""
    while (found := pending_releases()).pending or found.running:
        pass
    return found
