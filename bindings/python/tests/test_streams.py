"""Streams through the PyCapsule protocols, both ways, and as iterators."""

from __future__ import annotations

import ctypes
import errno
import gc
import struct
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

import fletching
from capsules import NAMES, Given, Produced, ProducedOnDevice, capsule_of, name_of, struct_in
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema, abi
from fletching.abi import ArrowArrayStream, ArrowDeviceArrayStream

TABLE = pyarrow.table({"n": [1, 2, 3, 4], "t": ["a", None, "c", "d"]})
BATCHES = TABLE.to_batches(max_chunksize=2)
SCHEMA = Schema.from_arrow(TABLE.schema)
KINDS = [ArrayStream, DeviceArrayStream]

each_kind = pytest.mark.parametrize("kind", KINDS)


class Numbers:
    """A Python stream of int32 batches that ends or fails."""

    def __init__(self, batches: int, error: Exception | None = None) -> None:
        self.left, self.error = batches, error
        self.asked: list[str] = []
        self.released: list[str] = []

    def get_schema(self, stream: object, out: Any) -> None:
        self.asked.append("schema")
        source = Produced()
        source.releases = self.released
        abi.release(source.array)
        abi.move(source.schema, out.contents)

    def get_next(self, stream: object, out: Any) -> None:
        self.asked.append("next")
        if self.left == 0:
            if self.error:
                raise self.error
            return
        self.left -= 1
        source = Produced()
        source.releases = self.released
        abi.release(source.schema)
        is_device = isinstance(out.contents, abi.ArrowDeviceArray)
        abi.move(source.device if is_device else source.array, out.contents)

    def release(self, stream: object) -> None:
        self.released.append("stream")


def streamed(numbers: Numbers, kind: Any = ArrowArrayStream, **fields: Any) -> tuple[Any, Given]:
    struct = kind(**fields)
    abi.implement(struct, numbers)
    method = "stream" if kind is ArrowArrayStream else "device_stream"
    return struct, Given(**{method: capsule_of(struct)})


# --- Protocols -----------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize(
    ("method", "struct"),
    [
        ("__arrow_c_stream__", ArrowArrayStream),
        ("__arrow_c_device_stream__", ArrowDeviceArrayStream),
    ],
)
def test_export_returns_single_use_capsule(kind: Any, method: str, struct: Any) -> None:
    numbers = Numbers(2)
    raw, source = streamed(numbers)
    stream = kind.from_arrow(source)
    assert abi.is_released(raw)
    capsule = getattr(stream, method)()
    assert name_of(capsule) == NAMES[struct]
    assert not abi.is_released(struct_in(struct, capsule))
    for use in (getattr(stream, method), lambda: next(stream), lambda: stream.schema):
        with pytest.raises(fletching.Error, match="stream is consumed") as error:
            use()
        assert error.value.errno == errno.EINVAL
    assert numbers.released == []
    del capsule
    assert numbers.released == ["stream"]
    assert numbers.asked == []


@each_kind
def test_from_arrow_rejects_consumed_capsule(kind: Any) -> None:
    struct, source = streamed(Numbers(1))
    kind.from_arrow(source)
    with pytest.raises(fletching.Error, match="arrow_array_stream is released"):
        kind.from_arrow(source)
    with pytest.raises(TypeError, match="expected arrow_array_stream, got other"):
        kind.from_arrow(Given(stream=capsule_of(struct, b"other")))
    for nothing in (object(), pyarrow.int8()):
        with pytest.raises(TypeError, match="object has no stream"):
            kind.from_arrow(nothing)


def test_metadata_of_repeated_key_is_last_value() -> None:
    block = struct.pack("=i" + 2 * "i1si1s", 2, 1, b"k", 1, b"1", 1, b"k", 1, b"2")
    kept = ctypes.create_string_buffer(block)
    source = Produced()
    source.schema.metadata = ctypes.addressof(kept)
    assert Schema.from_arrow(source).metadata == {b"k": b"2"}
    source.end()


def test_from_arrow_finds_streams() -> None:
    assert type(fletching.from_arrow(TABLE)) is ArrayStream
    assert type(fletching.from_arrow(DeviceArrayStream.from_arrow(TABLE))) is DeviceArrayStream


# --- Iteration -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "batch"), [(ArrayStream, Array), (DeviceArrayStream, DeviceArray)]
)
def test_iteration_yields_batches(kind: Any, batch: Any) -> None:
    stream = kind.from_arrow(pyarrow.RecordBatchReader.from_batches(TABLE.schema, BATCHES))
    assert repr(stream).startswith(f"<fletching.{kind.__name__} of a schema that is not read")
    assert stream.schema.type == "struct<n: int64, t: string>"
    assert repr(stream).startswith(f"<fletching.{kind.__name__} struct<n: int64, t: string>")
    found = list(stream)
    assert [type(each) for each in found] == [batch, batch]
    assert [pyarrow.record_batch(each) for each in found] == BATCHES
    assert next(stream, "end") == "end"
    assert pyarrow.table(stream).num_rows == 0


@each_kind
def test_export_after_read_exports_rest(kind: Any) -> None:
    stream = kind.from_arrow(pyarrow.RecordBatchReader.from_batches(TABLE.schema, BATCHES))
    assert pyarrow.record_batch(next(stream)) == BATCHES[0]
    assert pyarrow.table(stream).to_batches() == BATCHES[1:]
    with pytest.raises(fletching.Error, match="stream is consumed"):
        next(stream)


@each_kind
def test_close_unread_stream_releases_it(kind: Any) -> None:
    numbers = Numbers(2)
    _, source = streamed(numbers)
    stream = kind.from_arrow(source)
    for _ in range(2):
        stream.close()
        assert (numbers.asked, numbers.released) == ([], ["stream"])


