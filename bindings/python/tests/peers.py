"""The other Arrow libraries for Python, and types of every kind, for test_peers*.py."""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow


def _union(mode: str) -> Any:
    kinds = pyarrow.array([0, 1, 0], pyarrow.int8())
    if mode == "sparse":
        values = [pyarrow.array([1, 2, 3]), pyarrow.array(["a", "b", "c"])]
        return pyarrow.UnionArray.from_sparse(kinds, values)
    offsets = pyarrow.array([0, 0, 1], pyarrow.int32())
    values = [pyarrow.array([1, 2]), pyarrow.array(["a"])]
    return pyarrow.UnionArray.from_dense(kinds, offsets, values)


LONG = "more than the twelve bytes that a view has room for"
LISTS = [[1, 2], None, []]
ENDS = pyarrow.array([2, 3], pyarrow.int32())
CASES: dict[str, Any] = {
    "int32": pyarrow.array([1, None, 3], pyarrow.int32()),
    "uint64": pyarrow.array([1, 2**63, None], pyarrow.uint64()),
    "float16": pyarrow.array([1.5, None, 2], pyarrow.float16()),
    "float64": pyarrow.array([1.5, None, 2]),
    "bool": pyarrow.array([True, None, False]),
    "string": pyarrow.array(["a", None, LONG]),
    "large_string": pyarrow.array(["a", None, LONG], pyarrow.large_string()),
    "string_view": pyarrow.array(["a", None, LONG], pyarrow.string_view()),
    "binary": pyarrow.array([b"a", None, b"\x00"]),
    "binary_view": pyarrow.array([b"a", None, LONG.encode()], pyarrow.binary_view()),
    "fixed_binary": pyarrow.array([b"aa", None, b"cc"], pyarrow.binary(2)),
    "list": pyarrow.array(LISTS),
    "large_list": pyarrow.array(LISTS, pyarrow.large_list(pyarrow.int64())),
    "list_view": pyarrow.array(LISTS, pyarrow.list_view(pyarrow.int64())),
    "fixed_list": pyarrow.array([[1, 2], None, [3, 4]], pyarrow.list_(pyarrow.int64(), 2)),
    "nested": pyarrow.array([[{"x": [1, None]}], None, []]),
    "struct": pyarrow.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "c"}]),
    "map": pyarrow.array([[("k", 1)], None, []], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    "dictionary": pyarrow.array(["a", None, "b"]).dictionary_encode(),
    "decimal": pyarrow.array([Decimal("1.50"), None, Decimal(2)], pyarrow.decimal128(5, 2)),
    "date": pyarrow.array([datetime.date(2024, 1, 2), None, datetime.date(1, 1, 1)]),
    "time": pyarrow.array([datetime.time(1, 2), None, datetime.time(3)], pyarrow.time64("us")),
    "timestamp": pyarrow.array(
        [datetime.datetime(2024, 1, 2), None, None], pyarrow.timestamp("us", "UTC")
    ),
    "duration": pyarrow.array([datetime.timedelta(1), None, None], pyarrow.duration("us")),
    "interval": pyarrow.array([(1, 2, 3), None, None], pyarrow.month_day_nano_interval()),
    "null": pyarrow.nulls(3),
    "dense_union": _union("dense"),
    "sparse_union": _union("sparse"),
    "run_ends": pyarrow.RunEndEncodedArray.from_arrays(ENDS, pyarrow.array(["a", None])),
}


@dataclass(frozen=True)
class Peer:
    """A library. `table` creates a table from a struct array or a stream. The cases that it
    rejects, changes or crashes on behave the same without fletching."""

    name: str
    table: Callable[[Any], Any]
    series: Callable[[Any], Any] | None = None  # creates a series from an array of any type
    schema: Callable[[Any], Any] | None = None
    refuses: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    crashes: frozenset[str] = frozenset()
    takes_arrays: bool = True  # takes arrays, too, not only streams
    reads_once: bool = False  # a table that `table` creates from a stream can be read once


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _pyarrow() -> Peer:
    return Peer("pyarrow", pyarrow.table, pyarrow.array, pyarrow.schema)


def _nanoarrow() -> Peer:
    library = _module("nanoarrow")
    return Peer(
        "nanoarrow",
        library.ArrayStream,
        library.c_array,
        library.c_schema,
        # Its export writes past the end of its copy of a view array.
        crashes=frozenset({"string_view", "binary_view", "list_view"}),
        reads_once=True,
    )


def _polars() -> Peer:
    library = _module("polars")
    refuses = frozenset({"list_view", "dense_union", "sparse_union", "run_ends", "interval"})
    return Peer("polars", library.DataFrame, library.Series, library.Schema, refuses)


def _arro3() -> Peer:
    library = _module("arro3.core")
    return Peer("arro3", library.Table, library.Array, library.Schema)


def _pandas() -> Peer:
    library = _module("pandas")
    # An empty list view fails a check in pyarrow.
    views = frozenset({"list_view"})
    unions = frozenset({"dense_union", "sparse_union"})
    make = library.DataFrame.from_arrow
    return Peer("pandas", make, library.Series.from_arrow, None, unions | {"map"}, crashes=views)


def _duckdb() -> Peer:
    return Peer(
        "duckdb",
        _module("duckdb").connect().from_arrow,
        refuses=frozenset({"float16", "dense_union"}),
        changes=frozenset({"duration", "interval"}),  # its intervals have no nanoseconds
        takes_arrays=False,
        reads_once=True,
    )


def _datafusion() -> Peer:
    return Peer("datafusion", _module("datafusion").SessionContext().from_arrow)


_MAKERS = {
    "pyarrow": _pyarrow,
    "nanoarrow": _nanoarrow,
    "polars": _polars,
    "arro3": _arro3,
    "pandas": _pandas,
    "duckdb": _duckdb,
    "datafusion": _datafusion,
}
# The last two are large, so they have a separate environment: ../test-more-peers.
PEERS = os.environ.get("FLETCHING_PEERS", "pyarrow nanoarrow polars arro3 pandas").split()


def peer(name: str) -> Peer:
    return _MAKERS[name]()
