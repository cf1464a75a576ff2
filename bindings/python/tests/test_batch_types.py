"""The types of batches must match their stream: otherwise values would be read as another type."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from typing import Any

import pyarrow
import pytest

from capsules import Produced
from fletching import (
    ArrayStream,
    AsyncDeviceArrayStream,
    AsyncHandler,
    DeviceArrayStream,
    DeviceType,
    Error,
    Schema,
    send_async,
)


def read_async(schema: Any, batches: list[Any]) -> int:
    """Returns the number of received batches."""

    async def iterate() -> AsyncIterator[Any]:
        for batch in batches:
            yield batch

    async def run() -> int:
        tasks: list[asyncio.Task[None]] = []

        def start(handler: AsyncHandler) -> None:
            sending = send_async(schema, DeviceType.CPU, iterate(), handler)
            tasks.append(asyncio.ensure_future(sending))

        stream = AsyncDeviceArrayStream.connect(start, window=1)
        try:
            return len([batch async for batch in stream])
        finally:
            (error,) = await asyncio.gather(*tasks, return_exceptions=True)
            assert error is None or isinstance(error, Error)

    return asyncio.run(run())


READERS: dict[str, Callable[[Any, list[Any]], int]] = {
    "ArrayStream": lambda schema, batches: len(list(ArrayStream.from_batches(schema, batches))),
    "DeviceArrayStream": lambda schema, batches: len(
        list(DeviceArrayStream.from_batches(schema, DeviceType.CPU, batches))
    ),
    "send_async": read_async,
}
each_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


def schema_of(type_: Any) -> Schema:
    return Schema.from_arrow(pyarrow.schema({"a": type_}))


LIST = pyarrow.list_(pyarrow.float64())
STRUCT = pyarrow.struct({"x": pyarrow.int32(), "y": pyarrow.list_(pyarrow.int8())})
OTHER = pyarrow.struct({"x": pyarrow.int32(), "y": pyarrow.list_(pyarrow.int16())})
WORDS = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
BYTES = pyarrow.dictionary(pyarrow.int32(), pyarrow.binary())
DIFFERENT = [
    (pyarrow.int64(), pyarrow.float64(), 'field "a": expected format "l", got "g"'),
    (pyarrow.uint32(), pyarrow.uint8(), 'field "a": expected format "I", got "C"'),
    (LIST, pyarrow.list_(pyarrow.int64()), 'field "a.item": expected format "g", got "l"'),
    (STRUCT, OTHER, 'field "a.y.item": expected format "c", got "s"'),
    (WORDS, pyarrow.int32(), 'field "a": expected a dictionary, got no dictionary'),
    (pyarrow.int32(), WORDS, 'field "a": expected no dictionary, got a dictionary'),
    (WORDS, BYTES, 'field "a.dictionary": expected format "u", got "z"'),
]


@each_reader
@pytest.mark.parametrize(
    ("expected", "got", "text"), DIFFERENT, ids=[case[2] for case in DIFFERENT]
)
def test_from_batches_rejects_batch_of_other_type(
    read: Any, expected: Any, got: Any, text: str
) -> None:
    fits = pyarrow.record_batch([pyarrow.array([], expected)], ["a"])
    other = pyarrow.record_batch([pyarrow.array([], got)], ["a"])
    with pytest.raises(Error, match="batch 1: ") as raised:
        read(schema_of(expected), [fits, other])
    assert raised.value.errno == errno.EINVAL
    assert str(raised.value.strerror).endswith(f"batch 1: {text}")


@each_reader
def test_from_batches_rejects_batch_with_other_field_count(read: Any) -> None:
    batch = pyarrow.record_batch({"a": [1], "b": [2]})
    with pytest.raises(Error, match="batch 0: expected number of children 1, got 2"):
        read(schema_of(pyarrow.int64()), [batch])


@each_reader
def test_from_batches_rejects_and_releases_array_of_other_type(read: Any) -> None:
    source = Produced()
    with pytest.raises(Error, match='batch 0: expected format "l", got "i"'):
        read(Schema.from_arrow(pyarrow.field("", pyarrow.int64())), [source])
    assert sorted(source.releases) == ["array", "schema"]


@each_reader
def test_from_batches_ignores_names_flags_and_metadata(read: Any) -> None:
    field = pyarrow.field("b", pyarrow.int64(), nullable=False, metadata={"k": "v"})
    batch = pyarrow.record_batch([pyarrow.array([1])], schema=pyarrow.schema([field]))
    assert read(schema_of(pyarrow.int64()), [batch] * 3) == 3


@each_reader
def test_error_names_unnamed_field_by_index(read: Any) -> None:
    schema = Schema.from_arrow(pyarrow.schema([("a", pyarrow.int8()), ("", pyarrow.int8())]))
    arrays = [pyarrow.array([1], pyarrow.int8()), pyarrow.array([1], pyarrow.uint8())]
    with pytest.raises(Error, match='field "1": expected format "c", got "C"'):
        read(schema, [pyarrow.record_batch(arrays, ["a", ""])])
