"""What pyarrow sends through each language, by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa


def _nested() -> pa.Array:
    item = pa.list_(pa.field("item", pa.int64(), metadata={"unit": "m"}))
    kind = pa.struct([("lists", item), ("texts", pa.string())])
    rows = [
        {"lists": [1, None, 3], "texts": "a"},
        None,
        {"lists": None, "texts": None},
        {"lists": [], "texts": "grüße"},
    ]
    return pa.array(rows, kind)


def _record_batch() -> pa.RecordBatch:
    fields = [
        pa.field("id", pa.int32(), nullable=False, metadata={"key": "värde", "empty": ""}),
        pa.field("color", pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        pa.field("nested", _nested().type),
    ]
    columns = [
        pa.array([1, 2, 3, 4], pa.int32()),
        pa.DictionaryArray.from_arrays(
            pa.array([1, None, 0, 1], pa.int8()), ["red", "blue"], ordered=True
        ),
        _nested(),
    ]
    return pa.record_batch(columns, schema=pa.schema(fields, metadata={"origin": "pyarrow"}))


def _decimals() -> pa.Array:
    values = [Decimal("1.50"), None, Decimal("-99999999999999999999999.99"), Decimal("0.00")]
    return pa.chunked_array([values[:1], values[1:]], pa.decimal128(38, 2)).chunk(1)


def _timestamps() -> pa.Array:
    zone = timezone(timedelta(hours=2))
    values = [datetime(2026, 11, 21, 12, tzinfo=zone), None, datetime(1969, 1, 1, tzinfo=zone)]
    return pa.chunked_array([values, values[1:]], pa.timestamp("us", "Europe/Berlin")).chunk(1)


# Each gives a fresh pyarrow.Array or pyarrow.RecordBatch.
CASES: dict[str, Callable[[], Any]] = {
    "int32": lambda: pa.array([1, -2, 2**31 - 1], pa.int32()),
    "nulls": lambda: pa.array([None, 1, None, None, 4] * 5, pa.int64()),
    "sliced": lambda: pa.array([None, 1, 2, None, 4, 5, 6, 7, None, 9], pa.int16()).slice(3, 6),
    "bool": lambda: pa.array([True, None, False, True] * 5),
    "utf8": lambda: pa.array(["a", "", None, "héllo", "🏹"], pa.string()),
    "large_utf8": lambda: pa.array(["large", None, "", "矢"], pa.large_string()),
    "nested": _nested,
    "dictionary": lambda: pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "record_batch": _record_batch,
    "zero_length": lambda: _record_batch().slice(0, 0),
    "decimals": _decimals,
    "timestamps": _timestamps,
}
