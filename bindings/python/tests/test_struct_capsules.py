"""Structs of fletching.abi moved into and out of capsules."""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow
import pytest

from capsules import Produced
from fletching import DeviceArray, Error, abi, from_buffer, from_capsule, to_capsule


class Exporter:
    """A producer of an int32 array in few lines."""

    values = (ctypes.c_int32 * 3)(1, 2, 3)
    buffers = (ctypes.c_void_p * 2)(None, ctypes.addressof(values))
    format = ctypes.create_string_buffer(b"i")

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        schema = abi.ArrowSchema(format=ctypes.addressof(self.format))
        array = abi.ArrowArray(length=3, n_buffers=2, buffers=self.buffers)
        for struct in (schema, array):
            abi.implement(struct, self)
        return to_capsule(schema), to_capsule(array)


def test_to_capsule_creates_exporter() -> None:
    assert pyarrow.array(Exporter()).to_pylist() == [1, 2, 3]
    assert len(DeviceArray.from_arrow(Exporter())) == 3


def test_to_capsule_moves_and_releases() -> None:
    source = Produced()
    capsules = to_capsule(source.schema), to_capsule(source.array)
    assert abi.is_released(source.schema)
    assert source.releases == []
    del capsules
    assert sorted(source.releases) == ["array", "schema"]
    with pytest.raises(Error, match="arrow_array is released"):
        to_capsule(source.array)


def test_from_capsule_moves_out_once() -> None:
    stream = pyarrow.table({"a": [1]}).__arrow_c_stream__()
    struct = from_capsule(stream, abi.ArrowArrayStream)
    assert struct.get_schema
    with pytest.raises(Error, match="arrow_array_stream is released"):
        from_capsule(stream, abi.ArrowArrayStream)
    abi.release(struct)


@pytest.mark.parametrize("kind", [abi.ArrowAsyncTask, int])
def test_from_capsule_rejects_other_struct(kind: Any) -> None:
    with pytest.raises(TypeError, match=f"capsule: expected one of .*, got {kind.__name__}"):
        to_capsule(kind())
    with pytest.raises(TypeError, match="name of the capsule is wrong: expected arrow_schema"):
        from_capsule(from_buffer(b"").__arrow_c_array__()[1], abi.ArrowSchema)
