"""Arrays and schemas through the PyCapsule protocols, both ways."""

from __future__ import annotations

import ctypes
import errno
import gc
import sys
from typing import Any

import nanoarrow
import nanoarrow.device
import pyarrow
import pytest

import fletching
from capsules import Produced, ProducedOnDevice, struct_in
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema, abi
from fletching.abi import ArrowDeviceArray, ArrowSchema

BATCH = pyarrow.record_batch(
    {
        "number": pyarrow.array([1, None, 3], pyarrow.int32()),
        "text": pyarrow.array(["a", "b", None]),
        "list": pyarrow.array([[1], None, [2, 3]], pyarrow.list_(pyarrow.int8())),
        "key": pyarrow.array(["x", "y", "x"]).dictionary_encode(),
    }
)


# --- Rejected input ------------------------------------------------------------------------------


def test_from_arrow_released_array_keeps_schema() -> None:
    """The struct in the second capsule is released, so the schema must not be consumed."""
    produced = Produced()
    abi.release(produced.array)
    with pytest.raises(fletching.Error, match="arrow_array is released"):
        Array.from_arrow(produced)
    assert not abi.is_released(produced.schema)
    abi.release(produced.schema)


def test_from_arrow_passes_on_attribute_error() -> None:
    """The AttributeError must not be read as a missing method."""

    class Raising:
        def __arrow_c_device_array__(self, requested_schema: Any = None, **_: Any) -> Any:
            raise AttributeError("no field today")

    for call in (DeviceArray.from_arrow, fletching.from_arrow):
        with pytest.raises(AttributeError, match="no field today"):
            call(Raising())


# --- Keywords and requested schemas --------------------------------------------------------------


@pytest.mark.parametrize("kind", [Array, DeviceArray, ArrayStream, DeviceArrayStream])
def test_device_export_rejects_wrong_arguments(kind: Any) -> None:
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


def test_export_checks_requested_schema() -> None:
    export = Array.from_arrow(BATCH).__arrow_c_array__
    export(BATCH.schema.__arrow_c_schema__())
    views = pyarrow.schema([BATCH.schema.field(0), ("text", pyarrow.string_view())])
    with pytest.raises(fletching.Error, match="expected struct<number: int32"):
        export(views.__arrow_c_schema__())


# --- Devices -------------------------------------------------------------------------------------


def test_from_arrow_passes_unknown_device_type() -> None:
    source = ProducedOnDevice(device_type=9999, device_id=7)
    array = DeviceArray.from_arrow(source)
    assert (array.device_type, array.device_id, array.sync_event) == (9999, 7, 0)
    assert repr(array) == "<fletching.DeviceArray int32, length 3, unknown(9999):7, no event>"
    _, held = array.__arrow_c_device_array__()
    out = struct_in(ArrowDeviceArray, held)
    assert (out.device_type, out.device_id, list(out.reserved)) == (9999, 7, [0, 0, 0])


def test_wait_without_runtime_returns_enotsup() -> None:
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


# --- Peers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_nanoarrow_device_array_round_trips(kind: Any) -> None:
    device = nanoarrow.device.c_device_array(kind.from_arrow(BATCH.to_struct_array()))
    assert device.device_type_id == 1
    assert pyarrow.array(kind.from_arrow(device)).equals(BATCH.to_struct_array())


def test_from_arrow_returns_matching_type() -> None:
    array = fletching.from_arrow(BATCH)
    assert type(array) is DeviceArray
    assert pyarrow.record_batch(array).equals(BATCH)
    assert type(fletching.from_arrow(Produced())) is Array
    assert type(fletching.from_arrow(pyarrow.int8())) is Schema
    assert pyarrow.schema(array.schema).equals(BATCH.schema)


# --- References ----------------------------------------------------------------------------------


def exercise(source: Any) -> None:
    array = DeviceArray.from_arrow(source)
    array.column(0).schema.children  # noqa: B018
    pyarrow.record_batch(array)
    repr(array)
    with pytest.raises(NotImplementedError):
        array.__arrow_c_device_array__(stream=1)


def test_import_and_export_do_not_leak() -> None:
    exercise(BATCH)
    gc.collect()
    before = sys.getrefcount(BATCH), pyarrow.total_allocated_bytes(), len(gc.get_objects())
    for _ in range(50):
        exercise(BATCH)
    gc.collect()
    after = sys.getrefcount(BATCH), pyarrow.total_allocated_bytes(), len(gc.get_objects())
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 40


def test_from_arrow_does_not_keep_producer() -> None:
    produced = Produced()
    before = sys.getrefcount(produced)
    Array.from_arrow(produced)
    assert sys.getrefcount(produced) == before - 2  # both implementations were removed
    assert ctypes.sizeof(ArrowSchema) == 72
