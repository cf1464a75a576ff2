"""DLPack tensors, both ways."""

from __future__ import annotations

import ctypes
import errno
import gc
import sys
from typing import Any

import numpy
import pyarrow
import pytest
import tvm_ffi

import fletching
import standin
from capsules import Produced, ProducedOnDevice, name_of
from fletching import Array, DeviceArray, abi, from_buffer, from_dlpack
from test_buffers import run

KINDS = [Array, DeviceArray]
each_kind = pytest.mark.parametrize("kind", KINDS)

_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


def tensor_in(capsule: object) -> abi.DLManagedTensorVersioned:
    return abi.DLManagedTensorVersioned.from_address(_get(capsule, b"dltensor_versioned"))


class Given:
    """A producer that returns a capsule of the test's."""

    def __init__(self, capsule: object, device: tuple[int, int] = (1, 0)) -> None:
        self.capsule, self.device = capsule, device
        self.keywords: dict[str, Any] = {}

    def __dlpack__(self, **keywords: Any) -> object:
        self.keywords = keywords
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


# --- Export --------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_numpy_takes_our_tensors(kind: Any, dtype: str) -> None:
    values = numpy.arange(5).astype(dtype)
    found = numpy.from_dlpack(kind.from_arrow(from_buffer(values)))
    assert found.dtype == values.dtype
    assert found.tolist() == values.tolist()
    assert found.ctypes.data == values.ctypes.data
    assert not found.flags.writeable


@each_kind
def test_the_tensor_keeps_the_data(kind: Any) -> None:
    produced = Produced()
    found = numpy.from_dlpack(kind.from_arrow(produced))
    gc.collect()
    assert "array" not in produced.releases
    assert found.tolist() == [1, 2, 3]
    del found
    gc.collect()
    assert "array" in produced.releases


@each_kind
def test_names_and_destructors(kind: Any) -> None:
    produced = Produced()
    array = kind.from_arrow(produced)
    assert array.__dlpack_device__() == (1, 0)
    capsule = array.__dlpack__(max_version=(1, 0))
    assert name_of(capsule) == b"dltensor_versioned"
    tensor = tensor_in(capsule)
    assert (tensor.version.major, tensor.flags) == (1, abi.DLPACK_FLAG_BITMASK_READ_ONLY)
    del array
    assert "array" not in produced.releases
    del capsule
    assert "array" in produced.releases


@each_kind
def test_the_second_tensor_is_as_the_first(kind: Any) -> None:
    """It is made in another way."""
    produced = Produced()
    array = kind.from_arrow(produced)
    none = dict.fromkeys(("stream", "dl_device", "copy"))
    capsules = [array.__dlpack__(max_version=(1, 0), **none) for _ in range(3)]
    first, second, _ = map(tensor_in, capsules)
    for name in ("data", "ndim", "byte_offset"):
        assert getattr(first.dl_tensor, name) == getattr(second.dl_tensor, name)
    given: Any = Given(capsules.pop())
    assert numpy.from_dlpack(given).tolist() == numpy.from_dlpack(array).tolist()
    assert (second.version.major, second.flags) == (1, abi.DLPACK_FLAG_BITMASK_READ_ONLY)
    assert ctypes.addressof(first) != ctypes.addressof(second)
    capsules.pop(0)
    del array
    assert "array" not in produced.releases
    given = Given(capsules.pop())
    assert numpy.from_dlpack(given).tolist() == [1, 2, 3]
    del given
    assert "array" in produced.releases


@each_kind
@pytest.mark.parametrize(
    ("keywords", "name"),
    [
        ({}, b"dltensor"),
        ({"max_version": None}, b"dltensor"),
        ({"max_version": (0, 8)}, b"dltensor"),
        ({"max_version": (1, 0), "dl_device": (1, 0)}, b"dltensor_versioned"),
        ({"max_version": (1, 0), "copy": True}, b"dltensor_versioned"),
    ],
)
def test_other_demands_on_a_described_tensor(kind: Any, keywords: Any, name: bytes) -> None:
    array = kind.from_arrow(Produced())
    array.__dlpack__(max_version=(1, 0))
    capsule = array.__dlpack__(**keywords)
    assert name_of(capsule) == name
    if keywords.get("copy"):
        assert tensor_in(capsule).flags == abi.DLPACK_FLAG_BITMASK_IS_COPIED