@each_kind
def test_error_has_errno_and_text(kind: Any) -> None:
    numbers = Numbers(1, OSError(errno.EPIPE, "gone"))
    _, source = streamed(numbers)
    stream = kind.from_arrow(source)
    next(stream)
    with pytest.raises(fletching.Error, match="gone") as error:
        next(stream)
    assert error.value.errno == errno.EPIPE
    assert next(stream, "end") == "end"
    assert numbers.asked == ["schema", "next", "next"]


def test_device_stream_has_no_cpu_export() -> None:
    numbers = Numbers(1)
    _, source = streamed(numbers, ArrowDeviceArrayStream, device_type=2)
    stream = DeviceArrayStream.from_arrow(source)
    assert stream.device_type == 2
    assert not hasattr(stream, "__arrow_c_stream__")
    assert repr(stream).endswith(", cuda>")
    with pytest.raises(fletching.Error, match="device-stream-result"):
        next(stream)
    _, source = streamed(numbers, ArrowDeviceArrayStream, device_type=2)
    with pytest.raises(fletching.Error, match="expected memory that the CPU can read, got cuda"):
        ArrayStream.from_arrow(source)
    assert numbers.released.count("stream") == 1


# --- Streams of Python's batches -----------------------------------------------------------------


def from_batches(kind: Any, batches: Any) -> Any:
    if kind is ArrayStream:
        return ArrayStream.from_batches(SCHEMA, batches)
    return DeviceArrayStream.from_batches(SCHEMA, 1, batches)


@each_kind
def test_from_batches_yields_batches(kind: Any) -> None:
    batches = [BATCHES[0], Array.from_arrow(BATCHES[1]), DeviceArray.from_arrow(BATCHES[0])]
    found = pyarrow.table(from_batches(kind, batches))
    assert found.to_batches() == [BATCHES[0], BATCHES[1], BATCHES[0]]
    assert pyarrow.table(from_batches(kind, [])).schema == TABLE.schema


EXCEPTIONS = [
    *(ValueError("no more"), OSError(errno.EPIPE, "gone"), KeyboardInterrupt("stop")),
    *(SystemExit(3), MemoryError("full")),
]


@each_kind
@pytest.mark.parametrize("error", EXCEPTIONS)
@pytest.mark.parametrize("exports", [0, 1, 2])
def test_next_exception_of_iterable_keeps_type_and_traceback(
    kind: Any, error: BaseException, exports: int
) -> None:
    def batches() -> Iterator[Any]:
        yield BATCHES[0]
        try:
            raise LookupError("the cause")
        except LookupError as cause:
            raise error from cause

    stream = from_batches(kind, batches())
    for _ in range(exports):
        stream = DeviceArrayStream.from_arrow(stream)
    next(stream)
    with pytest.raises(type(error)) as raised:
        next(stream)
    assert raised.value is error
    assert isinstance(error.__cause__, LookupError)
    assert "batches" in [entry.name for entry in raised.traceback]
    assert next(stream, None) is None
    error.__traceback__ = error.__cause__ = error.__context__ = None


@each_kind
def test_next_stop_iteration_in_batch_is_error(kind: Any) -> None:
    class Stopping:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            raise StopIteration("not the end")

    with pytest.raises(fletching.Error, match="StopIteration: not the end") as raised:
        next(from_batches(kind, [Stopping()]))
    assert isinstance(raised.value.__cause__, StopIteration)


@each_kind
def test_next_error_with_other_text_has_cause(kind: Any) -> None:
    """Another library's stream is between the Python stream and the reader."""

    def batches() -> Iterator[Any]:
        yield BATCHES[0]
        raise ValueError("no more")

    reader = pyarrow.RecordBatchReader.from_stream(from_batches(kind, batches()))
    stream = kind.from_arrow(reader)
    next(stream)
    with pytest.raises(fletching.Error, match="no more") as raised:
        next(stream)
    assert isinstance(raised.value.__cause__, ValueError)


@each_kind
def test_from_batches_rejects_other_objects(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"object has no array: .*, got int"):
        next(from_batches(kind, [5]))
    with pytest.raises(TypeError):
        from_batches(kind, 5)


@each_kind
@pytest.mark.parametrize("use", [next, lambda s: s.schema, lambda s: s.close(), pyarrow.table])
def test_producer_using_own_stream_returns_edeadlk(kind: Any, use: Any) -> None:
    def batches() -> Iterator[Any]:
        assert "struct<" in repr(streams[0])
        for _ in range(2):  # the first error does not end the outer call
            with pytest.raises(fletching.Error, match="called by its own producer") as raised:
                use(streams[0])
            assert raised.value.errno == errno.EDEADLK
        yield BATCHES[0]

    streams = [from_batches(kind, batches())]
    assert len(next(streams[0])) == 2
    assert list(streams[0]) == []


def test_from_batches_rejects_batch_on_other_device() -> None:
    schema = Schema.from_arrow(Produced())
    batches = [ProducedOnDevice(device_type=2, device_id=0)]
    stream = DeviceArrayStream.from_batches(schema, 1, batches)
    with pytest.raises(fletching.Error, match="device-stream-result"):
        next(stream)


def test_streams_do_not_leak() -> None:
    def exercise() -> None:
        stream = from_batches(ArrayStream, iter(BATCHES))
        next(stream)
        pyarrow.table(DeviceArrayStream.from_arrow(stream))
        from_batches(DeviceArrayStream, BATCHES).__arrow_c_stream__()

    exercise()
    gc.collect()
    before = [sys.getrefcount(batch) for batch in BATCHES]
    for _ in range(20):
        exercise()
    gc.collect()
    assert [sys.getrefcount(batch) for batch in BATCHES] == before
