"""Every case of the hostile peer (tests/hostile) about schemas, arrays and streams: it ends as the
catalogue says, without a crash or a leak."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hostile
from capsules import Produced, capsule_of, struct_in
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
from hostile import Case, Given, account, each, raised_by

__all__ = ["account"]

pytestmark = pytest.mark.usefixtures("account")

BATCHES = 3  # of a stream of the peer


# --- Schemas -------------------------------------------------------------------------------------

SCHEMAS_REFUSED = {
    *("released", "format-null", "deep", "cycle", "children-negative", "children-huge"),
    *("children-null", "child-null", "child-released", "children-of-primitive"),
}
METADATA_REFUSED = {"metadata-negative-count", "metadata-negative-length"}


def read(schema: Schema) -> None:
    """All there is to read. What a format means is not for this package to say."""
    _ = schema.format, schema.name, schema.flags, schema.nullable, schema.type, repr(schema)
    _ = dict(schema.metadata)
    for child in (*schema.children, *([schema.dictionary] if schema.dictionary else [])):
        read(child)


@each(hostile.SCHEMA)
def test_schemas(case: Case) -> None:
    name = case.name.removeprefix("schema.")
    with Given("schema", hostile.schema_of(case)) as given:
        error = raised_by(lambda: read(Schema.from_arrow(given)))
    assert (error is not None) == (name in SCHEMAS_REFUSED | METADATA_REFUSED)
    if case.outcome == hostile.ACCEPTED:
        case.check(error)
    elif name in SCHEMAS_REFUSED:
        assert str(error).partition("] ")[2].startswith("__arrow_c_schema__: ")


def test_rule_schema_children_null_only_when_none() -> None:
    with Given("schema", hostile.schema_of("schema.children-null")) as given:
        text = "ArrowSchema: the struct or a descendant has children NULL: expected a list of 2"
        assert text in str(raised_by(lambda: Schema.from_arrow(given)))


def test_rule_schema_format_set() -> None:
    with Given("schema", hostile.schema_of("schema.format-null")) as given:
        text = "ArrowSchema: the struct or a descendant has format NULL: expected a format string"
        assert text in str(raised_by(lambda: Schema.from_arrow(given)))


def test_a_schema_that_is_its_own_dictionary() -> None:
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
def test_a_good_array_with_that_schema(case: Case, kind: Any) -> None:
    """A refused pair is not consumed; nothing of the array is lost."""
    source = Produced()
    with Given("array", hostile.schema_of(case), source.array) as given:
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
def test_that_schema_as_the_requested_one(case: Case) -> None:
    """It stays the consumer's."""
    exported = Array.from_arrow(Produced())
    schema = hostile.schema_of(case)
    was_released = abi.is_released(schema)
    capsule = capsule_of(schema)
    for export in (exported.__arrow_c_array__, exported.__arrow_c_device_array__):
        fits = raised_by(lambda export=export: export(capsule)) is None  # type: ignore[misc]
        assert not fits or case.name.removeprefix("schema.") not in SCHEMAS_REFUSED
    assert abi.is_released(schema) == was_released
    abi.release(schema)


@each(hostile.SCHEMA)
@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
def test_a_stream_of_that_schema(case: Case, kind: Any) -> None:
    class Stream:
        def get_schema(self, _: object, out: Any) -> None:
            abi.move(hostile.schema_of(case), out.contents)

        def get_next(self, _: object, out: Any) -> None:
            abi.move(abi.ArrowArray(), out.contents)

    struct = abi.ArrowArrayStream()
    abi.implement(struct, Stream())
    stream = kind.from_arrow(Given("stream", struct))
    refused = case.name.removeprefix("schema.") in SCHEMAS_REFUSED
    for reads in (lambda: stream.schema, lambda: stream.schema, stream.__arrow_c_stream__):
        assert (raised_by(reads) is not None) == (refused and reads != stream.__arrow_c_stream__)
    stream.close()


# --- Arrays --------------------------------------------------------------------------------------


