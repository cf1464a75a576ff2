"""Edge cases that surviving mutants revealed."""

from __future__ import annotations

import array
import ctypes
from typing import Any

import numpy
import pyarrow
import pytest

import fletching
from capsules import Produced, ProducedOnDevice, capsule_of, tensor_in
from fletching import Array, DeviceArray, Error, Schema, _core, abi, from_dlpack
from test_buffers import RELEASE_AT_EXIT, run
from test_dlpack_table import exchange_table


def test_from_buffer_rejects_wide_characters() -> None:
    with pytest.raises(TypeError, match=r"expected integers or floating point .* format 'w'"):
        fletching.from_buffer(array.array("u", "ab"))


def test_from_dlpack_copy_too_large_raises_memory_error() -> None:
    """The copy of a broadcast value is too large."""
    huge = numpy.broadcast_to(numpy.int8(1), (2**29, 2**29))
    with pytest.raises(MemoryError):
        from_dlpack(huge)


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_dlpack_copy_after_export_is_marked(kind: Any) -> None:
    exported = kind.from_arrow(Produced())
    for _ in range(2):
        same = tensor_in(exported.__dlpack__(max_version=(1, 0)))
        copy = tensor_in(exported.__dlpack__(max_version=(1, 0), copy=True))
        assert copy.flags == abi.DLPACK_FLAG_BITMASK_IS_COPIED
        assert same.flags == abi.DLPACK_FLAG_BITMASK_READ_ONLY


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_dlpack_copy_owns_shape_and_strides(kind: Any) -> None:
    """The extents of the source are freed with it; the copy keeps both lists in one block."""
    copy = tensor_in(kind.from_arrow(Produced()).__dlpack__(max_version=(1, 0), copy=True))
    shape, strides = (
        ctypes.cast(extents, ctypes.c_void_p).value
        for extents in (copy.dl_tensor.shape, copy.dl_tensor.strides)
    )
    assert shape is not None
    assert strides == shape + 8 * copy.dl_tensor.ndim


def test_type_text_of_deep_type_is_truncated() -> None:
    type_: Any = pyarrow.int8()
    for _ in range(6):
        type_ = pyarrow.list_(type_)
    assert Schema.from_arrow(type_).type == "list<list<list<list<list<...>>>>>"


def test_export_checks_requested_run_ends() -> None:
    runs = pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.int64())
    export = Array.from_arrow(pyarrow.array([1, 1, 2], pyarrow.int64())).__arrow_c_array__
    export(runs.__arrow_c_schema__())
    with pytest.raises(Error, match="does not fit"):
        export(pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.string()).__arrow_c_schema__())


def test_export_rejects_requested_unknown_format() -> None:
    for own, requested in (("i", "?"), ("?", "i"), ("?", "?")):
        other = Produced(format=requested)
        with pytest.raises(Error, match="does not fit the data"):
            Array.from_arrow(Produced(format=own)).__arrow_c_array__(capsule_of(other.schema))
        other.end()


def test_long_waiter_text_is_truncated() -> None:
    class Waiter:
        def synchronize(self, event: int) -> None:
            raise ValueError("x" * 5000)

        def wait_on(self, event: int, stream: int) -> None:
            raise ValueError("x" * 5000)

        def ready(self, event: int) -> bool:
            raise ValueError("x" * 5000)

    fletching.register_waiter(23, Waiter())
    waiting = DeviceArray.from_arrow(ProducedOnDevice(device_type=23, sync_event=64))
    for wait in (waiting.synchronize, waiting.ready, lambda: waiting.wait_on(0)):
        with pytest.raises(Error) as raised:
            wait()
        text = "ValueError: " + "x" * 5000
        assert text[:960] in str(raised.value)
        assert text[:1024] not in str(raised.value)


def test_module_names_match_all() -> None:
    public = {name for name in dir(fletching) if not name.startswith("__")}
    assert public == {*fletching.__all__, "abi"} - {"__version__"}
    assert dir(fletching) == sorted(dir(fletching))
    assert all(getattr(fletching, name) is not None for name in fletching.__all__)
    assert _core.__doc__ == "The C++ part of the package fletching: see fletching."


def test_fork_while_foreign_thread_is_in_python() -> None:
    """The child lacks that thread, so its exit must not wait for it."""
    done = run(
        RELEASE_AT_EXIT
        + """
    import os, sys, threading
    from fletching import _core
    inside, go = threading.Event(), threading.Event()
    consumer = _core.AsyncConsumer.create(lambda: (inside.set(), go.wait()))
    handler = abi.ArrowAsyncDeviceStreamHandler.from_address(consumer.handler())
    producer = abi.ArrowAsyncProducer(device_type=1)
    class Methods:
        def request(self, *_): pass
        def cancel(self, *_): pass
    abi.implement(producer, Methods())
    handler.producer = ctypes.pointer(producer)
    def end():
        handler.on_error(handler, 5, None, None)
        handler.release(handler)
    thread = threading.Thread(target=end)
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        del thread
        sys.exit(7)
    go.set()
    thread.join()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    )
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


def test_first_access_imports_name() -> None:
    done = run(
        """
    import fletching
    print(fletching.Array.__name__, fletching.send_async.__name__)
    try:
        fletching.unknown
    except AttributeError as error:
        print(error)
    """
    )
    expected = "Array send_async\nmodule 'fletching' has no attribute 'unknown'\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_exchange_work_stream_is_default_stream() -> None:
    table = exchange_table(Array)
    out = ctypes.c_void_p(1)
    assert table.current_work_stream(2, 0, ctypes.byref(out)) == 0
    assert out.value is None


def test_vulkan_operations_reject_null_device() -> None:
    event = ctypes.c_uint64(1)
    source = ProducedOnDevice(device_type=7, sync_event=ctypes.addressof(event))
    waiting, context = DeviceArray.from_arrow(source), fletching.VulkanContext(device=0)
    for wait in (context.ready, context.synchronize):
        with pytest.raises(Error, match=f"{wait.__name__}: VkDevice is NULL"):
            wait(waiting)
