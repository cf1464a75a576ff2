"""Arrays and record batches built from values, NumPy arrays and buffers."""

from __future__ import annotations

import errno
import struct
from array import array as typed
from typing import Any

import numpy
import pyarrow
import pytest

import fletching
from fletching import Array, Error, Schema, from_buffers, make_schema, record_batch
from fletching import array as build

VALUES: dict[str, tuple[list[Any], Any]] = {
    "int": ([1, None, -3], pyarrow.int64()),
    "float": ([1.5, None, 2], pyarrow.float64()),
    "bool": ([True, None, False] * 5, pyarrow.bool_()),
    "str": (["a", None, "", "\u00e4" * 20], pyarrow.string()),
    "bytes": ([b"a", None, b"\xff"], pyarrow.binary()),
}


@pytest.mark.parametrize("name", VALUES)
def test_array_from_values(name: str) -> None:
    values, type_ = VALUES[name]
    found = pyarrow.array(build(values))
    found.validate(full=True)
    assert found.equals(pyarrow.array(values, type_))
    assert build(values).null_count == values.count(None)


@pytest.mark.parametrize(
    ("type_", "values"),
    [("c", [-1, None]), ("S", [65535]), ("f", [0.5]), ("U", ["a", None]), ("Z", []), ("b", [])],
)
def test_array_with_type(type_: str, values: list[Any]) -> None:
    found = build(values, type_, name="n")
    assert (found.schema.format, found.schema.name) == (type_, "n")
    pyarrow.array(found).validate(full=True)
    assert pyarrow.array(found).to_pylist() == values


def test_array_with_mask() -> None:
    assert pyarrow.array(build([1, 2], mask=[True, False])).to_pylist() == [None, 2]
    values = numpy.arange(10)
    found = build(values, mask=values % 3 == 0)
    assert pyarrow.array(found).to_pylist() == [n if n % 3 else None for n in range(10)]
    with pytest.raises(ValueError, match="mask: expected 10 values, got 1"):
        build(values, mask=[True])
    with pytest.raises(ValueError, match="mask: expected 1 values, got 2"):
        build([1], mask=[True, False])


@pytest.mark.parametrize(
    "dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "?", "M8[ms]", "m8[s]"]
)
def test_array_from_numpy(dtype: str) -> None:
    values = numpy.array([0, 1, 1, 0, 1, 1, 0, 0, 1]).astype(dtype)
    for part in (values, values[1:5], values[::2], values[:0]):
        found = pyarrow.array(build(part))
        found.validate(full=True)
        assert found.equals(pyarrow.array(part))


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">M8[s]", ">m8[ms]"])
def test_array_from_numpy_of_other_byte_order(dtype: str) -> None:
    values: Any = numpy.array([1, 2], dtype)
    found = pyarrow.array(build(values))
    assert found.equals(pyarrow.array(values.astype(dtype.replace(">", "="))))


@pytest.mark.parametrize("dtype", ["i4", "?", "M8[s]"])
def test_array_from_masked_numpy_keeps_nulls(dtype: str) -> None:
    values: Any = numpy.ma.array([1, 0, 1], dtype, mask=[False, True, False])
    assert pyarrow.array(build(values)).is_null().to_pylist() == [False, True, False]
    both = build(values, mask=[True, False, False])
    assert pyarrow.array(both).is_null().to_pylist() == [True, True, False]


def test_array_reads_other_libraries_as_sequence() -> None:
    class Series(list[Any]):
        dtype = "not one of NumPy"

    assert pyarrow.array(build(Series([1, None]))).to_pylist() == [1, None]


def test_array_from_numpy_nat_is_null() -> None:
    values = numpy.array(["2024-01-02", "NaT"], "M8[us]")
    assert pyarrow.array(build(values)).equals(pyarrow.array(values))


def test_array_from_numpy_does_not_copy() -> None:
    values = numpy.arange(3)
    assert build(values).buffers[1] == values.ctypes.data


WRONG: list[tuple[Any, Any, str]] = [
    ([1, "a"], TypeError, "got int, str"),
    ([None], TypeError, "got none but None; hint: pass type"),
    ([[1]], TypeError, "got list"),
    (numpy.zeros((2, 2)), TypeError, "expected one dimension, got 2"),
    (numpy.array(["2024"], "M8[Y]"), TypeError, "unit of times: expected s, ms, us or ns, got Y"),
    (numpy.array([1], "M8[10s]"), TypeError, "unit of times: expected s, ms, us or ns, got 10s"),
]