def used(array: Any) -> Iterator[Callable[[], object]]:
    """What one does with an array, each an error or not."""
    for column in (-1, 0, 1, 2**40, "c", ""):
        yield lambda column=column: array.column(column)  # type: ignore[misc]
    yield array.__arrow_c_device_array__
    if hasattr(array, "__arrow_c_array__"):
        yield array.__arrow_c_array__
    yield lambda: repr(array)
    yield lambda: (array.null_count, array.offset, array.n_buffers, array.type)
    yield lambda: read(array.schema)
    yield lambda: Array.from_arrow(array)
    yield lambda: DeviceArray.from_arrow(array)
    if isinstance(array, DeviceArray):
        yield array.synchronize
        yield array.ready
        yield lambda: array.wait_on(0)


# Of those some are wrong where nothing looks: how many buffers too many, which null_count.
TENSORS_OF_ARRAYS = {
    *("array.good", "array.release-forgets", "array.device-id-huge", "array.device-unknown"),
    *("array.reserved", "array.buffers-huge", "array.null-count-negative"),
}
EXPECTED_LENGTH = (ValueError, OverflowError)


@each(hostile.ARRAY)
@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_arrays(case: Case, kind: Any) -> None:
    with Given("device_array", *hostile.array_of(case)) as given:
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
            columns = sum(e is None for e in errors[1:3])
            assert columns == 2 or case.name != "array.good-children"
        if case.name.startswith("array.good"):
            assert error is None
        arrays.clear()


@each(hostile.ARRAY)
def test_events(case: Case) -> None:
    """One without a way to wait is an error of every operation, never skipped."""
    with Given("device_array", *hostile.array_of(case)) as given:
        if raised_by(lambda: DeviceArray.from_arrow(given)) is not None:
            assert case.name == "array.released"
    with Given("device_array", *hostile.array_of(case)) as given:
        if case.name == "array.released":
            return
        array = DeviceArray.from_arrow(given)
        for wait in (array.synchronize, array.ready, lambda: array.wait_on(0)):
            assert (raised_by(wait) is not None) == case.name.startswith("array.event-")


@each(hostile.ARRAY)
def test_tensors_of_arrays(case: Case) -> None:
    """What reads the counts and the addresses of buffers refuses what is wrong with them."""
    with Given("device_array", *hostile.array_of(case)) as given:
        arrays: list[Any] = []
        error = raised_by(lambda: arrays.append(DeviceArray.from_arrow(given)))
        for array in arrays:
            error = raised_by(lambda: array.__dlpack__(max_version=(1, 0)))  # noqa: B023
            assert error is None or isinstance(error, BufferError)
            assert (error is None) == (raised_by(lambda: from_dlpack(array)) is None)  # noqa: B023
        if case.name in TENSORS_OF_ARRAYS:
            assert error is None
        elif case.outcome == hostile.REFUSED:
            case.check(error)
        arrays.clear()


# --- Consumers of arrays -------------------------------------------------------------------------


@each(hostile.ARRAY_CONSUMER)
@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_consumers_of_arrays(case: Case, kind: Any) -> None:
    for drops_first in (False, True):
        source = Produced()
        array = kind.from_arrow(source)
        schema_capsule, array_capsule = array.__arrow_c_device_array__()
        raw = abi.ArrowDeviceArray()
        abi.move(struct_in(abi.ArrowDeviceArray, array_capsule), raw)
        if drops_first:
            del array
        hostile.consume_array(case, raw)
        hostile.finish()
        if not drops_first:
            assert source.releases == []
            del array
        del schema_capsule, array_capsule
        gc.collect()
        assert sorted(source.releases) == ["array", "schema"]


@each(hostile.ARRAY_CONSUMER)
@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_consumers_of_tables(case: Case, kind: Any) -> None:
    good = Case("array.good-children", hostile.ACCEPTED, 0)
    with Given("device_array", *hostile.array_of(good)) as given:
        array = kind.from_arrow(given)
        column = array.column(1)
        raw = abi.ArrowDeviceArray()
        capsules = array.__arrow_c_device_array__()
        abi.move(struct_in(abi.ArrowDeviceArray, capsules[1]), raw)
        del capsules
        del array
        hostile.consume_array(case, raw)
        assert len(column) == BATCHES
        del column


