"""The rules of the Arrow PyCapsule interface (spec/rules/pycapsule.yaml), one test per ID."""

from __future__ import annotations

import ctypes
import errno
import gc
from typing import Any

import nanoarrow.device
import pyarrow
import pytest

import fletching
from capsules import Given, Produced, ProducedOnDevice, capsule_of, name_of, struct_in
from fletching import (
    Array,
    ArrayStream,
    DeviceArray,
    DeviceArrayStream,
    Schema,
    abi,
)
from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema
from test_memory import Usage

TABLE = pyarrow.table({"n": [1, 2, 3]})
NUMBERS = pyarrow.array([1, 2, 3], pyarrow.int32())
SCHEMA, ARRAY, DEVICE = b"arrow_schema", b"arrow_array", b"arrow_device_array"


def names(capsules: Any) -> list[bytes]:
    return [name_of(capsule) for capsule in capsules]


# --- Capsules ------------------------------------------------------------------------------------


def test_rule_capsule_structs_in_capsules() -> None:
    capsules = Array.from_arrow(NUMBERS).__arrow_c_array__()
    assert {type(capsule).__name__ for capsule in capsules} == {"PyCapsule"}
    for wrong, text in (
        ((1, 2), "result is not a capsule: expected arrow_schema, got int"),
        ((1, 2, 3), "result is not a pair of capsules: expected a tuple of two, got tuple"),
        (5, "result is not a pair of capsules: expected a tuple of two, got int"),
    ):
        with pytest.raises(TypeError, match=f"^__arrow_c_array__: {text}$"):
            Array.from_arrow(Given(array=wrong))


def test_rule_capsule_names() -> None:
    array = DeviceArray.from_arrow(NUMBERS)
    assert names(array.__arrow_c_array__()) == [SCHEMA, ARRAY]
    assert names(array.__arrow_c_device_array__()) == [SCHEMA, DEVICE]
    plain, device = ArrayStream.from_arrow(TABLE), DeviceArrayStream.from_arrow(TABLE)
    assert name_of(plain.__arrow_c_stream__()) == b"arrow_array_stream"
    assert name_of(device.__arrow_c_device_stream__()) == b"arrow_device_array_stream"


def test_rule_capsule_name_verified() -> None:
    source = Produced()
    for wrong in (b"arrow_schema", b"arrow_device_array"):
        pair = capsule_of(source.schema), capsule_of(source.array, wrong)
        with pytest.raises(TypeError, match="name of the capsule is wrong: expected arrow_array"):
            Array.from_arrow(Given(array=pair))
    assert source.releases == []


def test_rule_capsule_destructor_releases() -> None:
    source = Produced()
    capsules = Array.from_arrow(source).__arrow_c_array__()
    assert source.releases == []
    del capsules
    gc.collect()
    assert sorted(source.releases) == ["array", "schema"]
    moved = Produced()
    capsules = Array.from_arrow(moved).__arrow_c_array__()
    kept = [ArrowSchema(), ArrowArray()]
    for capsule, kind, target in zip(capsules, (ArrowSchema, ArrowArray), kept, strict=True):
        abi.move(struct_in(kind, capsule), target)
    del capsules, capsule
    gc.collect()
    assert moved.releases == []
    for target in kept:
        abi.release(target)


def test_rule_capsule_destructor_frees() -> None:
    array = Array.from_arrow(NUMBERS)
    for _ in range(100):
        array.__arrow_c_device_array__()
    before = Usage.now()
    for _ in range(1000):
        array.__arrow_c_device_array__()
    assert Usage.now() - before < 1000 * ctypes.sizeof(ArrowSchema)


def test_rule_capsule_device_release() -> None:
    source = ProducedOnDevice()
    capsules = DeviceArray.from_arrow(source).__arrow_c_device_array__()
    struct = struct_in(ArrowDeviceArray, capsules[1])
    assert struct.array.release
    del capsules
    gc.collect()
    assert source.releases.count("array") == 1


def test_rule_capsule_moved_out() -> None:
    source = ProducedOnDevice()
    array = DeviceArray.from_arrow(source)
    assert not source.schema.release
    assert not source.array.release
    capsule = array.__arrow_c_device_array__()[1]
    nanoarrow.device.c_device_array(array)
    assert struct_in(ArrowDeviceArray, capsule).array.release


@pytest.mark.parametrize("kind", [Schema, Array, DeviceArray])
def test_rule_capsule_consumed_once(kind: Any) -> None:
    source = Produced()
    kind.from_arrow(source)
    with pytest.raises(fletching.Error, match="is consumed once") as caught:
        kind.from_arrow(source)
    assert caught.value.errno == errno.EINVAL
    source.end()
    assert sorted(source.releases) == ["array", "schema"]


def test_rule_capsule_kept_until_imported() -> None:
    """The capsules are the only owners of the structs, which are freed with them."""
    array = Array.from_arrow(Given(array=Array.from_arrow(NUMBERS).__arrow_c_array__()))
    gc.collect()
    assert array.to_numpy().tolist() == [1, 2, 3]


# --- Methods of CPU data -------------------------------------------------------------------------


def test_rule_arrow_methods_schema_returns() -> None:
    for producer in (Schema.from_arrow(NUMBERS.type), Array.from_arrow(NUMBERS).schema):
        assert name_of(producer.__arrow_c_schema__()) == SCHEMA


def test_rule_arrow_methods_array_returns() -> None:
    for kind in (Array, DeviceArray):
        result = kind.from_arrow(NUMBERS).__arrow_c_array__()
        assert type(result) is tuple
        assert names(result) == [SCHEMA, ARRAY]


