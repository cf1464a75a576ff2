"""The hostile peer's schemas and arrays (tests/hostile) where the conformance suite does not cover
them (test_conformance.py): next to valid structs, and in Python-only APIs."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hostile
from capsules import GivenStructs, Produced, capsule_of
from fletching import (
    Array,
    ArrayStream,
    DeviceArray,
    DeviceArrayStream,
    Error,
    Schema,
    abi,
    from_dlpack,
)
from hostile import Case, account, each, raised_by
from subjects import read

__all__ = ["account"]

pytestmark = pytest.mark.usefixtures("account")

# --- Schemas -------------------------------------------------------------------------------------

SCHEMAS_REFUSED = {
    *("released", "format-null", "deep", "cycle", "children-negative", "children-huge"),
    *("children-null", "child-null", "child-released", "children-of-primitive"),
}
METADATA_REFUSED = {"metadata-negative-count", "metadata-negative-length"}


def test_from_arrow_rejects_cyclic_dictionary() -> None:
    source = Produced()
    source.schema.dictionary = ctypes.pointer(source.schema)
    with pytest.raises(Error, match="nested too deep: expected at most 256 levels"):
        Schema.from_arrow(source)
    requested = Array.from_arrow(Produced()).__arrow_c_array__
    with pytest.raises(Error, match="nested too deep"):
        requested(capsule_of(source.schema))
    source.schema.dictionary = ctypes.POINTER(abi.ArrowSchema)()
    abi.release(source.schema)


@each(hostile.SCHEMA)
@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_import_valid_array_with_hostile_schema(case: Case, kind: Any) -> None:
    """A rejected pair is not consumed, and the array stays valid."""
    source = Produced()
    with GivenStructs("array", hostile.schema_of(case.name), source.array) as given:
        imported = raised_by(lambda: read(kind.from_arrow(given).schema))
        refused = case.name.removeprefix("schema.") in SCHEMAS_REFUSED
        assert (imported is not None) == (
            refused or case.name.removeprefix("schema.") in METADATA_REFUSED
        )
        assert abi.is_released(source.array) != refused
    gc.collect()
    assert source.releases == ["array"]
    abi.release(source.schema)


@each(hostile.SCHEMA)
def test_export_with_hostile_requested_schema(case: Case) -> None:
    """The schema stays the consumer's."""
    exported = Array.from_arrow(Produced())
    schema = hostile.schema_of(case.name)
    was_released = abi.is_released(schema)
    capsule = capsule_of(schema)
    for export in (exported.__arrow_c_array__, exported.__arrow_c_device_array__):
        fits = raised_by(lambda export=export: export(capsule)) is None  # type: ignore[misc]
        assert not fits or case.name.removeprefix("schema.") not in SCHEMAS_REFUSED
    assert abi.is_released(schema) == was_released
    abi.release(schema)


@each(hostile.SCHEMA)
@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
def test_stream_with_hostile_schema(case: Case, kind: Any) -> None:
    class Stream:
        def get_schema(self, _: object, out: Any) -> None:
            abi.move(hostile.schema_of(case.name), out.contents)

        def get_next(self, _: object, out: Any) -> None:
            abi.move(abi.ArrowArray(), out.contents)

    struct = abi.ArrowArrayStream()
    abi.implement(struct, Stream())
    stream = kind.from_arrow(GivenStructs("stream", struct))
    refused = case.name.removeprefix("schema.") in SCHEMAS_REFUSED
    for reads in (lambda: stream.schema, lambda: stream.schema, stream.__arrow_c_stream__):
        assert (raised_by(reads) is not None) == (refused and reads != stream.__arrow_c_stream__)
    stream.close()


# --- Arrays --------------------------------------------------------------------------------------


def used(array: Any) -> Iterator[Callable[[], object]]:
    """Yields typical operations on an array; each may raise."""
    for column in (-1, "c", ""):
        yield lambda column=column: array.column(column)  # type: ignore[misc]
    yield lambda: repr(array)
    yield lambda: (array.null_count, array.offset, array.n_buffers, array.type)
    yield lambda: read(array.schema)
    yield lambda: Array.from_arrow(array)
    yield lambda: DeviceArray.from_arrow(array)


# Some of these cases are wrong in fields that a tensor does not read: excess buffers, null_count.
TENSORS_OF_ARRAYS = {
    *("array.good", "array.release-forgets", "array.device-id-huge", "array.device-unknown"),
    *("array.reserved", "array.buffers-huge", "array.null-count-negative"),
}
EXPECTED_LENGTH = (ValueError, OverflowError)


@each(hostile.ARRAY)
@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_import_hostile_array(case: Case, kind: Any) -> None:
    with GivenStructs("device_array", *hostile.array_of(case.name)) as given:
        arrays: list[Any] = []
        error = raised_by(lambda: arrays.append(kind.from_arrow(given)))
        assert arrays or error
        if case.name == "array.released":
            assert "arrow_device_array is released" in str(error)
        for array in arrays:
            try:
                len(array)
            except EXPECTED_LENGTH:
                assert case.name in ("array.length-negative", "array.length-huge")
            errors = [raised_by(use) for use in used(array)]
            assert all(getattr(e, "errno", 1) != 0 for e in errors)
        arrays.clear()


@each(hostile.ARRAY)
def test_wait_on_hostile_event_raises(case: Case) -> None:
    """Every operation fails if the event cannot be waited on; the wait is never skipped."""
    with GivenStructs("device_array", *hostile.array_of(case.name)) as given:
        if raised_by(lambda: DeviceArray.from_arrow(given)) is not None:
            assert case.name == "array.released"
    with GivenStructs("device_array", *hostile.array_of(case.name)) as given:
        if case.name == "array.released":
            return
        array = DeviceArray.from_arrow(given)
        for wait in (array.synchronize, array.ready, lambda: array.wait_on(0)):
            assert (raised_by(wait) is not None) == case.name.startswith("array.event-")


@each(hostile.ARRAY)
def test_export_hostile_array_as_tensor(case: Case) -> None:
    """Functions that read counts and buffer addresses reject wrong ones."""
    with GivenStructs("device_array", *hostile.array_of(case.name)) as given:
        arrays: list[Any] = []
        error = raised_by(lambda: arrays.append(DeviceArray.from_arrow(given)))
        for array in arrays:
            error = raised_by(lambda: array.__dlpack__(max_version=(1, 0)))  # noqa: B023
            assert error is None or isinstance(error, BufferError)
            assert (error is None) == (raised_by(lambda: from_dlpack(array)) is None)  # noqa: B023
        if case.name in TENSORS_OF_ARRAYS:
            assert error is None
        elif case.outcome == hostile.REFUSED:
            assert isinstance(error, (Error, BufferError))
        arrays.clear()
