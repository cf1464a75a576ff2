"""The structs as text, one line for every field: tests/roundtrip/README.md, "The dump"."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import TypeVar

from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema, text, values

Tree = TypeVar("Tree", ArrowSchema, ArrowArray)


class DumpError(Exception):
    """A struct that cannot be read; the text names the field."""


def dump(schema: ArrowSchema, array: ArrowDeviceArray) -> str:
    """The dump of a schema and a device array. Raises DumpError for a child that is NULL, and for
    metadata with a negative length."""
    lines = [*_schema("schema.", schema), *_array("array.", array.array), *_device(array)]
    return "".join(f"{line}\n" for line in lines)


def _schema(path: str, schema: ArrowSchema) -> Iterator[str]:
    yield f"{path}format={_bytes(text(schema.format))}"
    yield f"{path}name={_bytes(text(schema.name))}"
    yield f"{path}metadata={_bytes(_metadata(path, schema.metadata))}"
    yield f"{path}flags={schema.flags}"
    yield f"{path}n_children={schema.n_children}"
    for child_path, child in _children(path, schema):
        yield from _schema(child_path, child)
    if schema.dictionary:
        yield from _schema(f"{path}dictionary.", schema.dictionary.contents)
    yield f"{path}private_data={_address(schema.private_data)}"


def _array(path: str, array: ArrowArray) -> Iterator[str]:
    for name in ("length", "null_count", "offset", "n_buffers", "n_children"):
        yield f"{path}{name}={getattr(array, name)}"
    for index, buffer in enumerate(values(array.buffers, array.n_buffers)):
        yield f"{path}buffers[{index}]={_address(buffer)}"
    for child_path, child in _children(path, array):
        yield from _array(child_path, child)
    if array.dictionary:
        yield from _array(f"{path}dictionary.", array.dictionary.contents)
    yield f"{path}private_data={_address(array.private_data)}"


def _device(array: ArrowDeviceArray) -> Iterator[str]:
    yield f"device_id={array.device_id}"
    yield f"device_type={int(array.device_type)}"
    yield f"sync_event={_address(array.sync_event)}"
    for index, word in enumerate(array.reserved):
        yield f"reserved[{index}]={word}"


def _children(path: str, struct: Tree) -> Iterator[tuple[str, Tree]]:
    for index, child in enumerate(values(struct.children, struct.n_children)):
        child_path = f"{path}children[{index}]"
        if not child:
            raise DumpError(f"{child_path}: NULL: expected a struct")
        yield f"{child_path}.", child.contents


def _address(address: int | None) -> str:
    return hex(address or 0)


def _bytes(content: bytes | None) -> str:
    if content is None:
        return "NULL"
    shown = (chr(b) if 0x20 <= b <= 0x7E and b not in b'"%' else f"%{b:02x}" for b in content)
    return f'"{"".join(shown)}"'


def _metadata(path: str, address: int | None) -> bytes | None:
    """The encoded block: a count, then for each key and each value its length and its bytes."""
    if not address:
        return None
    end = address + 4
    for _ in range(2 * _int32_at(path, address)):
        end += 4 + _int32_at(path, end)
    return ctypes.string_at(address, end - address)


def _int32_at(path: str, address: int) -> int:
    value = int.from_bytes(ctypes.string_at(address, 4), sys.byteorder, signed=True)
    if value < 0:
        raise DumpError(f"{path}metadata: negative length: expected at least 0, got {value}")
    return value
