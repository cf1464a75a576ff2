"""The cases of the reference producer as pyarrow arrays, by name.

Written by hand from the intended contents of the cases, not from the producer's output. pyarrow
sends them through each language, and imported cases are compared with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

# Makes a pyarrow.Array or pyarrow.RecordBatch.
Make = Callable[[], Any]

# Cases with types that have no class in pyarrow, and their format strings.
FORMATS_WITHOUT_CLASS: Mapping[str, bytes] = {
    "interval_months": b"tiM",
    "interval_day_time": b"tiD",
}


def _values(kind: pa.DataType, *values: Any) -> Make:
    return lambda: pa.array(values, kind)


def _slice(make: Make, offset: int, length: int | None = None) -> Make:
    return lambda: make().slice(offset, length)


# --- One width per value -------------------------------------------------------------------------

_ELEVEN = _values(pa.int32(), 0, None, *range(2, 11))
_BOOLS = "+- ++-+-+ -++-"  # true, false and null


def _integers() -> dict[str, Make]:
    cases = {
        "int32": _values(pa.int32(), 1, 2, -(2**31), 2**31 - 1),
        "int64": _values(pa.int64(), 1, -2, -(2**63), 2**63 - 1),
    }
    for bits in (8, 16, 32, 64):
        if bits < 32:
            signed = pa.int8() if bits == 8 else pa.int16()
            half = 2 ** (bits - 1)
            cases[f"int{bits}"] = _values(signed, 1, -half, None, half - 1)
        unsigned = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[bits]
        cases[f"uint{bits}"] = _values(unsigned, 1, 0, None, 2**bits - 1)
    return cases


def _numbers() -> dict[str, Make]:
    infinity = float("inf")
    return {
        "float16": _values(pa.float16(), 1.5, -2.0, None, 65504.0, 2.0**-24, infinity),
        "float32": _values(pa.float32(), 0.5, -0.0, None, -infinity, 2.0**-149),
        "float64": _values(pa.float64(), 0.5, -0.0, 1e300, infinity),
        "bool": _values(pa.bool_(), True, False, None, True, True, False, True, False, True),
        "null": lambda: pa.nulls(3),
        "decimal32": _decimals(pa.decimal32(9, 2), "1.50", "-9999999.99"),
        "decimal64": _decimals(pa.decimal64(18, 3), "1.500", "-999999999999999.999"),
        "decimal128": _decimals(pa.decimal128(38, 2), "1.50", "-99999999999999999999999.99"),
        "decimal128_bits": _values(
            pa.decimal128(20, 0), Decimal(1), Decimal(-18446744073709551616)
        ),
        "decimal128_negative_scale": _decimals(pa.decimal128(5, -2), "1500", "-9999900"),
        "decimal256": _decimals(pa.decimal256(76, 4), "1.5", f"-1{'0' * 40}.0001"),
    }


def _decimals(kind: pa.DataType, first: str, last: str) -> Make:
    return _values(kind, Decimal(first), None, Decimal(last))


def _times() -> dict[str, Make]:
    cases = {
        "date32": _values(
            pa.date32(), date(1970, 1, 1), date(1969, 12, 31), None, date(2026, 11, 21)
        ),
        "date64": _values(
            pa.date64(), date(1970, 1, 1), date(1969, 12, 31), None, date(2026, 11, 21)
        ),
        "time32_s": _values(pa.time32("s"), 0, None, 86_399),
        "time32_ms": _values(pa.time32("ms"), 0, None, 86_399_999),
        "time64_us": _values(pa.time64("us"), 0, None, 86_399_999_999),
        "time64_ns": _values(pa.time64("ns"), 0, None, 86_399_999_999_999),
        "interval_month_day_nano": _values(
            pa.month_day_nano_interval(), (1, -2, 3_000_000_000), None, (-14, 31, -1)
        ),
    }
    moments = (0, -1, None, 1_795_262_400)
    for unit in ("s", "ms", "us", "ns"):
        cases[f"timestamp_{unit}"] = _values(pa.timestamp(unit), *moments)
        cases[f"timestamp_{unit}_zone"] = _values(pa.timestamp(unit, "Europe/Berlin"), *moments)
        cases[f"duration_{unit}"] = _values(pa.duration(unit), *moments)
    assert cases["duration_s"]()[3].as_py() == timedelta(seconds=1_795_262_400)
    return cases


def _nulls_and_offsets() -> dict[str, Make]:
    signs = {"+": True, "-": False, " ": None}
    bools = _values(pa.bool_(), *(signs[sign] for sign in _BOOLS))
    return {
        "nulls": _values(pa.int32(), None, 1, None, 3, None, None, 6, 7, 8, None),
        "nulls_only": _values(pa.int32(), None, None, None),
        "nulls_uncounted": _values(pa.int32(), None, 1, None, 3),
        "nulls_uncounted_without_validity": _values(pa.int32(), 1, 2, 3),
        "nulls_none_with_validity": _values(pa.int32(), 1, 2, 3),
        "offset": _slice(_ELEVEN, 3),
        "offset_uncounted": _slice(_ELEVEN, 1),
        "offset_to_the_end": _slice(_ELEVEN, 11),
        "slice": _slice(_ELEVEN, 1, 8),
        "bool_slice": _slice(bools, 7, 4),
        "null_slice": _slice(lambda: pa.nulls(3), 1),
    }


# --- Text and binary -----------------------------------------------------------------------------

_LONG, _OTHER = "longer than twelve bytes", "another one in the second buffer"
_THIRD = "and a third, in the first again"


def _binary() -> dict[str, Make]:
    texts = _values(pa.string(), "a", "", None, "héllo", "🏹")
    blobs = (b"\x01\xff", b"", None, bytes(3), b"\x80\x81\x82\x83")
    views = ("short", _LONG, None, _OTHER, "", "exactly 12 b", _THIRD)
    large_blobs = _values(pa.large_binary(), *blobs)
    pairs = _values(pa.binary(2), b"ab", None, b"cd", None, b"ef")
    return {
        "utf8": texts,
        "large_utf8": _values(pa.large_string(), "large", None, "", "矢"),
        "binary": _values(pa.binary(), *blobs),
        "large_binary": large_blobs,
        "fixed_size_binary": _values(pa.binary(3), b"abc", None, bytes(3), b"\x80yz"),
        "utf8_view": _values(pa.string_view(), *views),
        "binary_view": _values(
            pa.binary_view(), b"\xff\xfe", _LONG.encode(), None, bytes(3), _OTHER.encode()
        ),
        "utf8_view_inline": _values(pa.string_view(), "short", None, "", "exactly 12 b"),
        "utf8_slice": _slice(texts, 1, 3),
        "large_binary_slice": _slice(large_blobs, 1, 3),
        "fixed_size_binary_slice": _slice(pairs, 2, 2),
        "utf8_view_slice": _slice(_values(pa.string_view(), *views), 2, 3),
    }


# --- Lists, structs, maps ------------------------------------------------------------------------


def _lists() -> dict[str, Make]:
    rows: tuple[Any, ...] = ([1, 2], [], None, [3, None, 5])
    viewed: tuple[Any, ...] = ([None, 5], None, [1, 2, 3, None], [], [1])
    list_ = _values(pa.list_(pa.int32()), [1, 2], [], None, [3], [None, 5])
    views = _values(pa.list_view(pa.int32()), *viewed)
    # Built from their children, because a null fixed-size list has elements too.
    fixed = _fixed_size_lists([1, 2, None, 4, 5, 6, 7, 8])
    return {
        "list": _values(pa.list_(pa.int32()), *rows),
        "large_list": _values(pa.large_list(pa.int32()), *rows),
        "list_view": views,
        "large_list_view": _values(pa.large_list_view(pa.int32()), *viewed),
        "fixed_size_list": fixed,
        "list_of_utf8": _values(pa.list_(pa.string()), ["a", ""], [], None, [None, "dd", "e"]),
        "list_slice": _slice(list_, 1, 3),
        "list_of_slice": _values(pa.list_(pa.int32()), [3], [None, 5]),
        "large_list_slice": _slice(_values(pa.large_list(pa.int32()), *rows), 3),
        "list_view_slice": _slice(views, 1, 3),
        "fixed_size_list_slice": _slice(_fixed_size_lists([1, 2, None, 4, 5, 6, 7, 8]), 1, 2),
    }


def _fixed_size_lists(items: list[int | None]) -> Make:
    def make() -> pa.Array:
        mask = pa.array([False, False, True, False])
        return pa.FixedSizeListArray.from_arrays(pa.array(items, pa.int32()), 2, mask=mask)

    return make


def _structs() -> dict[str, Make]:
    inner = pa.struct([("x", pa.int64()), ("y", pa.string())])
    nested = _values(
        pa.struct([("a", pa.int32()), ("b", pa.bool_()), ("inner", inner)]),
        {"a": 1, "b": True, "inner": {"x": 7, "y": "p"}},
        {"a": None, "b": None, "inner": None},
        None,
    )
    rows = [(2, "dddd"), (3, ""), None, (5, "ggg")]
    pairs = _values(
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        *(None if row is None else {"a": row[0], "b": row[1]} for row in rows),
    )
    return {
        "struct": nested,
        "struct_offset": _slice(pairs, 1),
        "struct_slice": _slice(pairs, 1, 2),
        "struct_without_children": _values(pa.struct([]), {}, None, {}),
        "deep": _deep,
    }


def _deep() -> pa.Array:
    array = pa.array([42], pa.int32())
    for level in range(1, 48):
        if level % 2 == 1:
            array = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)
        else:
            array = pa.StructArray.from_arrays([array], ["s"])
    return array


def _maps() -> dict[str, Make]:
    rows: tuple[Any, ...] = ([("a", 1), ("b", None)], None, [], [("c", 3)])
    map_ = _values(pa.map_(pa.string(), pa.int32()), *rows)
    return {
        "map": map_,
        "map_sorted": _values(pa.map_(pa.string(), pa.int32(), keys_sorted=True), *rows),
        "map_slice": _slice(map_, 1),
    }


# --- Unions, runs, dictionaries ------------------------------------------------------------------


def _unions() -> dict[str, Make]:
    def sparse() -> pa.Array:
        types = pa.array([0, 1, 1, 0], pa.int8())
        children = [pa.array([1, 0, 0, None], pa.int32()), pa.array(["", "b", None, ""])]
        return pa.UnionArray.from_sparse(types, children, ["x", "y"])

    def dense(x: int, y: int) -> Make:
        def make() -> pa.Array:
            types = pa.array([x, y, y, x], pa.int8())
            offsets = pa.array([0, 0, 1, 1], pa.int32())
            children = [pa.array([1, None], pa.int32()), pa.array(["b", None])]
            return pa.UnionArray.from_dense(types, offsets, children, ["x", "y"], [x, y])

        return make

    return {
        "sparse_union": sparse,
        "dense_union": dense(0, 1),
        "dense_union_ids": dense(7, 5),
        "sparse_union_slice": _slice(sparse, 1, 2),
        "dense_union_slice": _slice(dense(0, 1), 1, 2),
    }


def _runs() -> dict[str, Make]:
    def runs(kind: pa.DataType) -> Make:
        ends, values = [2, 3, 7], ["one", None, "three"]
        return lambda: pa.RunEndEncodedArray.from_arrays(pa.array(ends, kind), pa.array(values))

    return {
        "run_end_int16": runs(pa.int16()),
        "run_end_int32": runs(pa.int32()),
        "run_end_int64": runs(pa.int64()),
        "run_end_slice": _slice(runs(pa.int32()), 2, 4),
    }


def _dictionary(indices: Make, values: Make, ordered: bool = False) -> Make:
    return lambda: pa.DictionaryArray.from_arrays(indices(), values(), ordered=ordered)


def _colors(kind: pa.DataType, *indices: int | None, ordered: bool = False) -> Make:
    return _dictionary(
        _values(kind, *indices), _values(pa.string(), "red", "green", "blue"), ordered
    )


def _dictionaries() -> dict[str, Make]:
    def some(kind: pa.DataType, ordered: bool = False) -> Make:
        return _colors(kind, 2, 0, None, 1, 2, ordered=ordered)

    def structs() -> pa.Array:
        fields = [_colors(pa.int32(), 2, 1)(), pa.array([10, None], pa.int64())]
        return pa.StructArray.from_arrays(fields, ["color", "shade"])

    def lists() -> pa.Array:
        colors = _colors(pa.int8(), 2, None, 0)()
        return pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), colors)

    def of_colors() -> pa.Array:
        offsets = pa.array([0, None, 2, 3], pa.int32())
        return pa.ListArray.from_arrays(offsets, _colors(pa.int8(), 2, 0, 1)())

    texts = _values(pa.string(), "skipped", "red", "green")
    return {
        "dictionary": some(pa.int8()),
        "dictionary_int16": some(pa.int16()),
        "dictionary_int32": some(pa.int32()),
        "dictionary_int64": some(pa.int64()),
        "dictionary_uint8": some(pa.uint8()),
        "dictionary_uint16": some(pa.uint16()),
        "dictionary_uint32": some(pa.uint32()),
        "dictionary_uint64": some(pa.uint64()),
        "dictionary_ordered": some(pa.int8(), ordered=True),
        "dictionary_slice": _slice(some(pa.int32()), 1, 3),
        "dictionary_of_slice": _dictionary(_values(pa.int8(), 1, None, 0), _slice(texts, 1)),
        "dictionary_of_nulls": _dictionary(
            _values(pa.int8(), 1, 0), _values(pa.string(), "a", None)
        ),
        "dictionary_of_struct": _dictionary(_values(pa.int8(), 1, None, 0), structs),
        "dictionary_of_list": _dictionary(_values(pa.int32(), 1, None, 0), lists),
        "list_of_dictionary": of_colors,
    }


# --- Record batches ------------------------------------------------------------------------------


def _record_batch() -> pa.RecordBatch:
    fields = [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("naïve", pa.string(), metadata={"unit": "größe", "empty": ""}),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("color", pa.dictionary(pa.int8(), pa.string())),
        pa.field("flag", pa.bool_()),
    ]
    columns = [
        pa.array([10, 11, 12, 13, 14], pa.int32()),
        pa.array(["one", None, "", "four", "fünf"]),
        pa.array([[1, 2], [], None, [None], [4, 5, 6]], pa.list_(pa.int32())),
        _colors(pa.int8(), 2, 0, None, 1, 2)(),
        pa.array([True, False, None, True, True]),
    ]
    schema = pa.schema(fields, metadata={"origin": "fletching", "version": "1"})
    return pa.record_batch(columns, schema=schema)


def _extension_batch() -> pa.RecordBatch:
    unknown = {
        "ARROW:extension:name": "fletching.unknown",
        "ARROW:extension:metadata": '{"version": 1}',
    }
    fields = [pa.field("uuid", pa.uuid()), pa.field("unknown", pa.int32(), metadata=unknown)]
    storage = pa.array([b"0123456789abcdef", None, b"fedcba9876543210"], pa.binary(16))
    columns = [
        pa.ExtensionArray.from_storage(pa.uuid(), storage),
        pa.array([1, None, 3], pa.int32()),
    ]
    return pa.record_batch(columns, schema=pa.schema(fields))


def _wide_batch() -> pa.RecordBatch:
    columns = [pa.array([i, None, -i], pa.int32()) for i in range(1000)]
    return pa.record_batch(columns, names=[f"c{i}" for i in range(1000)])


def _every_layout_empty() -> pa.Array:
    nothing = pa.array([], pa.int32())
    types = pa.array([], pa.int8())
    texts = pa.array([], pa.string())
    columns = {
        "a": nothing,
        "b": texts,
        "bool": pa.array([], pa.bool_()),
        "null": pa.nulls(0),
        "large": pa.array([], pa.large_binary()),
        "fixed": pa.array([], pa.binary(3)),
        "view": pa.array([], pa.string_view()),
        "list": pa.array([], pa.list_(pa.int32())),
        "list_view": pa.array([], pa.list_view(pa.int32())),
        "fixed_list": pa.array([], pa.list_(pa.int32(), 2)),
        "map": pa.array([], pa.map_(pa.string(), pa.int32())),
        "sparse": pa.UnionArray.from_sparse(types, [nothing], ["x"]),
        "dense": pa.UnionArray.from_dense(types, nothing, [nothing], ["x"]),
        "runs": pa.RunEndEncodedArray.from_arrays(nothing, texts),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), texts),
    }
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _batches() -> dict[str, Make]:
    return {
        "zero_length": _values(pa.struct([("a", pa.int32()), ("b", pa.string())])),
        "zero_length_every_layout": _every_layout_empty,
        "zero_length_null_buffers": _every_layout_empty,
        "record_batch": _record_batch,
        "record_batch_without_columns": lambda: pa.RecordBatch.from_struct_array(
            pa.array([{}] * 3, pa.struct([]))
        ),
        "extension_batch": _extension_batch,
        "wide_batch": _wide_batch,
    }


CASES: Mapping[str, Make] = {
    **_integers(),
    **_numbers(),
    **_times(),
    **_nulls_and_offsets(),
    **_binary(),
    **_lists(),
    **_structs(),
    **_maps(),
    **_unions(),
    **_runs(),
    **_dictionaries(),
    **_batches(),
}
