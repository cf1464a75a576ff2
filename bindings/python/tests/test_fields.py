"""Schemas, type descriptions, and the fields of arrays."""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow
import pytest

from capsules import Given, Produced, capsule_of
from fletching import Array, DeviceArray, Schema
from test_arrays import BATCH


def test_schema_has_fields_of_struct() -> None:
    field = pyarrow.field("when", pyarrow.timestamp("us", "UTC"), False, {b"k": b"\xff"})
    schema = Schema.from_arrow(field)
    assert (schema.name, schema.format, schema.nullable, schema.flags) == (
        "when",
        "tsu:UTC",
        False,
        0,
    )
    assert schema.metadata == {b"k": b"\xff"}
    assert (schema.children, schema.dictionary) == ([], None)
    assert repr(schema) == "<fletching.Schema when: timestamp[us, UTC], not nullable>"
    assert pyarrow.field(schema).equals(field, check_metadata=True)
    batch = Schema.from_arrow(BATCH.schema)
    assert [child.name for child in batch.children] == BATCH.schema.names
    assert batch.children[3].dictionary is not None
    assert batch.children[3].dictionary.format == "u"


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pyarrow.decimal128(19, 10), "decimal128(19, 10)"),
        (pyarrow.binary(3), "fixed_size_binary(3)"),
        (pyarrow.list_(pyarrow.int8(), 4), "fixed_size_list(4)<int8>"),
        (pyarrow.struct({"a": pyarrow.int8(), "b": pyarrow.null()}), "struct<a: int8, b: null>"),
        (pyarrow.map_(pyarrow.string(), pyarrow.int8()), "map<struct<key: string, value: int8>>"),
        (pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "dictionary<int8, string>"),
        (pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.bool_()), "run_end_encoded<int32, bool>"),
        (pyarrow.duration("s"), "duration[s]"),
        (pyarrow.struct({f"c{i}": pyarrow.int8() for i in range(9)}), None),
    ],
)
def test_type_text(type_: Any, text: str | None) -> None:
    shown = Schema.from_arrow(type_).type
    assert shown == text if text else shown.endswith("c7: int8, ...>")


def test_unusual_schemas_have_repr() -> None:
    assert Schema.from_arrow(Produced(format="?")).type == "unknown(?)"
    assert Schema.from_arrow(Produced(format="?")).format == "?"
    produced = Produced()
    name = ctypes.create_string_buffer(b"\xff")
    produced.schema.format = produced.schema.name = ctypes.addressof(name)
    array = Array.from_arrow(produced)
    assert array.schema.name == array.schema.format == "\udcff"
    assert repr(array.schema) == r"<fletching.Schema \xff: unknown(\xff)>"
    assert repr(array) == r"<fletching.Array unknown(\xff), length 3>"
    wrong = capsule_of(produced.schema, b"\xff")
    with pytest.raises(TypeError, match=r"got \\xff$"):
        Schema.from_arrow(Given(schema=wrong))


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_array_has_fields_of_struct(kind: Any) -> None:
    array = kind.from_arrow(pyarrow.array([None, 1, None, 3], pyarrow.int16())[1:])
    assert (len(array), array.null_count, array.offset, array.n_buffers) == (3, 1, 1, 2)
    assert array.type == "int16"
    assert array.schema.format == "s"
    expected = f"<fletching.{kind.__name__} int16, length 3, nulls 1"
    assert repr(array).startswith(expected)
