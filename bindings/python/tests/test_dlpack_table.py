"""DLPack's function table, __dlpack_c_exchange_api__, as producer and as consumer."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow
import pytest
import tvm_ffi

import standin
from capsules import Produced, ProducedOnDevice, address_in, capsule_at, name_of
from fletching import Array, DeviceArray, abi, from_buffer, from_dlpack
from fletching.abi import DLManagedTensorVersioned as Tensor
from fletching.abi import DLPackExchangeAPI as Table

NAME = b"dlpack_exchange_api"
ATTRIBUTE = "__dlpack_c_exchange_api__"

# The functions as C calls them: with the GIL, and with their exception set.
_TensorOut = ctypes.POINTER(ctypes.POINTER(Tensor))
_Export = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _TensorOut)
_Import = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_Allocate = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(abi.DLTensor), _TensorOut, ctypes.c_void_p, _SetError
)


def exchange_table(kind: Any = DeviceArray) -> Table:
    return Table.from_address(address_in(getattr(kind, ATTRIBUTE), NAME))


def function(kind: Any, name: str) -> Any:
    address = ctypes.cast(getattr(exchange_table(), name), ctypes.c_void_p).value
    return kind(address)


def export(array: object) -> Any:
    out = ctypes.POINTER(Tensor)()
    assert function(_Export, "managed_tensor_from_py_object_no_sync")(array, ctypes.byref(out)) == 0
    return out.contents


def import_(tensor: Any) -> Any:
    out = ctypes.c_void_p()
    call = function(_Import, "managed_tensor_to_py_object_no_sync")
    assert call(ctypes.addressof(tensor), ctypes.byref(out)) == 0
    assert out.value is not None
    array = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))
    return array


# --- Producer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_rule_dlpack_exchange_on_type(kind: Any) -> None:
    capsule = vars(kind)[ATTRIBUTE]
    assert name_of(capsule) == NAME
    assert kind.__dlpack_c_exchange_api__ is capsule


def test_rule_dlpack_exchange_lives_forever() -> None:
    first = ctypes.addressof(exchange_table())
    gc.collect()
    assert first == ctypes.addressof(exchange_table(Array)) == ctypes.addressof(exchange_table())


def test_rule_dlpack_exchange_functions_set() -> None:
    table = exchange_table()
    for name in (
        "managed_tensor_allocator",
        "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync",
        "current_work_stream",
    ):
        assert getattr(table, name)
    version = table.header.version
    assert (version.major, version.minor) == (abi.DLPACK_MAJOR_VERSION, abi.DLPACK_MINOR_VERSION)


def test_rule_dlpack_exchange_prev_api_null() -> None:
    assert not exchange_table().header.prev_api


def test_rule_dlpack_exchange_method_beside() -> None:
    for kind in (Array, DeviceArray):
        assert hasattr(kind, ATTRIBUTE)
        assert callable(kind.__dlpack__)
        assert callable(kind.__dlpack_device__)


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_rule_dlpack_exchange_import_takes_ownership(kind: Any) -> None:
    produced = Produced()
    tensor = export(kind.from_arrow(produced))
    assert tensor.flags == abi.DLPACK_FLAG_BITMASK_READ_ONLY
    array = import_(tensor)
    assert type(array) is DeviceArray
    assert array.to_numpy().tolist() == [1, 2, 3]
    gc.collect()
    assert "array" not in produced.releases
    del array
    gc.collect()
    assert produced.releases.count("array") == 1


def test_rejected_tensor_is_deleted_once() -> None:
    produced = Produced()
    tensor = export(Array.from_arrow(produced))
    tensor.dl_tensor.dtype.bits = 7
    with pytest.raises(TypeError, match="no Arrow type for int of 7 bits"):
        import_(tensor)
    assert produced.releases.count("array") == 1


@pytest.mark.parametrize("case", [pyarrow.array([1, None]), pyarrow.array(["a"])], ids=str)
def test_rule_dlpack_exchange_buffer_error(case: Any) -> None:
    with pytest.raises(BufferError, match=r"no DLPack type for|has nulls"):
        export(Array.from_arrow(case))


def test_rule_dlpack_exchange_result_codes() -> None:
    """With an exception set, ctypes raises it for any result; for 0 it would be a SystemError."""
    with pytest.raises(TypeError, match="expected an array of fletching"):
        export(5)


def test_rule_dlpack_exchange_no_exceptions() -> None:
    """Each failure is a result code: a C++ exception in ctypes would terminate the process."""
    event = ProducedOnDevice(device_type=12, device_id=0, sync_event=64)
    for wrong in (5, Array.from_arrow(pyarrow.array(["a"])), DeviceArray.from_arrow(event)):
        with pytest.raises((TypeError, BufferError)):
            export(wrong)


def allocate(**fields: Any) -> tuple[int, Any, list[tuple[bytes, bytes]]]:
    errors: list[tuple[bytes, bytes]] = []
    shape = fields.pop("shape", (2, 3))
    prototype = abi.DLTensor(ndim=fields.pop("ndim", 2))
    if shape is not None:
        prototype.shape = ctypes.cast((ctypes.c_int64 * 2)(*shape), ctypes.POINTER(ctypes.c_int64))
    prototype.dtype.code, prototype.dtype.bits, prototype.dtype.lanes = 2, 32, 1
    prototype.device.device_type = fields.pop("device", 1)
    prototype.byte_offset = fields.pop("byte_offset", 0)
    out = ctypes.POINTER(Tensor)()
    call = function(_Allocate, "managed_tensor_allocator")
    on_error = _SetError(lambda _, kind, message: errors.append((kind, message)))
    return call(prototype, ctypes.byref(out), None, on_error), out, errors


def test_allocator_allocates_tensor() -> None:
    result, out, errors = allocate(byte_offset=16)
    assert (result, errors) == (0, [])
    assert out.contents.dl_tensor.byte_offset == 0
    tensor = out.contents
    assert tensor.dl_tensor.shape[:2] == [2, 3]
    assert tensor.dl_tensor.strides[:2] == [3, 1]
    assert tensor.dl_tensor.data % 256 == 0
    ctypes.memset(tensor.dl_tensor.data, 0, 24)
    array = import_(tensor)
    assert array.to_numpy(writable=True).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_allocator_accepts_tensor_without_dimensions() -> None:
    """It has no dimensions and needs no shape."""
    result, out, errors = allocate(ndim=0, shape=None)
    assert (result, errors) == (0, [])
    assert out.contents.dl_tensor.ndim == 0
    abi.release(out.contents)
    result, out, errors = allocate(shape=None)
    assert (result, [kind for kind, _ in errors]) == (-1, [b"BufferError"])


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"device": 2}, b"BufferError", b"expected the CPU, got cuda"),
        ({"shape": (2, -1)}, b"BufferError", b"DLTensor.shape"),
        ({"shape": (2**40, 2**40)}, b"BufferError", b"DLTensor.shape"),
        ({"shape": (2**29, 2**29)}, b"MemoryError", b""),
    ],
    ids=str,
)
def test_rule_dlpack_exchange_set_error_on_failure(
    fields: dict[str, Any], kind: bytes, text: bytes
) -> None:
    result, out, errors = allocate(**fields)
    assert result == -1
    assert not out
    [(found, message)] = errors
    assert found == kind
    assert text in message


def test_tvm_ffi_accepts_array() -> None:
    values = numpy.arange(3, dtype="i4")
    array = from_dlpack(values)
    echo = tvm_ffi.convert(lambda tensor: tensor)
    back = echo(array)
    assert numpy.from_dlpack(back).ctypes.data == values.ctypes.data


# --- Consumer ------------------------------------------------------------------------------------


class Foreign:
    """A producer with a table, whose functions return `tensor`."""

    tensor: Any = None
    asked: list[str]

    def __dlpack__(self, **_: Any) -> object:
        type(self).asked.append("__dlpack__")
        return Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def foreign(
    tensor: Callable[[], Any], stream: int = 0, major: int = 1, name: bytes = NAME
) -> tuple[Any, Table]:
    """Returns a type with a new table, and the table."""
    kind: Any = type("ForeignTensor", (Foreign,), {"asked": []})

    def give(_: Any, out: Any) -> int:
        kind.asked.append("table")
        out[0] = ctypes.pointer(tensor())
        return 0

    def current(device_type: int, device_id: int, out: Any) -> int:
        kind.asked.append(f"stream of {device_type}:{device_id}")
        out[0] = stream or None
        return 0

    table = Table()
    fields: dict[str, Any] = {name: kind for name, kind, *_ in Table._fields_}
    table.header.version.major = major
    for field, function in (
        ("managed_tensor_from_py_object_no_sync", give),
        ("current_work_stream", current),
    ):
        setattr(table, field, fields[field](function))
    setattr(kind, ATTRIBUTE, capsule_at(ctypes.addressof(table), name))
    return kind, table


def test_rule_dlpack_exchange_looked_up_on_type() -> None:
    produced = Produced()
    kind, table = foreign(lambda: export(Array.from_arrow(produced)))
    array = from_dlpack(kind())
    assert kind.asked == ["table"]
    assert array.to_numpy().tolist() == [1, 2, 3]
    del array
    gc.collect()
    assert produced.releases.count("array") == 1
    plain = Foreign()
    Foreign.asked = []
    setattr(plain, ATTRIBUTE, getattr(kind, ATTRIBUTE))
    from_dlpack(plain)
    assert Foreign.asked == ["__dlpack__"]
    del table


def test_rule_dlpack_exchange_same_type() -> None:
    """The import must use the table of the object's own type."""
    mine, first = foreign(lambda: export(from_buffer(b"a")))
    other, second = foreign(lambda: export(from_buffer(b"bc")))
    assert len(from_dlpack(mine())) == 1
    assert len(from_dlpack(other())) == 2
    assert mine.asked == other.asked == ["table"]
    del first, second


