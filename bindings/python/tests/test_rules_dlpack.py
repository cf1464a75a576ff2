"""The rules of DLPack's Python methods (spec/rules/dlpack.yaml), one test per ID."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

import numpy
import pyarrow
import pytest

import standin
from capsules import Produced, ProducedOnDevice, TensorProducer, name_of, rename, tensor_in
from fletching import Array, DeviceArray, Error, abi, from_buffer, from_dlpack

NEW, LEGACY = b"dltensor_versioned", b"dltensor"

_name = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)


def capsule(**keywords: Any) -> Any:
    return Array.from_arrow(Produced()).__dlpack__(max_version=(1, 0), **keywords)


# --- Capsules and tensors ------------------------------------------------------------------------


def test_rule_dlpack_managed_deleter_takes_gil() -> None:
    """The deleter is called without the GIL, as from C, and drops a Python object."""
    memory = bytearray(b"abc")
    before = sys.getrefcount(memory)
    held = from_buffer(memory).__dlpack__(max_version=(1, 0))
    tensor = tensor_in(held)
    rename(held, b"used_dltensor_versioned")
    address = ctypes.cast(tensor.deleter, ctypes.c_void_p).value
    assert address is not None
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(tensor))
    gc.collect()
    assert sys.getrefcount(memory) == before


def test_rule_dlpack_capsule_name() -> None:
    assert name_of(capsule()) == NEW
    assert name_of(Array.from_arrow(Produced()).__dlpack__()) == LEGACY


def test_rule_dlpack_capsule_names_static() -> None:
    first = _name(capsule())
    gc.collect()
    assert _name(capsule()) == first
    assert _name(DeviceArray.from_arrow(Produced()).__dlpack__(max_version=(1, 0))) == first


def test_rule_dlpack_capsule_destructor() -> None:
    produced = Produced()
    held = Array.from_arrow(produced).__dlpack__(max_version=(1, 0))
    del held
    assert produced.releases.count("array") == 1
    used = Produced()
    held = Array.from_arrow(used).__dlpack__(max_version=(1, 0))
    tensor = tensor_in(held)
    rename(held, b"used_dltensor_versioned")
    del held
    assert "array" not in used.releases
    abi.release(tensor)


@pytest.mark.parametrize("version", [(1, 0), None])
def test_rule_dlpack_capsule_renamed_when_consumed(version: Any) -> None:
    produced = Produced()
    held = Array.from_arrow(produced).__dlpack__(max_version=version)
    name = name_of(held)
    array = from_dlpack(TensorProducer(held))
    assert name_of(held) == b"used_" + name
    del held
    gc.collect()
    assert array.to_numpy().tolist() == [1, 2, 3]
    del array
    gc.collect()
    assert produced.releases.count("array") == 1


def test_rule_dlpack_capsule_consumed_once() -> None:
    given = TensorProducer(capsule())
    from_dlpack(given)
    with pytest.raises(TypeError, match="that is not used"):
        from_dlpack(given)


# --- __dlpack__ ----------------------------------------------------------------------------------


def test_rule_dlpack_method_max_version() -> None:
    array = Array.from_arrow(Produced())
    for version in ((1, 0), (1, 3), (2, 0)):
        assert tensor_in(array.__dlpack__(max_version=version)).version.major == 1


@pytest.mark.parametrize("version", [None, (0, 8)])
def test_rule_dlpack_method_max_version_too_old(version: Any) -> None:
    """The old struct needs a copy, because it cannot mark memory as read-only."""
    produced = Produced()
    held = Array.from_arrow(produced).__dlpack__(max_version=version)
    assert name_of(held) == LEGACY
    assert produced.releases.count("array") == 1  # the tensor is a copy
    array = Array.from_arrow(Produced())
    with pytest.raises(BufferError, match="copy: expected a copy to be allowed"):
        array.__dlpack__(max_version=version, copy=False)


def test_rule_dlpack_method_version_verified() -> None:
    produced = Produced()
    held = Array.from_arrow(produced).__dlpack__(max_version=(1, 0))
    tensor_in(held).version.major = 2
    given = TensorProducer(held)
    with pytest.raises(TypeError, match="expected major version 1, got 2"):
        from_dlpack(given)
    assert given.asked[0]["max_version"][0] == 1
    assert produced.releases.count("array") == 1


def test_rule_dlpack_method_keywords_fall_back() -> None:
    class Old(TensorProducer):
        def __dlpack__(self, *, stream: Any = None) -> object:  # type: ignore[override]
            return self.capsule

    assert from_dlpack(Old(capsule())).to_numpy().tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="unexpected keyword"):
        from_dlpack(Old(None), copy=True)


def test_from_dlpack_passes_on_type_error_subclass() -> None:
    class OwnError(TypeError):
        pass

    class Refusing(TensorProducer):
        def __dlpack__(self, **keywords: Any) -> object:
            self.asked.append(keywords)
            raise OwnError

    given = Refusing(None)
    with pytest.raises(OwnError):
        from_dlpack(given)
    assert len(given.asked) == 1


def test_rule_dlpack_method_device_default() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=3))
    device = tensor_in(array.__dlpack__(max_version=(1, 0), stream=-1)).dl_tensor.device
    assert (device.device_type, device.device_id) == (2, 3)


def test_rule_dlpack_method_device_pair() -> None:
    assert name_of(capsule(dl_device=(1, 0))) == NEW
    for wrong in (1, (1,), (1, 0, 0), "cpu"):
        with pytest.raises(TypeError):
            capsule(dl_device=wrong)


def test_rule_dlpack_method_device_refused() -> None:
    with pytest.raises(BufferError, match="expected the device of the array, or the CPU"):
        capsule(dl_device=(2, 0))


def test_export_rejects_other_device_of_same_type() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=3))
    keywords: dict[str, Any] = {"max_version": (1, 0), "stream": -1}
    assert name_of(array.__dlpack__(dl_device=(2, 3), **keywords)) == NEW
    with pytest.raises(BufferError, match="expected the device of the array, or the CPU"):
        array.__dlpack__(dl_device=(2, 1), **keywords)


def test_rule_dlpack_method_cpu_supported() -> None:
    pinned = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=0))
    held = pinned.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    assert tensor_in(held).dl_tensor.device.device_type == 1


def test_rule_dlpack_method_copy_true() -> None:
    values = numpy.arange(3)
    for array in (from_buffer(values), from_dlpack(values)):
        tensor = tensor_in(array.__dlpack__(max_version=(1, 0), copy=True))
        assert tensor.dl_tensor.data != values.ctypes.data
        assert tensor.flags & abi.DLPACK_FLAG_BITMASK_IS_COPIED


def test_rule_dlpack_method_copy_false() -> None:
    values = numpy.arange(3)
    held = from_buffer(values).__dlpack__(max_version=(1, 0), copy=False)
    assert tensor_in(held).dl_tensor.data == values.ctypes.data
    pinned = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=0))
    with pytest.raises(BufferError, match="copy: expected a copy to be allowed"):
        pinned.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)


def test_rule_dlpack_method_copy_none() -> None:
    values = numpy.arange(3)
    held = from_buffer(values).__dlpack__(max_version=(1, 0))
    assert tensor_in(held).dl_tensor.data == values.ctypes.data
    pinned = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=0))
    copied = tensor_in(pinned.__dlpack__(max_version=(1, 0), dl_device=(1, 0)))
    assert copied.flags & abi.DLPACK_FLAG_BITMASK_IS_COPIED


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("value", [None, "a", True, {"a": 1}], ids=str)
def test_rule_dlpack_method_buffer_error(value: Any, copy: Any) -> None:
    numbers = [1, None] if value is None else [value]
    for kind in (Array, DeviceArray):
        with pytest.raises(BufferError, match=r"no DLPack type for|has nulls"):
            kind.from_arrow(pyarrow.array(numbers)).__dlpack__(max_version=(1, 0), copy=copy)


def test_rule_dlpack_method_device_known() -> None:
    assert Array.from_arrow(Produced()).__dlpack_device__() == (1, 0)
    for device in ((2, 1), (3, 0), (10, 4), (13, 0)):
        source = ProducedOnDevice(device_type=device[0], device_id=device[1])
        assert DeviceArray.from_arrow(source).__dlpack_device__() == device


# --- Streams -------------------------------------------------------------------------------------


def on_cuda(device: int = 0) -> TensorProducer:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=device))
    return TensorProducer(array.__dlpack__(max_version=(1, 0), stream=-1), (2, device))


def test_rule_dlpack_stream_passed() -> None:
    with standin.gpu() as gpu:
        stream, given = gpu.gated(), on_cuda()
        array = from_dlpack(given, stream=stream.number)
        assert given.asked[0]["stream"] == stream.number
        assert standin.is_pending(array)
        gpu.open()
        array.synchronize()


def test_from_dlpack_passes_minus_one() -> None:
    given = on_cuda()
    assert from_dlpack(given, stream=-1).sync_event == 0
    assert given.asked[0]["stream"] == -1


def test_export_of_older_capsule_orders_stream() -> None:
    with standin.gpu() as gpu:
        writable = from_dlpack(on_cuda(), stream=-1)
        tensor = tensor_in(held := writable.__dlpack__(max_version=(1, 0), stream=-1))
        tensor.flags = 0
        writable = from_dlpack(TensorProducer(held, (2, 0)), stream=-1)
        older = TensorProducer(writable.__dlpack__(stream=-1), (2, 0))
        assert name_of(older.capsule) == LEGACY
        array = from_dlpack(older, stream=gpu.gated().number)
        assert standin.is_pending(array)
        gpu.open()
        array.synchronize()
        del array


def test_rule_dlpack_stream_explicit() -> None:
    with standin.gpu():
        given = on_cuda()
        from_dlpack(given)
        assert given.asked[0]["stream"] == 1


def test_rule_dlpack_stream_fits_requested_device() -> None:
    given = TensorProducer(capsule(), (2, 0))
    from_dlpack(given, device=(1, 0))
    assert "stream" not in given.asked[0]
    with pytest.raises(Error, match="from_dlpack: stream: invalid on cpu: expected None"):
        from_dlpack(given, device=(1, 0), stream=1)


@pytest.mark.parametrize("request_", [{"dl_device": (1, 0)}, {"copy": True}], ids=str)
@pytest.mark.parametrize("stream", [None, 2])
def test_rule_dlpack_stream_cpu_request_synchronizes(
    request_: dict[str, Any], stream: int | None
) -> None:
    """The host copies for any stream of the consumer."""
    with standin.gpu() as gpu:
        source = ProducedOnDevice(device_type=3, device_id=0)
        array = DeviceArray.from_arrow(source).export_with_event(gpu.stream())
        before = standin.calls("cuEventSynchronize")
        array.__dlpack__(max_version=(1, 0), stream=stream, **request_)
        assert standin.calls("cuEventSynchronize") == before + 1


# --- from_dlpack ---------------------------------------------------------------------------------


def test_rule_dlpack_import_cpu_supported() -> None:
    pinned = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=0))
    assert from_dlpack(pinned, device=(1, 0)).device_type == 1


def test_rule_dlpack_import_device_refused() -> None:
    with pytest.raises(BufferError, match="expected the device of the array, or the CPU"):
        from_dlpack(from_buffer(b"abc"), device=(2, 0))


def test_rule_dlpack_import_copy_true() -> None:
    values = numpy.arange(3)
    assert from_dlpack(values, copy=True).to_numpy().ctypes.data != values.ctypes.data
    array = from_dlpack(from_buffer(values), copy=True)
    assert array.to_numpy().ctypes.data != values.ctypes.data


def test_rule_dlpack_import_errors_propagated() -> None:
    class Refusing(TensorProducer):
        def __dlpack__(self, **_: Any) -> object:
            raise self.capsule  # type: ignore[misc]

    for error in (BufferError("a"), MemoryError("b"), KeyError("c")):
        with pytest.raises(type(error)):
            from_dlpack(Refusing(error))
    with pytest.raises(ZeroDivisionError):
        from_dlpack(
            type("Raising", (TensorProducer,), {"__dlpack_device__": lambda _: 1 // 0})(None)
        )


def test_rule_dlpack_import_attribute_error() -> None:
    class OneMethod:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    for wrong, text in ((5, "from_dlpack: object has no tensor"), (OneMethod(), "__dlpack__")):
        with pytest.raises(AttributeError, match=text):
            from_dlpack(wrong)
