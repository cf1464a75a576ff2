"""Arrays and schemas through the PyCapsule protocols, both ways."""

from __future__ import annotations

import ctypes
import errno
import gc
import sys
from collections.abc import Callable
from typing import Any

import nanoarrow
import nanoarrow.device
import pyarrow
import pytest

import fletching
from capsules import Produced, ProducedOnDevice, capsule_of, name_of, struct_in
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema, abi
from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema

BATCH = pyarrow.record_batch(
    {
        "number": pyarrow.array([1, None, 3], pyarrow.int32()),
        "text": pyarrow.array(["a", "b", None]),
        "list": pyarrow.array([[1], None, [2, 3]], pyarrow.list_(pyarrow.int8())),
        "key": pyarrow.array(["x", "y", "x"]).dictionary_encode(),
    }
)


class Given:
    """An object whose methods return what the test gives them."""

    def __init__(self, **results: Any) -> None:
        for method, result in results.items():
            setattr(self, f"__arrow_c_{method}__", lambda *_, result=result, **__: result)


# --- Names, single use, destructors --------------------------------------------------------------


def test_names_of_capsules() -> None:
    array = Array.from_arrow(BATCH)
    assert name_of(array.schema.__arrow_c_schema__()) == b"arrow_schema"
    assert [name_of(c) for c in array.__arrow_c_array__()] == [b"arrow_schema", b"arrow_array"]
    pair = [b"arrow_schema", b"arrow_device_array"]
    assert [name_of(c) for c in array.__arrow_c_device_array__()] == pair
    device = DeviceArray.from_arrow(BATCH)
    assert [name_of(c) for c in device.__arrow_c_device_array__()] == pair


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_a_dropped_capsule_releases(kind: Any) -> None:
    produced = Produced()
    array = kind.from_arrow(produced)
    capsules = array.__arrow_c_device_array__()
    del array
    gc.collect()
    assert produced.releases == []
    del capsules
    assert sorted(produced.releases) == ["array", "schema"]


def test_a_consumer_moves_the_struct_out() -> None:
    produced = Produced()
    capsules = Array.from_arrow(produced).__arrow_c_array__()
    moved = ArrowArray()
    abi.move(struct_in(ArrowArray, capsules[1]), moved)
    del capsules
    gc.collect()
    assert produced.releases == ["schema"]
    assert [abi.values(moved.buffers, 2)[0], moved.length] == [None, 3]
    abi.release(moved)
    assert produced.releases == ["schema", "array"]


@pytest.mark.parametrize("kind", [Schema, Array, DeviceArray])
def test_a_capsule_is_consumed_once(kind: Any) -> None:
    produced = Produced()
    first = kind.from_arrow(produced)
    with pytest.raises(fletching.Error, match="is released: expected a live struct") as error:
        kind.from_arrow(produced)
    assert error.value.errno == errno.EINVAL
    del first
    assert len(produced.releases) == len(set(produced.releases))


def test_export_is_repeatable() -> None:
    produced = Produced()
    array = Array.from_arrow(produced)
    first, second = array.__arrow_c_array__(), array.__arrow_c_array__()
    assert struct_in(ArrowArray, first[1]).private_data != 0
    del first, array
    gc.collect()
    assert produced.releases == []
    assert struct_in(ArrowArray, second[1]).length == 3
    del second
    assert sorted(produced.releases) == ["array", "schema"]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (5, r"result is not a pair of capsules: expected a tuple of two, got int"),
        ((1, 2, 3), r"result is not a pair of capsules: expected a tuple of two, got tuple"),
        ((1, 2), r"result is not a capsule: expected arrow_schema, got int"),
    ],
)
def test_a_wrong_result_is_refused(result: object, text: str) -> None:
    with pytest.raises(TypeError, match=f"__arrow_c_array__: {text}"):
        Array.from_arrow(Given(array=result))


def test_a_refused_array_is_not_consumed() -> None:
    """The name of the second capsule is wrong, or its struct released: the schema stays."""
    produced = Produced()
    wrong = capsule_of(produced.array, b"arrow_device_array")
    with pytest.raises(TypeError, match="expected arrow_array, got arrow_device_array"):
        Array.from_arrow(Given(array=(capsule_of(produced.schema), wrong)))
    assert not abi.is_released(produced.schema)
    assert not abi.is_released(produced.array)
    abi.release(produced.array)
    with pytest.raises(fletching.Error, match="arrow_array is released"):
        Array.from_arrow(produced)
    assert not abi.is_released(produced.schema)
    abi.release(produced.schema)


def test_a_raising_method_raises() -> None:
    class Raising:
        def __arrow_c_array__(self) -> object:
            raise LookupError("no array today")

    with pytest.raises(LookupError, match="no array today"):
        Array.from_arrow(Raising())


