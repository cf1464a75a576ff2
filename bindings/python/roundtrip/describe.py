"""Writes down an array as text, in the form that FletchingProducerDescribe defines."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

from fletching.abi import ArrowArray, ArrowSchema
from foreign import ForeignError, Node, read_tree, text_at
from layout import buffer_sizes


def describe(schema: ArrowSchema, array: ArrowArray) -> str:
    """One line per node and buffer; raises ForeignError for what cannot be described."""
    return "".join(f"{line}\n" for line in _lines(read_tree(schema, array)))


def _lines(node: Node) -> Iterator[str]:
    schema, array = node.schema, node.array
    metadata = "-" if schema.metadata is None else _metadata(schema.metadata).hex()
    yield (
        f"{node.path} format={text_at(schema.format)} name={text_at(schema.name) or ''} "
        f"flags={schema.flags} metadata={metadata} length={array.length} "
        f"null_count={array.null_count} offset={array.offset}"
    )
    for i, buffer in enumerate(_buffers(node)):
        shown = "-" if buffer is None else f"{len(buffer)}:{buffer.hex()}"
        yield f"{node.path} buffer {i} {shown}"
    for child in node.children:
        yield from _lines(child)
    if node.dictionary:
        yield from _lines(node.dictionary)


def _metadata(address: int) -> bytes:
    """The encoded block: a count, then for each key and each value its length and its bytes."""
    end = address + 4
    for _ in range(2 * _int32_at(address)):
        end += 4 + _int32_at(end)
    return ctypes.string_at(address, end - address)


def _int32_at(address: int) -> int:
    value = int.from_bytes(ctypes.string_at(address, 4), sys.byteorder, signed=True)
    if value < 0:
        raise ForeignError(f"metadata holds the negative length {value}")
    return value


def _buffers(node: Node) -> list[bytes | None]:
    """The bytes of each buffer, None for NULL."""
    sizes = buffer_sizes(node)
    addresses = [node.array.buffers[i] for i in range(len(sizes))]
    return [
        None if address is None else ctypes.string_at(address, size)
        for address, size in zip(addresses, sizes, strict=True)
    ]