@pytest.mark.parametrize(("values", "error", "text"), WRONG)
def test_array_rejects_unsupported_values(values: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        build(values)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("u", b"\xff"),
        ("U", 1),
        ("z", "a"),
        ("z", memoryview(typed("i", [1, 2]))),  # its length is not its number of bytes
        ("Z", [1]),
        ("b", "False"),
        ("b", 2),
    ],
)
def test_array_rejects_value_of_other_type(type_: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"array: expected .*, got {type(value).__name__}"):
        build([None, value], type_)


def test_array_accepts_boolean_and_bytes_classes() -> None:
    assert pyarrow.array(build([numpy.True_, 0, None], "b")).to_pylist() == [True, False, None]
    assert pyarrow.array(build([bytearray(b"a")], "z")).to_pylist() == [b"a"]


def test_array_rejects_number_out_of_range() -> None:
    with pytest.raises(OverflowError):
        build([300], "c")


def test_record_batch_from_columns() -> None:
    words = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    nested = pyarrow.array([[{"x": 1}], None, []])
    batch = record_batch(
        {"n": [1, None, 3], "t": ["a", "b", None], "f": numpy.arange(3.0), "w": words, "l": nested},
        metadata={"k": "v"},
    )
    found = pyarrow.record_batch(batch)
    found.validate(full=True)
    assert found.to_pydict() == {
        "n": [1, None, 3],
        "t": ["a", "b", None],
        "f": [0, 1, 2],
        "w": ["a", "b", "a"],
        "l": nested.to_pylist(),
    }
    assert found.schema.metadata == {b"k": b"v"}
    assert batch.schema[0].nullable
    with pytest.raises(ValueError, match=r"expected columns of one length, got \[1, 2\]"):
        record_batch({"a": [1], "b": [1, 2]})
    assert len(record_batch({})) == 0


def test_record_batch_keeps_column_fields() -> None:
    schema = make_schema("i", nullable=False, metadata={"k": "v"})
    field = record_batch({"a": from_buffers(schema, 1, [None, bytes(4)])}).schema["a"]
    assert (field.name, field.nullable, field.metadata) == ("a", False, {b"k": b"v"})


def test_record_batch_keeps_columns() -> None:
    batch = record_batch({"a": build(numpy.arange(1000)), "b": pyarrow.array(range(1000))})
    column = batch.column("b")
    del batch
    assert pyarrow.array(column).to_pylist() == list(range(1000))


# --- from_buffers ---

TEXTS = make_schema("u")
LIST = make_schema("+l", children=[make_schema("i", "item")])
LISTS = make_schema("+vl", children=[make_schema("i", "item")])
ONE = build([1], "i")
UNION, SPARSE = (
    make_schema(kind, children=[make_schema("i"), make_schema("l")])
    for kind in ("+ud:7,0", "+us:7,0")
)
TWO: dict[str, Any] = {"children": [ONE, build([1])]}
SHORT_RUNS, RUNS, LONG_RUNS = (
    make_schema("+r", children=[make_schema(kind), make_schema("i")]) for kind in "sil"
)
WORDS: dict[str, Any] = {"dictionary": build(["a"])}


def runs_of(*ends: int, kind: str = "i") -> dict[str, Any]:
    return {"children": [build(ends, kind), build([1, 2], "i")]}


def view(size: int, buffer: int, start: int) -> bytes:
    """Returns the view of a string longer than 12 bytes."""
    return struct.pack("=iiii", size, 0, buffer, start)