def test_an_attribute_error_within_a_method_raises() -> None:
    """It does not say that the object lacks the method."""

    class Raising:
        def __arrow_c_device_array__(self, requested_schema: Any = None, **_: Any) -> Any:
            raise AttributeError("no field today")

    for call in (DeviceArray.from_arrow, fletching.from_arrow):
        with pytest.raises(AttributeError, match="no field today"):
            call(Raising())


@pytest.mark.parametrize(
    "call", [Schema.from_arrow, Array.from_arrow, DeviceArray.from_arrow, fletching.from_arrow]
)
def test_an_object_without_methods_is_refused(call: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="__arrow_c_"):
        call(object())


# --- Keywords and requested schemas --------------------------------------------------------------


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_unknown_keywords(kind: Any) -> None:
    array = kind.from_arrow(Produced())
    array.__arrow_c_device_array__(None, stream=None, later=None)
    with pytest.raises(NotImplementedError, match="unknown keyword: expected None, got stream"):
        array.__arrow_c_device_array__(stream=1)


@pytest.mark.parametrize("kind", [Array, DeviceArray, ArrayStream, DeviceArrayStream])
def test_arguments_of_a_device_export(kind: Any) -> None:
    source = pyarrow.table({"n": [1]}) if "Stream" in kind.__name__ else pyarrow.array([1])
    given = kind.from_arrow(source)
    method = "stream" if "Stream" in kind.__name__ else "array"
    export = getattr(given, f"__arrow_c_device_{method}__")
    with pytest.raises(TypeError, match="too many arguments: expected at most 1, got 2"):
        export(None, None)
    with pytest.raises(TypeError, match="requested_schema: given twice"):
        export(None, requested_schema=None)
    with pytest.raises(TypeError, match="expected arrow_schema, got str"):
        export(requested_schema="int64", later=None)
    assert export(requested_schema=given.schema.__arrow_c_schema__())


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_device_array__"])
@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_requested_schemas(kind: Any, method: str) -> None:
    export = getattr(kind.from_arrow(pyarrow.array([1, 2], pyarrow.int32())), method)
    for fits in (pyarrow.int32(), pyarrow.int64(), pyarrow.float32()):
        capsules = export(fits.__arrow_c_schema__())
        assert pyarrow.field(Given(schema=capsules[0])).type == pyarrow.int32()
    for other in (pyarrow.string(), pyarrow.struct([]), pyarrow.list_(pyarrow.int32())):
        with pytest.raises(fletching.Error, match="requested_schema does not fit the data"):
            export(other.__arrow_c_schema__())
    with pytest.raises(TypeError, match="expected arrow_schema, got str"):
        export("int32")


def test_a_requested_schema_is_left_alone() -> None:
    requested = Produced()
    Array.from_arrow(Produced()).__arrow_c_array__(requested.__arrow_c_schema__())
    assert not abi.is_released(requested.schema)
    abi.release(requested.schema)
    abi.release(requested.array)


def test_requested_fields() -> None:
    export = Array.from_arrow(BATCH).__arrow_c_array__
    export(BATCH.schema.__arrow_c_schema__())
    views = pyarrow.schema([BATCH.schema.field(0), ("text", pyarrow.string_view())])
    with pytest.raises(fletching.Error, match="expected struct<number: int32"):
        export(views.__arrow_c_schema__())


# --- What the CPU can read -----------------------------------------------------------------------


def test_a_device_that_the_cpu_cannot_read() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=0))
    assert not hasattr(array, "__arrow_c_array__")
    assert hasattr(array, "__arrow_c_device_array__")
    with pytest.raises(AttributeError, match="no attribute '__arrow_c_array__'"):
        array.__arrow_c_array__()
    with pytest.raises(fletching.Error, match="expected memory that the CPU can read, got cuda"):
        Array.from_arrow(ProducedOnDevice(device_type=2, device_id=0))


def test_a_device_that_the_cpu_can_read() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=0))
    capsules = Given(array=array.__arrow_c_array__())
    assert pyarrow.array(capsules).to_pylist() == [1, 2, 3]
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        array.other  # type: ignore[attr-defined]  # noqa: B018


def test_an_unknown_device_passes() -> None:
    source = ProducedOnDevice(device_type=9999, device_id=7)
    array = DeviceArray.from_arrow(source)
    assert (array.device_type, array.device_id, array.sync_event) == (9999, 7, 0)
    assert repr(array) == "<fletching.DeviceArray int32, length 3, unknown(9999):7, no event>"
    out = struct_in(ArrowDeviceArray, array.__arrow_c_device_array__()[1])
    assert (out.device_type, out.device_id, list(out.reserved)) == (9999, 7, [0, 0, 0])


