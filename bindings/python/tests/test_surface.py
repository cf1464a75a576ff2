"""The public surface: every name has a docstring, and repr describes an object."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import numpy
import pyarrow
import pytest

import fletching
from capsules import ProducedOnDevice
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema

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


# Members of Python's own protocols and enums, a class attribute, and a capsule.
WITHOUT = ("errno", "strerror", "metadata", "__dlpack_c_exchange_api__")


MEMBERS = dict(members())


@pytest.mark.parametrize("name", MEMBERS)
def test_every_public_name_has_docstring(name: str) -> None:
    last = name.rpartition(".")[2]
    if public(last) and last not in WITHOUT:
        assert inspect.getdoc(MEMBERS[name])


def test_schema_contains_field_names() -> None:
    schema = Schema.from_arrow(TABLE.schema)
    assert "n" in schema
    assert "m" not in schema
    assert 0 not in schema
    assert None not in schema


@pytest.mark.parametrize(
    "call",
    [
        fletching.from_arrow,
        fletching.from_dlpack,
        fletching.from_cuda_array_interface,
        *(kind.from_arrow for kind in (Schema, Array, DeviceArray, ArrayStream, DeviceArrayStream)),
    ],
)
def test_functions_reject_none(call: Any) -> None:
    with pytest.raises((TypeError, AttributeError), match=r"has no .*: expected") as raised:
        call(None)
    assert "incompatible" not in str(raised.value)


class WrongDevice:
    def __dlpack_device__(self) -> str:
        return "cpu"


BATCH = DeviceArray.from_arrow(TABLE.to_batches()[0])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: BATCH.column(object()), "column: expected an index or a name"),  # type: ignore[arg-type]
        (lambda: BATCH.column(1.0), "column: expected an index or a name"),  # type: ignore[arg-type]
        (lambda: fletching.from_dlpack(WrongDevice()), "__dlpack_device__: result is wrong"),
        (lambda: fletching.from_dlpack(BATCH, device=5), "device: expected a pair of integers"),  # type: ignore[arg-type]
        (lambda: fletching.from_dlpack(BATCH, copy=5), "incompatible function arguments"),  # type: ignore[arg-type]
        (lambda: fletching.register_waiter(99, object()), "waiter has no synchronize"),
        (
            lambda: fletching.from_cuda_array_interface({}),
            r"__cuda_array_interface__: invalid: got no shape",
        ),
    ],
)
def test_wrong_argument_type_raises_type_error(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize("index", [2**70, -(2**70), 1, -2])
def test_column_rejects_index_out_of_range(index: int) -> None:
    with pytest.raises(
        fletching.Error, match=f"no such index: expected one of 1 columns, got {index}"
    ):
        BATCH.column(index)


def test_buffers_returns_addresses() -> None:
    source = pyarrow.array([1, None, 3])
    expected = tuple(buffer.address for buffer in source.buffers())
    assert Array.from_arrow(source).buffers == DeviceArray.from_arrow(source).buffers == expected
    assert Array.from_arrow(pyarrow.array([1])).buffers[0] == 0
    assert BATCH.buffers == (0,)


def test_as_storage_returns_storage_type() -> None:
    """Types that one side lacks, imported as their storage type."""
    days = Array.from_arrow(pyarrow.array([1, 2], pyarrow.date32()))
    with pytest.raises(BufferError, match="as_storage"):
        days.to_numpy()
    assert days.to_numpy(as_storage=True).tolist() == [1, 2]
    pair = numpy.array([1 + 2j])
    array = fletching.from_dlpack(pair, as_storage=True)
    assert pyarrow.array(array).to_pylist() == [[1.0, 2.0]]


def test_complex_numbers_round_trip() -> None:
    """Complex numbers, through Arrow and back, as the extension type arrow.opaque."""
    array = fletching.from_dlpack(numpy.array([1 + 2j, 3 - 4j]))
    assert array.to_numpy().tolist() == [1 + 2j, 3 - 4j]
    opaque = pyarrow.array(array)
    assert isinstance(opaque.type, pyarrow.OpaqueType)
    assert (opaque.type.type_name, opaque.type.vendor_name) == ("complex128", "DLPack")
    back = Array.from_arrow(opaque.slice(1))
    assert back.to_numpy().tolist() == [3 - 4j]


def test_repr_describes_object() -> None:
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
        handlers: list[fletching.AsyncHandler] = []
        stream = fletching.AsyncDeviceArrayStream.connect(handlers.append)
        assert repr(stream) == "<fletching.AsyncDeviceArrayStream of a schema that is not read>"
        stream.cancel()
        assert repr(stream).endswith(", closed>")

    asyncio.run(asynchronous())


def test_hasattr_depends_on_memory_of_object() -> None:
    """Some libraries look up a method on the type."""
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