def test_rule_arrow_methods_stream_returns() -> None:
    for kind in (ArrayStream, DeviceArrayStream):
        assert name_of(kind.from_arrow(TABLE).__arrow_c_stream__()) == b"arrow_array_stream"


@pytest.mark.parametrize("kind", [Array, DeviceArray])
@pytest.mark.parametrize("fits", [pyarrow.int32(), pyarrow.int64(), pyarrow.float32()])
def test_rule_arrow_methods_requested_schema_tried(kind: Any, fits: Any) -> None:
    requested = fits.__arrow_c_schema__()
    for capsules in (
        kind.from_arrow(NUMBERS).__arrow_c_array__(requested),
        kind.from_arrow(NUMBERS).__arrow_c_device_array__(requested_schema=requested),
    ):
        assert Schema.from_arrow(Given(schema=capsules[0])).format == "i"


@pytest.mark.parametrize(
    "other", [pyarrow.string(), pyarrow.struct([]), pyarrow.list_(pyarrow.int32())]
)
def test_rule_arrow_methods_requested_schema_incompatible(other: Any) -> None:
    sources: list[tuple[str, Any]] = [
        *(("array", kind.from_arrow(NUMBERS)) for kind in (Array, DeviceArray)),
        *(("stream", kind.from_arrow(TABLE)) for kind in (ArrayStream, DeviceArrayStream)),
    ]
    for name, source in sources:
        for method in (f"__arrow_c_{name}__", f"__arrow_c_device_{name}__"):
            with pytest.raises(fletching.Error, match="requested_schema does not fit the data"):
                getattr(source, method)(other.__arrow_c_schema__())
            with pytest.raises(TypeError, match="expected arrow_schema, got str"):
                getattr(source, method)("int32")


def test_rule_arrow_methods_cpu_pointers() -> None:
    pinned = ProducedOnDevice(device_type=3, device_id=0)
    assert pyarrow.array(Array.from_arrow(pinned)).to_pylist() == [1, 2, 3]
    device = ProducedOnDevice(device_type=2, device_id=0)
    with pytest.raises(fletching.Error, match="expected memory that the CPU can read, got cuda"):
        Array.from_arrow(device)


def test_rule_arrow_methods_preferred() -> None:
    class Both(Given):
        def _export_to_c(self, *_: object) -> None:
            raise AssertionError("pyarrow's own method")

    pair = Array.from_arrow(NUMBERS).__arrow_c_array__()
    assert len(Array.from_arrow(Both(array=pair))) == 3


# --- Methods of device data ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_rule_arrow_device_methods_array_returns(kind: Any) -> None:
    result = kind.from_arrow(NUMBERS).__arrow_c_device_array__()
    assert type(result) is tuple
    assert names(result) == [SCHEMA, DEVICE]


def test_rule_arrow_device_methods_stream_returns() -> None:
    capsule = DeviceArrayStream.from_arrow(TABLE).__arrow_c_device_stream__()
    assert name_of(capsule) == b"arrow_device_array_stream"


def methods(**keywords: object) -> list[Any]:
    return [
        lambda: Array.from_arrow(NUMBERS).__arrow_c_device_array__(**keywords),
        lambda: DeviceArray.from_arrow(NUMBERS).__arrow_c_device_array__(**keywords),
        lambda: ArrayStream.from_arrow(TABLE).__arrow_c_device_stream__(**keywords),
        lambda: DeviceArrayStream.from_arrow(TABLE).__arrow_c_device_stream__(**keywords),
    ]


@pytest.mark.parametrize("method", range(4))
def test_rule_arrow_device_methods_keywords_none(method: int) -> None:
    assert methods(requested_schema=None, new_keyword=None)[method]() is not None


@pytest.mark.parametrize("method", range(4))
def test_rule_arrow_device_methods_keywords_refused(method: int) -> None:
    for value in (0, False, ""):
        with pytest.raises(NotImplementedError, match="expected None, got new_keyword"):
            methods(new_keyword=value)[method]()


def test_rule_arrow_device_methods_only_for_device_data() -> None:
    device = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=0))
    assert hasattr(device, "__arrow_c_device_array__")
    assert not hasattr(device, "__arrow_c_array__")
    stream = DeviceArrayStream.from_batches(device.schema, 2, [])
    assert hasattr(stream, "__arrow_c_device_stream__")
    assert not hasattr(stream, "__arrow_c_stream__")


def test_rule_arrow_device_methods_consumed_by_cpu_consumers() -> None:
    device = Given(device_array=DeviceArray.from_arrow(NUMBERS).__arrow_c_device_array__())
    assert Array.from_arrow(device).to_numpy().tolist() == [1, 2, 3]
    plain = Given(array=Array.from_arrow(NUMBERS).__arrow_c_array__())
    assert Array.from_arrow(plain).to_numpy().tolist() == [1, 2, 3]
    stream = DeviceArrayStream.from_arrow(TABLE).__arrow_c_device_stream__()
    assert len(list(ArrayStream.from_arrow(Given(device_stream=stream)))) == 1


def test_rule_arrow_device_methods_no_cross_device_copy() -> None:
    source = ProducedOnDevice(device_type=2, device_id=5)
    capsules = DeviceArray.from_arrow(source).__arrow_c_device_array__()
    found = struct_in(ArrowDeviceArray, capsules[1])
    assert (found.device_type, found.device_id) == (2, 5)
    assert found.array.buffers[1] == ctypes.addressof(source._values)
