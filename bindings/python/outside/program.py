"""A program outside the repository that uses only the installed package. mypy --strict accepts it,
and it runs without NumPy.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from array import array

import fletching
from fletching import DeviceArray, DeviceArrayStream, Schema, abi


class Owner:
    released = 0

    def release(self, schema: abi.ArrowSchema) -> None:
        self.released += 1


class Empty:
    def __arrow_c_schema__(self) -> object:
        return None


def raw_layer() -> None:
    owner, schema, moved = Owner(), abi.ArrowSchema(), abi.ArrowSchema()
    abi.implement(schema, owner)
    abi.move(schema, moved)
    abi.release(moved)
    assert owner.released == 1


def arrays() -> None:
    values = fletching.from_buffer(array("q", [1, 2, 3]), name="count")
    leaf: DeviceArray = DeviceArray.from_arrow(values)
    leaf.synchronize()
    assert (len(leaf), leaf.type, leaf.device_type) == (3, "int64", 1)
    again: DeviceArray = fletching.from_dlpack(leaf)
    assert (len(again), again.schema.format) == (3, "l")
    batches: list[DeviceArray] = list(DeviceArrayStream.from_batches(leaf.schema, 1, [leaf, again]))
    assert [batch.type for batch in batches] == ["int64", "int64"]
    assert fletching.check_cuda_array_interface({"shape": 1})


def main() -> None:
    assert importlib.metadata.version("fletching") == fletching.__version__
    assert importlib.util.find_spec("numpy") is None
    assert getattr(sys, "_is_gil_enabled", lambda: True)()
    try:
        Schema.from_arrow(Empty())
    except TypeError as error:
        assert str(error).endswith("expected arrow_schema, got NoneType")
    raw_layer()
    arrays()


if __name__ == "__main__":
    main()