@each_kind
@pytest.mark.parametrize(
    "keywords",
    [
        *({"max_version": version} for version in (1, (1,), (1, "0"), (1, -1), (1 << 70, 0))),
        {"max_version": (1, 0), "other": None},
        {"max_version": (1, 0), "stream": "1"},
    ],
)
def test_wrong_arguments_before_and_after(kind: Any, keywords: Any) -> None:
    array = kind.from_arrow(Produced())
    with pytest.raises(TypeError):
        array.__dlpack__(**keywords)
    array.__dlpack__(max_version=(1, 0))
    with pytest.raises(TypeError):
        array.__dlpack__(**keywords)


@each_kind
def test_the_method_of_another_object(kind: Any) -> None:
    with pytest.raises(TypeError, match="doesn't apply to a 'int' object"):
        kind.__dlpack__(1, max_version=(1, 0))


@each_kind
def test_a_used_capsule_deletes_nothing(kind: Any) -> None:
    produced = Produced()
    capsule = kind.from_arrow(produced).__dlpack__(max_version=(1, 3))
    tensor = tensor_in(capsule)
    assert _rename(capsule, b"used_dltensor_versioned") == 0
    del capsule
    gc.collect()
    assert "array" not in produced.releases
    abi.release(tensor)
    assert "array" in produced.releases


@each_kind
@pytest.mark.parametrize("version", [None, (0, 8)])
def test_an_old_consumer_gets_a_copy(kind: Any, version: Any) -> None:
    """The struct without flags cannot say that the memory is read-only."""
    produced = Produced()
    capsule = kind.from_arrow(produced).__dlpack__(max_version=version)
    assert name_of(capsule) == b"dltensor"
    assert "array" in produced.releases
    array = from_dlpack(Given(capsule))
    assert name_of(capsule) == b"used_dltensor"
    assert pyarrow.array(array).to_pylist() == [1, 2, 3]
    with pytest.raises(BufferError, match="copy: expected a copy to be allowed"):
        kind.from_arrow(Produced()).__dlpack__(copy=False)


@each_kind
def test_copies(kind: Any) -> None:
    values = numpy.arange(4, dtype="i4")
    array = kind.from_arrow(from_buffer(values))
    copy = numpy.from_dlpack(array, copy=True)
    assert copy.tolist() == values.tolist()
    assert copy.ctypes.data != values.ctypes.data
    assert copy.flags.writeable
    assert numpy.from_dlpack(array, copy=False).ctypes.data == values.ctypes.data
    tensor = tensor_in(array.__dlpack__(max_version=(1, 0), copy=True))
    assert tensor.flags == abi.DLPACK_FLAG_BITMASK_IS_COPIED


def test_an_offset_is_in_the_pointer() -> None:
    array = Array.from_arrow(pyarrow.array([1, 2, 3, 4], pyarrow.int16())[1:3])
    assert numpy.from_dlpack(array).tolist() == [2, 3]
    assert numpy.from_dlpack(array, copy=True).tolist() == [2, 3]


@each_kind
def test_lists_of_a_fixed_size_are_dimensions(kind: Any) -> None:
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    array = kind.from_arrow(pyarrow.FixedSizeListArray.from_arrays(values.ravel(), 3))
    assert numpy.from_dlpack(array).tolist() == values.tolist()
    assert numpy.from_dlpack(array, copy=True).tolist() == values.tolist()


@each_kind
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize(
    "case",
    [
        pyarrow.array([1, None]),
        pyarrow.array(["a"]),
        pyarrow.array([True]),
        pyarrow.array([{"a": 1}]),
    ],
    ids=["nulls", "text", "bits", "struct"],
)
def test_what_dlpack_cannot_describe(kind: Any, case: Any, copy: Any) -> None:
    with pytest.raises(BufferError, match=r"no DLPack type for|has nulls"):
        kind.from_arrow(case).__dlpack__(max_version=(1, 0), copy=copy)


