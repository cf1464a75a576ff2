"""Random shapes, strides, types, metadata and slices, with NumPy and pyarrow as the oracles.
Hypothesis draws the same examples in every run."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy
import pyarrow
from hypothesis import given, settings
from hypothesis import strategies as st

from fletching import Array, ArrayStream, DeviceArray, Schema, from_buffer, from_dlpack

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=200)
settings.load_profile("fixed")

TYPES = [*("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
dtypes = st.sampled_from(TYPES)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@st.composite
def views(draw: st.DrawFn) -> numpy.ndarray[Any, Any]:
    """A slice of an array, with steps, in any order of dimensions, possibly empty."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    whole = numpy.arange(int(numpy.prod(shape))).astype(draw(dtypes)).reshape(shape)
    whole = whole.transpose(draw(st.permutations(range(whole.ndim))))
    steps = st.sampled_from([1, 1, 1, 2, 3, -1, -2])
    parts = tuple(slice(draw(st.integers(0, n)), None, draw(steps)) for n in whole.shape)
    return whole[parts] if draw(st.booleans()) else whole


@given(views())
def test_numpy_tensors_round_trip(values: numpy.ndarray[Any, Any]) -> None:
    try:
        array = from_dlpack(values, copy=False)
    except BufferError as error:
        assert "stride" in str(error)
        assert not values.flags.c_contiguous
        array = from_dlpack(values)
    else:
        found = array.to_numpy()
        assert values.size == 0 or found.ctypes.data == values.ctypes.data
    assert len(array) == len(values)
    copies = (numpy.from_dlpack(array), numpy.from_dlpack(array, copy=True))
    for found in (array.to_numpy(), *copies):
        assert found.dtype == values.dtype
        assert found.shape == values.shape
        assert numpy.array_equal(found, values)


@given(dtypes, st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_pyarrow_slices_keep_values(dtype: str, length: int, start: int, end: int) -> None:
    values = numpy.arange(length).astype(dtype)
    array = Array.from_arrow(pyarrow.array(values)[min(start, length) : end])
    for found in (array.to_numpy(), numpy.from_dlpack(array, copy=True)):
        assert numpy.array_equal(found, values[min(start, length) : end])
    assert pyarrow.array(from_buffer(values)).equals(pyarrow.array(values))


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=100), max_size=5), texts)
def test_metadata_round_trips(metadata: dict[bytes, bytes], name: str) -> None:
    field = pyarrow.field(name, pyarrow.int8(), True, metadata)
    schema = Schema.from_arrow(field)
    assert schema.metadata == metadata
    assert schema.name == name
    assert pyarrow.field(schema).equals(field, check_metadata=True)


scalars = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
columns = {
    "number": st.lists(scalars, min_size=6, max_size=6),
    "text": st.lists(st.one_of(st.none(), texts), min_size=6, max_size=6),
    "list": st.lists(st.one_of(st.none(), st.lists(scalars, max_size=3)), min_size=6, max_size=6),
}
TABLE = {
    "number": pyarrow.int64(),
    "text": pyarrow.string(),
    "list": pyarrow.list_(pyarrow.int64()),
}


@given(st.fixed_dictionaries(columns), st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_record_batch_slices_round_trip(
    values: dict[str, Any], start: int, length: int, device: bool
) -> None:
    """Slices of a struct, its columns, and a stream of it."""
    arrays = [pyarrow.array(values[name], type_) for name, type_ in TABLE.items()]
    whole = pyarrow.StructArray.from_arrays(arrays, list(TABLE))[start : start + length]
    array = (DeviceArray if device else Array).from_arrow(whole)
    assert pyarrow.array(array).equals(whole)
    for name in TABLE:
        assert pyarrow.array(array.column(name)).equals(whole.field(name))
    batch = pyarrow.RecordBatch.from_struct_array(whole)
    if batch.num_rows == 0:
        return  # pyarrow's table drops an empty batch
    stream = ArrayStream.from_batches(Schema.from_arrow(batch.schema), [batch, batch])
    assert pyarrow.table(stream).to_batches() == [batch, batch]


@given(st.binary(max_size=50), st.lists(st.sampled_from("ACRSD"), max_size=20))
def test_memory_is_released_with_last_reference(source: bytes, operations: list[str]) -> None:
    """After any operations, an array's memory is released with the last of its objects."""
    memory = bytearray(source) or bytearray(1)
    before = sys.getrefcount(memory)
    kept: list[Any] = [from_buffer(memory)]
    for operation in operations:
        array = kept[-1] if isinstance(kept[-1], (Array, DeviceArray)) else kept[0]
        if operation == "A":
            kept.append(array.__arrow_c_device_array__())
        elif operation == "C":
            kept.append(DeviceArray.from_arrow(array))
        elif operation == "R":
            kept.append(repr(array))
        elif operation == "S":
            kept.append(array.schema)
        elif len(kept) > 1:
            del kept[1]
    array = None
    kept.clear()
    gc.collect()
    assert sys.getrefcount(memory) == before
    memory.append(0)  # raises BufferError while the memory is held