# --- Streams -------------------------------------------------------------------------------------


def read_all(stream: Any) -> int:
    """How many batches, which outlive the stream."""
    read(stream.schema)
    batches = list(stream)
    assert next(stream, None) is None
    stream.close()
    return len(batches)


def read_case(case: Case, stream: Any) -> None:
    counts: list[int] = []
    error = raised_by(lambda: counts.append(read_all(stream)))
    case.check(error)
    if error is None:
        assert counts == [0 if case.name == "stream.empty" else BATCHES]
    else:
        again = raised_by(lambda: next(stream, None))
        assert again is None or str(again) == str(error)


def given_stream(case: Case, method: str) -> Given:
    is_device = method == "device_stream"
    return Given(method, hostile.device_stream_of(case) if is_device else hostile.stream_of(case))


@each(hostile.STREAM)
@pytest.mark.parametrize("method", ["stream", "device_stream"])
@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
def test_streams(case: Case, kind: Any, method: str) -> None:
    with given_stream(case, method) as given:
        streams: list[Any] = []
        error = raised_by(lambda: streams.append(kind.from_arrow(given)))
        if not streams:
            case.check(error)
        for stream in streams:
            read_case(case, stream)
        streams.clear()


@each(hostile.DEVICE_STREAM)
def test_device_streams(case: Case) -> None:
    with given_stream(case, "device_stream") as given:
        read_case(case, DeviceArrayStream.from_arrow(given))


@each(hostile.STREAM, hostile.DEVICE_STREAM)
def test_streams_through_capsules_and_iterators(case: Case) -> None:
    """There and back: the result is the same."""
    if case.name == "stream.released":
        return
    with given_stream(case, "device_stream") as given:
        inner = DeviceArrayStream.from_arrow(given)
        if case.name == "device-stream.type-zero":
            return
        again = DeviceArrayStream.from_arrow(inner)
        read_case(case, again)
    with given_stream(case, "device_stream") as given:
        inner = DeviceArrayStream.from_arrow(given)
        good = Schema.from_arrow(Given("schema", hostile.schema_of("schema.good")))
        through = DeviceArrayStream.from_batches(good, inner.device_type, inner)
        error = raised_by(lambda: read_all(through))
        if "schema" not in case.name:
            case.check(error)
        through.close()
        inner.close()


@each(hostile.STREAM, hostile.DEVICE_STREAM)
def test_unread_streams_are_released(case: Case) -> None:
    with given_stream(case, "device_stream") as given:
        raised_by(lambda: DeviceArrayStream.from_arrow(given))


@each(hostile.STREAM_CONSUMER)
@pytest.mark.parametrize("struct", [abi.ArrowArrayStream, abi.ArrowDeviceArrayStream])
@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
def test_consumers_of_streams(case: Case, kind: Any, struct: Any) -> None:
    sources = [Produced() for _ in range(BATCHES)]
    schema = Schema.from_arrow(Produced())
    if kind is ArrayStream:
        stream = ArrayStream.from_batches(schema, sources)
    else:
        stream = DeviceArrayStream.from_batches(schema, 1, sources)  # type: ignore[assignment]
    method = "stream" if struct is abi.ArrowArrayStream else "device_stream"
    raw = struct()
    capsule = getattr(stream, f"__arrow_c_{method}__")()
    abi.move(struct_in(struct, capsule), raw)
    del capsule
    hostile.consume_stream(case, BATCHES, raw)
    hostile.finish()
    del stream
    gc.collect()
    for source in sources:
        source_is_read = not abi.is_released(source.array)
        assert source.releases in ([], ["array", "schema"], ["schema", "array"])
        assert source_is_read == (source.releases == [])
        abi.release(source.array)
        abi.release(source.schema)


def test_the_last_release_may_be_on_another_thread() -> None:
    good = Case("array.good", hostile.ACCEPTED, 0)
    with Given("device_array", *hostile.array_of(good)) as given:
        kept = [DeviceArray.from_arrow(given)]
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
