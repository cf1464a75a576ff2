"""The public surface: every name has a text, and repr says what an object is."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

import fletching
from capsules import ProducedOnDevice
from fletching import Array, DeviceArray, DeviceArrayStream, Schema

PROTOCOLS = ("__arrow_c", "__dlpack", "__cuda_array")
TABLE = pyarrow.table({"n": [1, 2]})


def public(name: str) -> bool:
    return not name.startswith("_") or name.startswith(PROTOCOLS)


def members() -> Iterator[tuple[str, Any]]:
    for name in filter(public, dir(fletching)):
        found = getattr(fletching, name)
        if getattr(found, "__module__", "").startswith("fletching"):
            yield name, found
            if inspect.isclass(found):
                for member, value in vars(found).items():
                    yield f"{name}.{member}", value


# What Python's own protocols and enumerations say, and a capsule.
WITHOUT = ("errno", "strerror", "__dlpack_c_exchange_api__")


@pytest.mark.parametrize(("name", "member"), list(members()), ids=lambda value: str(value)[:40])
def test_every_public_name_has_a_text(name: str, member: Any) -> None:
    last = name.rpartition(".")[2]
    if public(last) and last not in WITHOUT:
        assert inspect.getdoc(member)


def test_names() -> None:
    assert {"Array", "DeviceArray", "Error", "OnCapture", "send_async"} <= set(dir(fletching))
    with pytest.raises(AttributeError, match="has no attribute 'Arrays'"):
        fletching.Arrays  # noqa: B018


def test_repr() -> None:
    assert (
        repr(Schema.from_arrow(pyarrow.field("n", pyarrow.int8()))) == "<fletching.Schema n: int8>"
    )
    assert repr(Array.from_arrow(pyarrow.array([1, None]))) == (
        "<fletching.Array int64, length 2, nulls 1>"
    )
    stream = DeviceArrayStream.from_arrow(TABLE)
    assert repr(stream) == "<fletching.DeviceArrayStream of a schema that is not read, cpu>"
    stream.schema  # noqa: B018
    assert repr(stream) == "<fletching.DeviceArrayStream struct<n: int64>, cpu>"

    async def asynchronous() -> None:
        stream = fletching.AsyncDeviceArrayStream()
        assert repr(stream) == "<fletching.AsyncDeviceArrayStream of a schema that is not read>"
        stream.cancel()
        assert repr(stream).endswith(", closed>")

    asyncio.run(asynchronous())


def test_hasattr_is_right_on_objects_and_finds_the_type() -> None:
    """Some libraries look for a method on the type."""
    device = DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=0))
    host = DeviceArray.from_arrow(TABLE.to_batches()[0])
    name = "__arrow_c_array__"
    assert [hasattr(each, name) for each in (device, host, DeviceArray)] == [False, True, True]
    with pytest.raises(AttributeError, match="expected memory that the CPU can read, got cuda"):
        device.__arrow_c_array__  # noqa: B018
    name = "__arrow_c_stream__"
    stream = DeviceArrayStream.from_batches(device.schema, 2, [])
    other = DeviceArrayStream.from_arrow(TABLE)
    assert [hasattr(each, name) for each in (stream, other, type(other))] == [False, True, True]
    with pytest.raises(AttributeError, match="expected memory that the CPU can read, got cuda"):
        stream.__arrow_c_stream__  # noqa: B018
    assert not hasattr(host, "__cuda_array_interface__")
    assert not hasattr(Array.from_arrow(TABLE.to_batches()[0]), "__cuda_array_interface__")