@each_kind
def test_devices_and_streams(kind: Any) -> None:
    array = kind.from_arrow(Produced())
    assert name_of(array.__dlpack__(max_version=(1, 0), dl_device=(1, 0))) == b"dltensor_versioned"
    with pytest.raises(BufferError, match="expected the device of the array, or the CPU"):
        array.__dlpack__(max_version=(1, 0), dl_device=(2, 0))
    for stream in (1, 0, -1):
        with pytest.raises(BufferError, match="None, because the device has no streams"):
            array.__dlpack__(max_version=(1, 0), stream=stream)
    with pytest.raises(TypeError):
        array.__dlpack__(1)


def test_other_devices() -> None:
    cuda = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=3))
    assert cuda.__dlpack_device__() == (2, 3)
    tensor = tensor_in(cuda.__dlpack__(max_version=(1, 0), stream=-1))
    device = tensor.dl_tensor.device
    assert (device.device_type, device.device_id) == (2, 3)
    with pytest.raises(BufferError, match="copy: expected memory that the CPU can read"):
        cuda.__dlpack__(max_version=(1, 0), copy=True)
    with pytest.raises(BufferError, match="1 for the legacy default stream"):
        cuda.__dlpack__(max_version=(1, 0), stream=0)
    pinned = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=1))
    assert pinned.__dlpack_device__() == (3, 0)
    copied = tensor_in(pinned.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
    assert copied.dl_tensor.device.device_type == 1
    assert copied.flags == abi.DLPACK_FLAG_BITMASK_IS_COPIED
    with pytest.raises(BufferError, match="expected a copy to be allowed"):
        pinned.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)


def test_an_event_without_a_way_to_wait_is_an_error() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=12, device_id=0, sync_event=64))
    with pytest.raises(BufferError, match="ext_dev"):
        array.__dlpack__(max_version=(1, 0))


# --- Import --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_numpy_s_tensors(dtype: str) -> None:
    values = numpy.arange(5).astype(dtype)
    array = from_dlpack(values)
    assert type(array) is DeviceArray
    assert repr(array).endswith("length 5, cpu, no event>")
    found = pyarrow.array(array)
    assert found.equals(pyarrow.array(values))
    assert found.buffers()[1].address == values.ctypes.data


def test_other_producers() -> None:
    values = numpy.arange(3, dtype="i8")
    assert pyarrow.array(from_dlpack(tvm_ffi.from_dlpack(values))).to_pylist() == [0, 1, 2]
    assert pyarrow.array(from_dlpack(pyarrow.array([1, 2]))).to_pylist() == [1, 2]
    again = from_dlpack(from_dlpack(values))
    assert pyarrow.array(again).buffers()[1].address == values.ctypes.data
    back = tvm_ffi.from_dlpack(again)
    assert numpy.from_dlpack(back).tolist() == [0, 1, 2]


def test_the_producer_s_memory_is_kept_and_released() -> None:
    values = numpy.arange(3)
    before = sys.getrefcount(values)
    array = from_dlpack(values)
    assert sys.getrefcount(values) == before + 1
    column = array.__arrow_c_array__()
    del array
    assert sys.getrefcount(values) == before + 1
    del column
    gc.collect()
    assert sys.getrefcount(values) == before


def test_matrices() -> None:
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    array = from_dlpack(values)
    assert len(array) == 2
    assert array.type == "extension<arrow.fixed_shape_tensor: fixed_size_list(3)<float32>>"
    assert numpy.from_dlpack(array).tolist() == values.tolist()


def test_strided_tensors_are_copied_where_that_is_allowed() -> None:
    values = numpy.arange(8)[::2]
    assert pyarrow.array(from_dlpack(values)).to_pylist() == [0, 2, 4, 6]
    with pytest.raises(BufferError, match="stride"):
        from_dlpack(values, copy=False)