@pytest.mark.parametrize("keyword", [{"copy": False}, {"copy": True}, {"device": (1, 0)}], ids=str)
def test_keyword_uses_method(keyword: dict[str, Any]) -> None:
    kind, table = foreign(lambda: None)
    from_dlpack(kind(), **keyword)
    assert kind.asked == ["__dlpack__"]
    del table


def test_rule_dlpack_exchange_version_checked() -> None:
    """A table of another major version is skipped in favor of an older one or the method."""
    kind, table = foreign(lambda: None, major=2)
    from_dlpack(kind())
    assert kind.asked == ["__dlpack__"]
    _, older = foreign(lambda: None)
    give, stream = older.managed_tensor_from_py_object_no_sync, older.current_work_stream
    assert give and stream
    working, last = foreign(lambda: export(from_buffer(b"a")))
    table.header.prev_api = ctypes.pointer(last.header)
    assert len(from_dlpack(kind())) == 1
    assert working.asked == ["table"]


def test_unusable_table_falls_back_to_method() -> None:
    kind, table = foreign(lambda: None, name=b"another name")
    from_dlpack(kind())
    other, incomplete = foreign(lambda: None)
    incomplete.current_work_stream = type(incomplete.current_work_stream)()
    from_dlpack(other())
    assert kind.asked == other.asked == ["__dlpack__"]
    del table