BAD_BUFFERS: list[tuple[Any, int, list[Any], dict[str, Any], str]] = [
    (make_schema("l"), 2, [None, bytes(15)], {}, "buffer 1: too small: .* 16 bytes, got 15"),
    (make_schema("l"), 2, [None, None], {}, "buffer 1: too small: .* 16 bytes, got None"),
    (make_schema("l"), 9, [b"\0", bytes(72)], {}, "buffer 0: too small: .* 2 bytes, got 1"),
    (make_schema("l"), 1, [bytes(8)], {}, "expected 2 buffers, got 1"),
    (make_schema("l"), -1, [None, b""], {}, "offset or length: expected 0 or more"),
    (make_schema("l"), 2**60, [None, b""], {}, "length: too large"),
    (TEXTS, 1, [None, typed("i", [0, 4]), b"abc"], {}, "buffer 2: too small: .* 4 bytes, got 3"),
    (TEXTS, 1, [None, typed("i", [0]), b"abc"], {}, "buffer 1: too small: .* 8 bytes, got 4"),
    (TEXTS, 2, [None, typed("i", [0, 3, 1]), b"abc"], {}, "offset 2 is smaller than before"),
    (TEXTS, 1, [None, typed("i", [-1, 0]), b""], {}, "offset 0 is smaller than before"),
    (LIST, 1, [None, typed("i", [0, 1])], {}, "expected 1 children, got 0"),
    (LIST, 1, [None, typed("i", [0, 2])], {"children": [build([1], "i")]}, "child 0: too short"),
    (LIST, 0, [None, None], {"children": [build([1])]}, 'child 0: expected format "i", got "l"'),
    (make_schema("vu"), 0, [None], {}, "expected at least 2 buffers, got 1"),
    (make_schema("vu"), 2, [None, bytes(16)], {}, "buffer 1: too small: .* 32 bytes, got 16"),
    (make_schema("vu"), 1, [None, view(-1, 0, 0)], {}, "view 0 is outside .* got -1 bytes at 0"),
    (make_schema("vu"), 1, [None, view(13, 0, 0)], {}, "view 0 .* 13 bytes at 0 of buffer 0"),
    (make_schema("vu"), 1, [None, view(13, 0, 1), bytes(13)], {}, "view 0 .* at 1 of buffer 0"),
    (make_schema("vu"), 1, [None, view(13, 0, -1), bytes(13)], {}, "view 0 .* at -1 of buffer 0"),
    (make_schema("vu"), 1, [None, view(13, -1, 0), bytes(13)], {}, "view 0 .* of buffer -1"),
    (make_schema("vz"), 1, [None, view(13, 1, 0), bytes(13)], {}, "view 0 .* of buffer 1"),
    (make_schema("vz"), 1, [None, view(13, 0, 0), None], {}, "view 0 .* of buffer 0"),
    (make_schema("vu"), 1, [None, view(13, 0, 0), b"c" * 13], {}, "view 0: the first 4 bytes"),
    (make_schema("vz"), 2, [None, view(13, 0, 0) * 2, bytes(3) + b"c" * 10], {}, "view 0: the fi"),
    (make_schema("vu"), 1, [None, struct.pack("=i12s", 2, b"abc")], {}, "zeros behind .* 2 bytes"),
    (make_schema("vz"), 1, [None, struct.pack("=i11sB", 11, b"", 1)], {}, "zeros behind .* of 11"),
    (LISTS, 2, [None, bytes(8), bytes(4)], {}, "buffer 2: too small: .* 8 bytes, got 4"),
    (LISTS, 1, [None, typed("i", [1]), typed("i", [1])], {"children": [ONE]}, "least 2 values"),
    (LISTS, 1, [None, typed("i", [-1]), typed("i", [1])], {"children": [ONE]}, "list 0 is neg"),
    (LISTS, 1, [None, typed("i", [1]), typed("i", [-1])], {"children": [ONE]}, "list 0 is neg"),
    (LISTS, 1, [b"\0", typed("i", [9]), typed("i", [0])], {"children": [ONE]}, "least 9 values"),
    (make_schema("i", dictionary=TEXTS), 0, [None, b""], {}, "dictionary: expected an array"),
    (make_schema("i"), 0, [None, b""], {"dictionary": ONE}, "dictionary: expected None"),
    (UNION, 2, [b"\7\5", typed("i", [0, 0])], TWO, "type id 1: expected one of 7,0, got 5"),
    (UNION, 1, [b"\xff", typed("i", [0])], TWO, "type id 0: expected one of 7,0, got 255"),
    (UNION, 2, [b"\7\0", typed("i", [0, 1])], TWO, "offset 1 is outside of child 1: got 1"),
    (UNION, 1, [b"\7", typed("i", [-1])], TWO, "offset 0 is outside of child 0: got -1"),
    (SPARSE, 1, [b"\1"], TWO, "type id 0: expected one of 7,0, got 1"),
    (RUNS, 3, [], runs_of(1, 2), "run ends: expected a last one of at least 3, got 2"),
    (RUNS, 1, [], runs_of(2, 2), "run end 1: expected more than 2, got 2"),
    (RUNS, 1, [], runs_of(0, 2), "run end 0: expected more than 0, got 0"),
    (LONG_RUNS, 1, [], runs_of(-1, 1, kind="l"), "run end 0: expected more than 0, got -1"),
    (SHORT_RUNS, 2, [], runs_of(1, 1, kind="s"), "run end 1: expected more than 1, got 1"),
    *(
        (make_schema(kind, dictionary=TEXTS), 1, [None, bad], WORDS, f"of 1 values: got {got}")
        for kind, bad, got in [
            ("c", b"\1", 1),
            ("c", b"\xff", -1),
            ("C", b"\xff", 255),
            ("s", b"\xff\xff", -1),
            ("S", b"\xff\xff", 65535),
            ("i", b"\xff" * 4, -1),
            ("I", b"\xff" * 4, 2**32 - 1),
            ("l", b"\xff" * 8, -1),
            ("L", b"\xff" * 8, -1),
        ]
    ),
]