def test_an_event_without_a_way_to_wait_is_an_error() -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=12, device_id=0, sync_event=64))
    assert array.sync_event == 64
    assert repr(array).endswith("ext_dev:0, event unknown>")
    for wait in (array.synchronize, array.ready, lambda: array.wait_on(0)):
        with pytest.raises(fletching.Error, match="ext_dev") as error:
            wait()
        assert error.value.errno == errno.ENOTSUP
    host = DeviceArray.from_arrow(ProducedOnDevice(device_type=3, device_id=0, sync_event=64))
    with pytest.raises(fletching.Error):
        host.__arrow_c_array__()


def test_without_an_event_there_is_nothing_to_wait_for() -> None:
    array = DeviceArray.from_arrow(Produced())
    array.synchronize()
    array.wait_on(0)
    assert array.ready()


def test_streams() -> None:
    class Stream:
        def __init__(self, result: object) -> None:
            self.result = result

        def __cuda_stream__(self) -> object:
            return self.result

    array = DeviceArray.from_arrow(Produced())
    array.wait_on(Stream((0, 7)))
    for wrong in ("7", None, Stream((0,)), Stream(7), Stream((0, "7"))):
        with pytest.raises(TypeError, match=r"stream: expected a number|expected \(0, handle\)"):
            array.wait_on(wrong)
    array.wait_on(2**63)
    for number in (-1, -(2**70), 2**64 - 1, 2**70):
        with pytest.raises(fletching.Error, match="stream: invalid handle") as error:
            array.wait_on(Stream((0, number)))
        assert error.value.errno == errno.EINVAL


# --- Peers ---------------------------------------------------------------------------------------

CASES = [
    pyarrow.array([1, None, 3]),
    pyarrow.array([True, False, None]),
    pyarrow.array(["a", "bb", None]),
    pyarrow.array([[1, 2], [], None]),
    pyarrow.array([], pyarrow.string()),
    pyarrow.nulls(3),
    pyarrow.array([b"12", None], pyarrow.binary(2)),
    pyarrow.array([{"a": 1}, None]),
    pyarrow.array(["x", "y", "x"]).dictionary_encode(),
    pyarrow.array(["a" * 20, "b"], pyarrow.string_view()),
    BATCH.to_struct_array(),
]


# nanoarrow writes past the end of its own copy of a view array when it exports one.
NANOARROW_CASES = [case for case in CASES if case.type != pyarrow.string_view()]


@pytest.mark.parametrize("kind", [Array, DeviceArray])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.type)[:20])
def test_pyarrow_both_ways(case: Any, kind: Any) -> None:
    array = kind.from_arrow(case)
    assert pyarrow.array(array).equals(case)
    case.validate(full=True)
    assert pyarrow.array(kind.from_arrow(array)).equals(case)


@pytest.mark.parametrize("kind", [Array, DeviceArray])
@pytest.mark.parametrize("case", NANOARROW_CASES, ids=lambda case: str(case.type)[:20])
def test_nanoarrow_both_ways(case: Any, kind: Any) -> None:
    source = nanoarrow.c_array(case)
    array = kind.from_arrow(source)
    assert pyarrow.array(nanoarrow.c_array(array)).equals(case)
    device = nanoarrow.device.c_device_array(array)
    assert device.device_type_id == 1
    assert pyarrow.array(kind.from_arrow(device)).equals(case)


def test_record_batches() -> None:
    array = fletching.from_arrow(BATCH)
    assert type(array) is DeviceArray
    assert pyarrow.record_batch(array).equals(BATCH)
    assert type(fletching.from_arrow(Produced())) is Array
    assert type(fletching.from_arrow(pyarrow.int8())) is Schema
    assert pyarrow.schema(array.schema).equals(BATCH.schema)


def test_pyarrow_refuses_with_an_exception_set() -> None:
    """It releases what it has moved out while its exception is set."""
    produced = Produced(format="?")
    array = Array.from_arrow(produced)
    with pytest.raises(pyarrow.ArrowInvalid):
        pyarrow.array(array)
    del array
    gc.collect()
    assert sorted(produced.releases) == ["array", "schema"]


# --- References ----------------------------------------------------------------------------------


def exercise(source: Any) -> None:
    array = DeviceArray.from_arrow(source)
    array.column(0).schema.children  # noqa: B018
    pyarrow.record_batch(array)
    repr(array)
    with pytest.raises(NotImplementedError):
        array.__arrow_c_device_array__(stream=1)


def test_nothing_leaks() -> None:
    exercise(BATCH)
    gc.collect()
    before = sys.getrefcount(BATCH), pyarrow.total_allocated_bytes(), len(gc.get_objects())
    for _ in range(50):
        exercise(BATCH)
    gc.collect()
    after = sys.getrefcount(BATCH), pyarrow.total_allocated_bytes(), len(gc.get_objects())
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 40


def test_the_producer_s_object_is_not_kept() -> None:
    produced = Produced()
    before = sys.getrefcount(produced)
    Array.from_arrow(produced)
    assert sys.getrefcount(produced) == before - 2  # its two implementations have ended
    assert ctypes.sizeof(ArrowSchema) == 72
