"""Columns by index and name, with the parent's offset, length and nulls."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
import pytest

from capsules import Given, struct_in
from fletching import Array, DeviceArray, Error, from_dlpack
from fletching.abi import ArrowArray
from test_arrays import BATCH

each_kind = pytest.mark.parametrize("kind", [Array, DeviceArray])
STRUCT = pyarrow.StructArray.from_arrays([pyarrow.array([1, None, 3, 4])], ["n"])


def changed(array: Any, **fields: int) -> Given:
    """Returns the array with changed fields in its child."""
    capsules = array.__arrow_c_array__()
    child = struct_in(ArrowArray, capsules[1]).children[0].contents
    for name, value in fields.items():
        setattr(child, name, value)
    return Given(array=capsules)


@each_kind
def test_column_by_index_and_name(kind: Any) -> None:
    array = kind.from_arrow(BATCH)
    for index, name in enumerate(BATCH.schema.names):
        for which in (index, name, index - len(BATCH.schema.names), numpy.int8(index)):
            column = array.column(which)
            assert type(column) is kind
            assert pyarrow.array(column).equals(BATCH.column(index))
    for wrong in (4, -5):
        with pytest.raises(Error, match=f"no such index: expected one of 4 columns, got {wrong}"):
            array.column(wrong)
    with pytest.raises(Error, match="column: no such name: got x"):
        array.column("x")


def test_column_starts_at_parent_offset() -> None:
    whole = pyarrow.StructArray.from_arrays(
        [pyarrow.array([1, None, 3, 4]), pyarrow.array(["a", "b", "c", "d"])], ["n", "t"]
    )
    array = Array.from_arrow(whole[1:3])
    assert array.offset == 1
    assert pyarrow.array(array.column("n")).to_pylist() == [None, 3]
    assert pyarrow.array(array.column("t")).to_pylist() == ["b", "c"]
    assert array.column("n").null_count == -1


def test_column_rejects_short_child() -> None:
    capsules = pyarrow.array([{"n": 1}, {"n": 2}]).__arrow_c_array__()
    struct_in(ArrowArray, capsules[1]).children[0].contents.length = 1
    array = Array.from_arrow(Given(array=capsules))
    with pytest.raises(Error, match="child 0: too short for its parent"):
        array.column(0)


@each_kind
def test_whole_column_keeps_null_count(kind: Any) -> None:
    column = kind.from_arrow(STRUCT).column("n")
    assert (len(column), column.offset, column.null_count) == (4, 0, 1)


@each_kind
def test_partial_column_has_unknown_null_count(kind: Any) -> None:
    for part, offset, length in ((STRUCT[1:], 1, 3), (STRUCT[:3], 0, 3)):
        column = kind.from_arrow(part).column("n")
        assert (len(column), column.offset, column.null_count) == (length, offset, -1)
    whole = pyarrow.StructArray.from_arrays([pyarrow.array([1, 2])], ["n"])
    assert kind.from_arrow(whole[1:]).column("n").null_count == 0


@each_kind
@pytest.mark.parametrize("length", [0, 2])
def test_column_rejects_child_too_short_for_offset(kind: Any, length: int) -> None:
    array = kind.from_arrow(changed(STRUCT[1:3], length=length))
    text = f"child 0: too short for its parent: expected at least 2 values from 1, got {length}"
    with pytest.raises(Error, match=text):
        array.column(0)


@each_kind
def test_column_accepts_child_of_minimum_length(kind: Any) -> None:
    assert len(kind.from_arrow(changed(STRUCT[1:3], length=3)).column(0)) == 2


@each_kind
@pytest.mark.parametrize("fields", [{"offset": -1}, {"length": -1}])
def test_column_rejects_negative_parent_field(kind: Any, fields: dict[str, int]) -> None:
    capsules = STRUCT.__arrow_c_array__()
    for name, value in fields.items():
        setattr(struct_in(ArrowArray, capsules[1]), name, value)
    with pytest.raises(Error, match="too short for its parent"):
        kind.from_arrow(Given(array=capsules)).column(0)


@each_kind
def test_column_child_offset_overflow_raises(kind: Any) -> None:
    array = kind.from_arrow(changed(STRUCT[1:3], offset=2**63 - 1))
    with pytest.raises(Error, match="too short for its parent"):
        array.column(0)


def test_list_column_ignores_parent_offset() -> None:
    """Only structs and sparse unions have children of the parent's length."""
    lists = pyarrow.array([[1], [2, 3]])[1:]
    values = Array.from_arrow(lists).column(0)
    assert (values.offset, len(values)) == (0, 3)


@each_kind
def test_column_adds_offsets_of_child_and_parent(kind: Any) -> None:
    array = kind.from_arrow(changed(STRUCT[1:3], offset=1, length=3))
    column = array.column("n")
    assert (column.offset, len(column)) == (2, 2)
    assert pyarrow.array(column).to_pylist() == [3, 4]


def test_column_of_writable_parent_is_writable() -> None:
    values = numpy.zeros((2, 3))
    column = from_dlpack(values).column(0)
    column.to_numpy(writable=True)[4] = 7
    assert values.tolist() == [[0, 0, 0], [0, 7, 0]]
