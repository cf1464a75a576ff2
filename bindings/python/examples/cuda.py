"""CUDA helpers that any program has: a context, streams, memory and copies, from libcuda."""

import ctypes
from ctypes import byref, c_size_t, c_uint64, c_void_p

driver = ctypes.CDLL("libcuda.so.1")
context = c_void_p()


def call(name: str, *arguments: object) -> None:
    if code := getattr(driver, name)(*arguments):
        raise RuntimeError(f"{name}: CUresult {code}")


def use_device(number: int) -> None:
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", byref(context), number)
    call("cuCtxSetCurrent", context)


def stream() -> int:
    """Returns a stream that does not wait for the default stream. It is never destroyed."""
    handle = c_void_p()
    call("cuStreamCreate", byref(handle), 1)
    return handle.value or 0


def synchronize(stream: int) -> None:
    call("cuStreamSynchronize", c_void_p(stream))


def copy_to_host(address: int, size: int, stream: int) -> bytearray:
    """Starts a copy; do not read the result before the stream has passed it."""
    values = bytearray(size)
    target = (ctypes.c_char * size).from_buffer(values)
    call("cuMemcpyDtoHAsync_v2", target, c_uint64(address), c_size_t(size), c_void_p(stream))
    return values