def test_rule_dlpack_exchange_work_stream_used() -> None:
    """The array's event follows the work on the producer's stream."""
    with standin.gpu() as gpu:
        source = ProducedOnDevice(device_type=2, device_id=0)
        kind, table = foreign(
            lambda: export(DeviceArray.from_arrow(source)), stream=gpu.gated().number
        )
        array = from_dlpack(kind())
        assert kind.asked == ["table", "stream of 2:0"]
        assert standin.is_pending(array)
        gpu.open()
        array.synchronize()
        del array, table


def test_import_uses_work_stream_of_tensor_device() -> None:
    with standin.gpu(), standin.active_device(1):
        source = ProducedOnDevice(device_type=2, device_id=1)
        kind, table = foreign(lambda: export(DeviceArray.from_arrow(source)))
        from_dlpack(kind())
        assert kind.asked == ["table", "stream of 2:1"]
        del table


def test_stream_argument_uses_method() -> None:
    """The table has no argument for a stream."""
    with standin.gpu() as gpu:
        kind, table = foreign(lambda: None)
        kind.__dlpack_device__ = lambda _: (2, 0)
        with pytest.raises(BufferError, match="expected cuda:0, got cpu:0"):
            from_dlpack(kind(), stream=gpu.stream().number)
        assert kind.asked == ["__dlpack__"]
        del table


def test_export_orders_default_stream() -> None:
    with standin.gpu() as gpu:
        source = ProducedOnDevice(device_type=2, device_id=0)
        array = DeviceArray.from_arrow(source).export_with_event(gpu.stream())
        before = standin.calls("cuStreamWaitEvent")
        tensor = export(array)
        assert standin.calls("cuStreamWaitEvent") == before + 1
        assert import_(tensor).sync_event != 0


def test_rule_dlpack_exchange_cpu_stream_null() -> None:
    kind, table = foreign(lambda: export(from_buffer(b"abc")))
    assert from_dlpack(kind()).to_numpy().tolist() == [97, 98, 99]
    del table


def test_import_of_fletching_array_uses_table() -> None:
    values = numpy.arange(3)
    before = sys.getrefcount(values)
    array = from_dlpack(from_dlpack(values))
    assert array.to_numpy().ctypes.data == values.ctypes.data
    del array
    gc.collect()
    assert sys.getrefcount(values) == before
