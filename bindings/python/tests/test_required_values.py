"""Nulls in values that must not be null: map entries, map keys, and run ends. Other libraries
terminate the process on import of such an array, or read wrong values."""

from __future__ import annotations

from array import array as typed
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest

from capsules import struct_in
from fletching import (
    Array,
    ArrayStream,
    DeviceArray,
    DeviceArrayStream,
    Error,
    abi,
    from_buffers,
    record_batch,
    to_capsule,
)

KEYS = pyarrow.field("key", pyarrow.string(), nullable=False)
MAP = pyarrow.field("m", pyarrow.map_(KEYS, pyarrow.int8()))
ENDS = pyarrow.field("r", pyarrow.run_end_encoded(pyarrow.int32(), pyarrow.int8()))
VALUES = pyarrow.array([1, 2], pyarrow.int8())
BITS = pyarrow.array([1, None]).buffers()[0]
MAPS = pyarrow.array([[("a", 1), ("b", 2)]], MAP.type)


class WithNull:
    """An array with a null in the child on a path, which pyarrow itself cannot create."""

    def __init__(self, array: pyarrow.Array, path: tuple[int, ...], null_count: int) -> None:
        self.array, self.path, self.null_count = array, path, null_count

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema, array = self.array.__arrow_c_array__()
        at = struct_in(abi.ArrowArray, array)
        for index in self.path:
            at = at.children[index].contents
        at.buffers[0], at.null_count = BITS.address, self.null_count
        return schema, array


WRONG = {
    "key": (MAPS, (0, 0), (0, 1), "null_count of a map's keys: expected 0, got 1"),
    "entry": (MAPS, (0,), (0, 1), "null_count of a map's entries: expected 0, got 1"),
    "nested key": (
        pyarrow.StructArray.from_arrays([MAPS], ["x"]),
        (0, 0, 0),
        (0, 0, 1),
        "null_count of a map's keys: expected 0, got 1",
    ),
}
IMPORTS: dict[str, Callable[[Any], object]] = {
    "Array": Array.from_arrow,
    "DeviceArray": DeviceArray.from_arrow,
    "record_batch": lambda array: record_batch({"a": array}),
}


@pytest.mark.parametrize("name", IMPORTS)
@pytest.mark.parametrize("null_count", [1, -1])
@pytest.mark.parametrize("wrong", WRONG)
def test_from_arrow_rejects_null_in_map(name: str, null_count: int, wrong: str) -> None:
    array, path, values, text = WRONG[wrong]
    with pytest.raises(Error, match=text):
        IMPORTS[name](WithNull(array, path, null_count))
    IMPORTS[name](WithNull(array, values, null_count))
    IMPORTS[name](array)


class Stream:
    """A C stream that repeats one batch."""

    def __init__(self, source: Any) -> None:
        self.source, self.stream = source, abi.ArrowArrayStream()
        abi.implement(self.stream, self)

    def get_schema(self, stream: Any, out: Any) -> int:
        capsule = self.source.__arrow_c_array__()[0]
        abi.move(struct_in(abi.ArrowSchema, capsule), out.contents)
        return 0

    def get_next(self, stream: Any, out: Any) -> int:
        capsule = self.source.__arrow_c_array__()[1]
        abi.move(struct_in(abi.ArrowArray, capsule), out.contents)
        return 0

    def get_last_error(self, stream: Any) -> None:
        return None

    def release(self, stream: Any) -> None:
        pass

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return to_capsule(self.stream)


@pytest.mark.parametrize("null_count", [1, -1])
def test_stream_rejects_null_in_map(null_count: int) -> None:
    batch = pyarrow.StructArray.from_arrays([MAPS], ["x"])
    for kind in (ArrayStream, DeviceArrayStream):
        wrong: Any = kind.from_arrow(Stream(WithNull(batch, (0, 0, 0), null_count)))
        with pytest.raises(Error, match="null_count of a map's keys: expected 0, got 1"):
            next(wrong)
        whole: Any = kind.from_arrow(Stream(batch))
        assert len(next(whole)) == 1


ENTRIES = pyarrow.StructArray.from_arrays(
    [["a", "b"], VALUES], fields=[KEYS, pyarrow.field("value", "int8")]
)
HIDDEN = [
    (MAP, [None, typed("i", [0, 2])], [ENTRIES], (0,), "a map's keys"),
    (MAP, [None, typed("i", [0, 2])], [ENTRIES], (), "a map's entries"),
    (ENDS, [], [pyarrow.array([1, 2], "int32"), VALUES], (), "run ends"),
]


@pytest.mark.parametrize(("field", "buffers", "children", "path", "text"), HIDDEN)
def test_from_buffers_rejects_hidden_null(
    field: Any, buffers: Any, children: Any, path: Any, text: str
) -> None:
    with pytest.raises(Error, match=f"null_count of {text}: expected 0, got 1"):
        from_buffers(field, 1, buffers, children=[WithNull(children[0], path, -1), *children[1:]])
    from_buffers(field, 1, buffers, children=children)