@pytest.mark.parametrize(("schema", "length", "buffers", "more", "text"), BAD_BUFFERS)
def test_from_buffers_rejects_wrong_arguments(
    schema: Any, length: int, buffers: Any, more: Any, text: str
) -> None:
    with pytest.raises(Error, match=text) as raised:
        from_buffers(schema, length, buffers, **more)
    assert raised.value.errno in (errno.EINVAL, errno.ENOTSUP)


def test_from_buffers_with_offset_children_and_dictionary() -> None:
    array = from_buffers(make_schema("l"), 2, [b"\x05", typed("q", [1, 2, 3])], offset=1)
    assert pyarrow.array(array).to_pylist() == [None, 3]
    lists = from_buffers(LIST, 2, [None, typed("i", [0, 1, 3])], children=[build([1, 2, 3], "i")])
    assert pyarrow.array(lists).to_pylist() == [[1], [2, 3]]
    coded = make_schema("c", dictionary=TEXTS)
    words = from_buffers(coded, 3, [None, typed("b", [0, 1, 0])], dictionary=build(["a", "b"]))
    assert pyarrow.array(words).to_pylist() == ["a", "b", "a"]


@pytest.mark.parametrize(("format", "type_"), [("vu", "string_view"), ("vz", "binary_view")])
def test_from_buffers_with_views(format: str, type_: str) -> None:
    short = struct.pack("=i12s", 2, b"ab")
    long = struct.pack("=i4sii", 14, b"long", 1, 2)
    wild = view(-1, 9, -7)  # under a null
    buffers = [b"\x05", short + wild + long, b"", b"..long and bytes"]
    array = from_buffers(make_schema(format), 3, buffers)
    assert array.n_buffers == 5
    found = pyarrow.array(array)
    found.validate(full=True)
    assert found.type == getattr(pyarrow, type_)()
    assert found.cast(pyarrow.binary()).to_pylist() == [b"ab", None, b"long and bytes"]
    assert pyarrow.array(from_buffers(make_schema(format), 0, [None, None])).to_pylist() == []
    assert pyarrow.array(from_buffers(make_schema(format), 1, [None, short])).is_valid()[0].as_py()


def test_from_buffers_with_list_views() -> None:
    """Views in any order, with overlaps."""
    offsets, sizes = typed("i", [1, 0, 3]), typed("i", [2, 2, 0])
    array = from_buffers(LISTS, 3, [b"\x03", offsets, sizes], children=[build([1, 2, 3], "i")])
    found = pyarrow.array(array)
    found.validate(full=True)
    assert found[:2].to_pylist() == [[2, 3], [1, 2]]
    assert found.null_count == 1


def test_from_buffers_with_unions() -> None:
    dense = from_buffers(
        UNION, 3, [b"\7\0\0", typed("i", [0, 0, 1])], children=[ONE, build([2, 3])]
    )
    assert pyarrow.array(dense).to_pylist() == [1, 2, 3]
    sparse = from_buffers(
        SPARSE, 1, [b"\5\0"], offset=1, children=[build([1, 2], "i"), build([3, 4])]
    )
    assert pyarrow.array(sparse).to_pylist() == [4]