def test_a_capsule_is_used_once() -> None:
    produced = Produced()
    capsule = Array.from_arrow(produced).__dlpack__(max_version=(1, 0))
    array = from_dlpack(Given(capsule))
    assert name_of(capsule) == b"used_dltensor_versioned"
    with pytest.raises(TypeError, match="that is not used"):
        from_dlpack(Given(capsule))
    del capsule
    gc.collect()
    assert "array" not in produced.releases
    del array
    assert "array" in produced.releases


@pytest.mark.parametrize("result", [5, None])
def test_what_is_not_a_capsule(result: object) -> None:
    with pytest.raises(TypeError, match="expected a capsule dltensor_versioned"):
        from_dlpack(Given(result))


def test_a_refused_tensor_is_deleted_once() -> None:
    produced = Produced()
    capsule = Array.from_arrow(produced).__dlpack__(max_version=(1, 0))
    tensor_in(capsule).dl_tensor.dtype.bits = 7
    with pytest.raises(TypeError, match="no Arrow type for int of 7 bits"):
        from_dlpack(Given(capsule))
    assert name_of(capsule) == b"used_dltensor_versioned"
    assert produced.releases.count("array") == 1
    del capsule
    gc.collect()
    assert produced.releases.count("array") == 1


def test_keywords_of_the_consumer() -> None:
    def ask(**keywords: Any) -> dict[str, Any]:
        given = Given(Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0)))
        from_dlpack(given, **keywords)
        return given.keywords

    assert ask() == {"max_version": (1, 3)}
    assert ask(copy=True) == {"max_version": (1, 3), "copy": True}
    assert ask(device=(1, 0)) == {"max_version": (1, 3), "dl_device": (1, 0)}


def test_a_producer_without_the_newer_keywords() -> None:
    class Old(Given):  # the signature of DLPack before 1.0
        def __dlpack__(self, *, stream: Any = None) -> object:  # type: ignore[override]
            return self.capsule

    array = from_dlpack(Old(Array.from_arrow(Produced()).__dlpack__()))
    assert pyarrow.array(array).to_pylist() == [1, 2, 3]
    with pytest.raises(TypeError, match="unexpected keyword"):
        from_dlpack(Old(None), copy=True)


def test_an_object_without_the_methods() -> None:
    with pytest.raises(AttributeError, match="__dlpack_device__"):
        from_dlpack(5)


def test_a_producer_s_error_arrives() -> None:
    class Refusing(Given):
        def __dlpack__(self, **_: Any) -> object:
            raise BufferError("not today")

    with pytest.raises(BufferError, match="not today"):
        from_dlpack(Refusing(None))
    assert issubclass(fletching.Error, OSError)


def test_a_stream_of_a_device_without_streams() -> None:
    with pytest.raises(fletching.Error, match="None, because the device has no streams"):
        from_dlpack(Given(None), stream=1)


def test_from_dlpack_negative_number_of_dimensions_is_buffer_error() -> None:
    capsule = Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0))
    tensor_in(capsule).dl_tensor.ndim = -1
    with pytest.raises(BufferError, match="ndim"):
        from_dlpack(Given(capsule))


def test_from_dlpack_device_differs_from_tensor_names_both() -> None:
    with standin.gpu():
        capsule = Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0))
        with pytest.raises(BufferError, match="tensor: expected cuda:0, got cpu:0"):
            from_dlpack(Given(capsule, (2, 0)))


def test_from_dlpack_without_driver_is_error_of_package() -> None:
    """In a process that finds no libcuda."""
    done = run(
        """
    import ctypes
    import fletching
    from fletching import abi

    class Producer:
        def __dlpack_device__(self):
            return 2, 0
        def __dlpack__(self, **keywords):
            capsule = fletching.from_buffer(b"abc").__dlpack__(max_version=(1, 0))
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            tensor = abi.DLManagedTensorVersioned.from_address(get(capsule, b"dltensor_versioned"))
            tensor.dl_tensor.device.device_type = 2
            return capsule

    try:
        fletching.from_dlpack(Producer())
    except fletching.Error as error:
        print(error.errno)
    """,
        LD_LIBRARY_PATH="",
    )
    assert (done.returncode, done.stdout) == (0, f"{errno.ENOENT}\n"), done.stderr
