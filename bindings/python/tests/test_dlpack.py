"""DLPack tensors, both ways."""

from __future__ import annotations

import ctypes
import errno
from typing import Any

import numpy
import pyarrow
import pytest
import tvm_ffi

import standin
from capsules import Produced, ProducedOnDevice, TensorProducer, name_of, tensor_in
from fletching import Array, DeviceArray, abi, from_dlpack
from test_buffers import run

KINDS = [Array, DeviceArray]
each_kind = pytest.mark.parametrize("kind", KINDS)


# --- Export --------------------------------------------------------------------------------------


@each_kind
def test_second_tensor_equals_first(kind: Any) -> None:
    """The second tensor is created from the cached one."""
    produced = Produced()
    array = kind.from_arrow(produced)
    none = dict.fromkeys(("stream", "dl_device", "copy"))
    capsules = [array.__dlpack__(max_version=(1, 0), **none) for _ in range(3)]
    first, second, _ = map(tensor_in, capsules)
    for name in ("data", "ndim", "byte_offset"):
        assert getattr(first.dl_tensor, name) == getattr(second.dl_tensor, name)
    given: Any = TensorProducer(capsules.pop())
    assert numpy.from_dlpack(given).tolist() == numpy.from_dlpack(array).tolist()
    assert (second.version.major, second.flags) == (1, abi.DLPACK_FLAG_BITMASK_READ_ONLY)
    assert ctypes.addressof(first) != ctypes.addressof(second)
    capsules.pop(0)
    del array, first, second, _
    assert "array" not in produced.releases
    given = TensorProducer(capsules.pop())
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
def test_export_after_cached_tensor_uses_keywords(kind: Any, keywords: Any, name: bytes) -> None:
    array = kind.from_arrow(Produced())
    array.__dlpack__(max_version=(1, 0))
    capsule = array.__dlpack__(**keywords)
    assert name_of(capsule) == name
    if keywords.get("copy"):
        assert tensor_in(capsule).flags == abi.DLPACK_FLAG_BITMASK_IS_COPIED


VERSIONS: list[Any] = [1, "10", (1,), (1, 0, 0), (1, "0"), (1, -1), (1 << 70, 0)]


@each_kind
@pytest.mark.parametrize(
    "keywords",
    [
        *({"max_version": version} for version in VERSIONS),
        {"max_version": (1, 0), "other": None},
        {"max_version": (1, 0), "stream": "1"},
    ],
)
def test_export_rejects_wrong_arguments_with_and_without_cache(kind: Any, keywords: Any) -> None:
    array = kind.from_arrow(Produced())
    with pytest.raises(TypeError):
        array.__dlpack__(**keywords)
    array.__dlpack__(max_version=(1, 0))
    with pytest.raises(TypeError):
        array.__dlpack__(**keywords)


@each_kind
def test_export_rejects_other_object(kind: Any) -> None:
    with pytest.raises(TypeError, match="doesn't apply to a 'int' object"):
        kind.__dlpack__(1, max_version=(1, 0))


@each_kind
def test_fixed_size_lists_become_dimensions(kind: Any) -> None:
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    array = kind.from_arrow(pyarrow.FixedSizeListArray.from_arrays(values.ravel(), 3))
    assert numpy.from_dlpack(array).tolist() == values.tolist()
    assert numpy.from_dlpack(array, copy=True).tolist() == values.tolist()


@each_kind
def test_export_rejects_stream_on_cpu(kind: Any) -> None:
    array = kind.from_arrow(Produced())
    for stream in (1, 0, -1):
        with pytest.raises(
            BufferError, match=r"^__dlpack__: stream: invalid on cpu: expected None"
        ):
            array.__dlpack__(max_version=(1, 0), stream=stream)
    with pytest.raises(TypeError):
        array.__dlpack__(1)


def test_export_without_runtime_for_event_raises() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=12, device_id=0, sync_event=64))
    with pytest.raises(BufferError, match="ext_dev"):
        array.__dlpack__(max_version=(1, 0))


# --- Import --------------------------------------------------------------------------------------


def test_from_dlpack_accepts_other_producers() -> None:
    values = numpy.arange(3, dtype="i8")
    assert pyarrow.array(from_dlpack(tvm_ffi.from_dlpack(values))).to_pylist() == [0, 1, 2]
    assert pyarrow.array(from_dlpack(pyarrow.array([1, 2]))).to_pylist() == [1, 2]
    again = from_dlpack(from_dlpack(values))
    assert pyarrow.array(again).buffers()[1].address == values.ctypes.data
    back = tvm_ffi.from_dlpack(again)
    assert numpy.from_dlpack(back).tolist() == [0, 1, 2]


def test_from_dlpack_matrix() -> None:
    values = numpy.arange(6, dtype="f4").reshape(2, 3)
    array = from_dlpack(values)
    assert len(array) == 2
    assert array.type == "extension<arrow.fixed_shape_tensor: fixed_size_list(3)<float32>>"
    assert numpy.from_dlpack(array).tolist() == values.tolist()


@pytest.mark.parametrize("result", [5, None])
def test_from_dlpack_rejects_wrong_capsule(result: object) -> None:
    with pytest.raises(TypeError, match="expected a capsule dltensor_versioned"):
        from_dlpack(TensorProducer(result))


def test_from_dlpack_passes_keywords() -> None:
    def ask(**keywords: Any) -> dict[str, Any]:
        given = TensorProducer(Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0)))
        from_dlpack(given, **keywords)
        return given.asked[0]

    assert ask() == {"max_version": (1, 3)}
    assert ask(copy=True) == {"max_version": (1, 3), "copy": True}
    assert ask(device=(1, 0)) == {"max_version": (1, 3), "dl_device": (1, 0)}
    assert ask(device=[1, 0])["dl_device"] == (1, 0)


def test_from_dlpack_rejects_negative_ndim() -> None:
    capsule = Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0))
    tensor_in(capsule).dl_tensor.ndim = -1
    with pytest.raises(BufferError, match="ndim"):
        from_dlpack(TensorProducer(capsule))


def test_from_dlpack_device_differs_from_tensor_names_both() -> None:
    with standin.gpu():
        capsule = Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0))
        with pytest.raises(BufferError, match="tensor: expected cuda:0, got cpu:0"):
            from_dlpack(TensorProducer(capsule, (2, 0)))


def test_from_dlpack_without_driver_raises_package_error() -> None:
    """In a process that does not find libcuda."""
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