@pytest.mark.parametrize(("schema", "kind"), [(SHORT_RUNS, "s"), (RUNS, "i"), (LONG_RUNS, "l")])
def test_from_buffers_with_run_ends(schema: Schema, kind: str) -> None:
    array = from_buffers(schema, 3, [], offset=1, **runs_of(2, 4, kind=kind))
    assert pyarrow.array(array).to_pylist() == [1, 2, 2]
    assert len(from_buffers(schema, 0, [], children=[build([], kind), build([], "i")])) == 0


def test_from_buffers_ignores_null_indices() -> None:
    schema = make_schema("C", dictionary=TEXTS)
    array = from_buffers(schema, 2, [b"\1", b"\0\xff"], **WORDS)
    assert pyarrow.array(array).to_pylist() == ["a", None]


def test_from_buffers_accepts_generator_of_children() -> None:
    offsets = typed("i", [0, 1])
    array = from_buffers(LIST, 1, [None, offsets], children=(each for each in [ONE]))
    assert pyarrow.array(array).to_pylist() == [[1]]


@pytest.mark.parametrize("format", ["u", "U", "z", "Z"])
def test_from_buffers_without_values_adds_offset(format: str) -> None:
    array = from_buffers(make_schema(format), 0, [None, None, None])
    assert array.buffers[1] != 0
    pyarrow.array(array).validate(full=True)


# --- Schemas ---


def test_make_schema() -> None:
    pair = make_schema("+s", "p", nullable=False, children=[pyarrow.field("x", "int8"), TEXTS])
    schema = make_schema("+l", "l", metadata={"k": b"\xff"}, children=[pair])
    assert schema.type == "list<struct<x: int8, string>>"
    assert schema.metadata == {b"k": b"\xff"}
    assert not schema["p"].nullable
    with pytest.raises(Error, match="name: NUL character"):
        make_schema("i", "a\0b")
    with pytest.raises(Error, match="children of a map"):
        make_schema("+m")


def test_schema_fields_by_name_and_index() -> None:
    schema = Schema.from_arrow(pyarrow.schema({"a": pyarrow.int8(), "b": pyarrow.string()}))
    assert len(schema) == 2
    assert [schema[i].name for i in range(len(schema))] == ["a", "b"]
    last: Any = numpy.int64(-1)
    assert schema["b"].format == schema[1].format == schema[last].format == "u"
    with pytest.raises(KeyError, match="no such field: expected one of 2 fields, got c"):
        schema["c"]
    with pytest.raises(IndexError, match="no such field: expected one of 2 fields, got -3"):
        schema[-3]
    with pytest.raises(TypeError, match="expected an index or a name, got float"):
        schema[1.0]  # type: ignore[index]


def test_type_names_extension() -> None:
    array = Array.from_arrow(pyarrow.array([b"0" * 16], pyarrow.uuid()))
    assert repr(array) == (
        "<fletching.Array extension<arrow.uuid: fixed_size_binary(16)>, length 1>"
    )


def test_numpy_asarray_returns_values() -> None:
    array = build([1, 2, 3])
    assert numpy.asarray(array).tolist() == [1, 2, 3]
    assert numpy.asarray(array).dtype == numpy.int64
    assert numpy.asarray(array, dtype="f4").dtype == numpy.float32
    copied = numpy.array(array)
    copied[0] = 7
    assert numpy.asarray(array)[0] == 1
    assert numpy.asarray(array).ctypes.data == array.buffers[1]
    with pytest.raises(BufferError):
        numpy.asarray(build([1, None]))


def test_from_batches_accepts_pyarrow_schema() -> None:
    batch = pyarrow.record_batch({"a": [1]})
    for stream in (
        fletching.ArrayStream.from_batches(batch.schema, [batch]),
        fletching.DeviceArrayStream.from_batches(batch.schema, fletching.DeviceType.CPU, [batch]),
    ):
        with stream as entered:
            assert entered is stream
            batch_read: Any = next(entered)
            assert len(batch_read) == 1
        with pytest.raises(Error, match="stream is consumed"):
            next(stream)
