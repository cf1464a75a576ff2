"""Arrays over other objects' memory, and the release of Python objects by foreign code."""

from __future__ import annotations

import array
import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest

import fletching
from capsules import struct_in
from fletching import abi, from_buffer
from fletching.abi import ArrowArray

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(abi.__file__).parents[1])}


@pytest.mark.parametrize(
    "dtype",
    ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "<i4", "=i4", "l", "q"],
)
def test_from_buffer_shares_numpy_memory(dtype: str) -> None:
    values = numpy.arange(5).astype(dtype)
    found = pyarrow.array(from_buffer(values))
    assert found.equals(pyarrow.array(values))
    assert found.buffers()[1].address == values.ctypes.data


@pytest.mark.parametrize(
    ("source", "type_", "values"),
    [
        (b"ab", "uint8", [97, 98]),
        (bytearray(b"ab"), "uint8", [97, 98]),
        (memoryview(b"ab").cast("c"), "uint8", [97, 98]),
        (array.array("d", [1.5, 2]), "float64", [1.5, 2]),
        ((ctypes.c_int16 * 2)(-1, 2), "int16", [-1, 2]),
        (b"", "uint8", []),
        (numpy.arange(6)[2:4], "int64", [2, 3]),
    ],
)
def test_from_buffer_accepts_other_buffers(source: Any, type_: str, values: list[Any]) -> None:
    found = from_buffer(source, name="x")
    assert (found.type, found.null_count, found.schema.name) == (type_, 0, "x")
    assert not found.schema.nullable
    assert pyarrow.array(found).to_pylist() == values


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (numpy.zeros((2, 2)), "number of dimensions is wrong: expected 1, got 2"),
        (numpy.zeros(()), "expected 1, got 0"),
        (numpy.zeros(2, ">i4"), "got format '>i'"),
        (numpy.zeros(2, bool), "hint: Arrow's booleans are bits"),
        (numpy.zeros(2, "c8"), "got format 'Zf'"),
        (numpy.zeros(2, "i4,i4"), "got format 'T{"),
    ],
)
def test_from_buffer_rejects_unsupported_type(source: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        from_buffer(source)


@pytest.mark.parametrize("order", [">", "!", "<", "=", "@"])
def test_from_buffer_ignores_byte_order_of_bytes(order: str) -> None:
    """ctypes and NumPy omit the byte order of such elements."""
    exporter = pytest.importorskip("_testbuffer").ndarray
    is_native = order in "=@" or (order == "<") == (sys.byteorder == "little")
    for text, value in (("b", -1), ("B", 255)):
        found = from_buffer(exporter([value, 2], shape=[2], format=order + text))
        assert pyarrow.array(found).to_pylist() == [value, 2]
    two_bytes = exporter([-1, 2], shape=[2], format=order + "h")
    if is_native:
        assert pyarrow.array(from_buffer(two_bytes)).to_pylist() == [-1, 2]
    else:
        with pytest.raises(TypeError, match=f"got format '{order}h'"):
            from_buffer(two_bytes)


def test_from_buffer_rejects_other_objects() -> None:
    with pytest.raises(TypeError, match="bytes-like object is required"):
        from_buffer(5)
    with pytest.raises((BufferError, ValueError)):
        from_buffer(numpy.arange(6)[::2])


# --- Release -------------------------------------------------------------------------------------


def is_held(source: bytearray) -> bool:
    try:
        source.append(0)
    except BufferError:
        return True
    return False


def exported(source: bytearray) -> ArrowArray:
    """Returns a struct that is the only owner of the memory."""
    moved = ArrowArray()
    capsules = from_buffer(source).__arrow_c_array__()
    abi.move(struct_in(ArrowArray, capsules[1]), moved)
    del capsules
    gc.collect()
    return moved


def test_release_on_foreign_thread() -> None:
    """The thread was started by C and is unknown to Python."""
    source = bytearray(8)
    struct = exported(source)
    assert is_held(source)
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    release = ctypes.cast(struct.release, ctypes.c_void_p)
    assert libc.pthread_create(ctypes.byref(thread), None, release, ctypes.byref(struct)) == 0
    assert libc.pthread_join(thread, None) == 0
    assert abi.is_released(struct)
    assert not is_held(source)


def test_release_on_many_threads() -> None:
    sources = [bytearray(8) for _ in range(200)]
    structs = [exported(source) for source in sources]

    def release(part: list[ArrowArray]) -> None:
        for struct in part:
            abi.release(struct)

    threads = [threading.Thread(target=release, args=(structs[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(map(is_held, sources))


def test_release_with_exception_set() -> None:
    """The capsules are destroyed while the exception propagates out of the method."""
    source = bytearray(8)

    class Raising:
        def __arrow_c_array__(self) -> object:
            capsules = from_buffer(source).__arrow_c_array__()
            raise LookupError(f"while {len(capsules)} capsules are destroyed")

    with pytest.raises(LookupError, match="while 2 capsules") as error:
        fletching.Array.from_arrow(Raising())
    del error
    gc.collect()
    assert not is_held(source)


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, **environment},
    )


RELEASE_AT_EXIT = """
    import ctypes
    from fletching import abi, from_buffer
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    def keep(source):
        capsules = from_buffer(source).__arrow_c_array__()
        struct = abi.ArrowArray.from_address(libc.malloc(ctypes.sizeof(abi.ArrowArray)))
        abi.move(abi.ArrowArray.from_address(get(capsules[1], b"arrow_array")), struct)
        address = ctypes.c_void_p(ctypes.addressof(struct))
        return ctypes.cast(struct.release, ctypes.c_void_p), address
"""


def test_release_after_interpreter_end() -> None:
    done = run(
        RELEASE_AT_EXIT
        + """
    for _ in range(3):
        libc.__cxa_atexit(*keep(bytearray(8)), None)
    """
    )
    assert done.returncode == 0, done.stderr
    expected = "fletching: released after the end of Python: the objects are leaked\n"
    assert done.stderr == expected  # once


def test_forked_child_uses_array() -> None:
    done = run(
        RELEASE_AT_EXIT
        + """
    import os, sys
    source = bytearray(8)
    array = from_buffer(source)
    pid = os.fork()
    again = from_buffer(bytearray(4))
    del array, again
    source.append(0)
    if pid == 0:
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")
