"""Reads structs that foreign code filled, and says in words what is wrong with them."""

from __future__ import annotations

import ctypes
import errno
from dataclasses import dataclass
from typing import TypeVar

from fletching.abi import ArrowArray, ArrowSchema

MAX_DEPTH = 64

Tree = TypeVar("Tree", ArrowSchema, ArrowArray)


class ForeignError(Exception):
    """Foreign code gave something that the interface does not allow, or reported an error itself.

    `code` is the errno value to hand on, `text` the line for get_last_error, as bytes: foreign text
    need not be UTF-8. None when there was no text.
    """

    def __init__(self, text: str | bytes | None, code: int = errno.EINVAL) -> None:
        self.text = text.encode() if isinstance(text, str) else text
        self.code = code
        shown = "no text" if self.text is None else self.text.decode("utf-8", "backslashreplace")
        super().__init__(shown)


@dataclass(frozen=True)
class Node:
    """A schema and the array that belongs to it, with what is below them."""

    path: str  # "/", "/0", "/0/d"
    schema: ArrowSchema
    array: ArrowArray
    children: tuple[Node, ...]
    dictionary: Node | None


def text_at(address: int | None) -> str | None:
    """The text at an address; bytes that are no UTF-8 become escapes."""
    return (
        None if address is None else ctypes.string_at(address).decode("utf-8", "backslashreplace")
    )


def read_tree(schema: ArrowSchema, array: ArrowArray, path: str = "/") -> Node:
    """Walks both trees side by side; raises ForeignError at the first thing that is not allowed."""
    if path.count("/") > MAX_DEPTH:
        raise ForeignError(f"{path[:40]}...: more than {MAX_DEPTH} levels")
    _check_node(schema, array, path)
    children = tuple(
        read_tree(s, a, _below(path, str(i)))
        for i, (s, a) in enumerate(
            zip(_children(schema, path, "schema"), _children(array, path, "array"), strict=True)
        )
    )
    if bool(schema.dictionary) != bool(array.dictionary):
        raise ForeignError(f"{path}: only one of schema and array has a dictionary")
    dictionary = (
        read_tree(schema.dictionary.contents, array.dictionary.contents, _below(path, "d"))
        if schema.dictionary
        else None
    )
    return Node(path, schema, array, children, dictionary)


def _below(path: str, name: str) -> str:
    return ("" if path == "/" else path) + "/" + name


def _check_node(schema: ArrowSchema, array: ArrowArray, path: str) -> None:
    if not schema.release:
        raise ForeignError(f"{path}: the schema is released")
    if not array.release:
        raise ForeignError(f"{path}: the array is released")
    if schema.format is None:
        raise ForeignError(f"{path}: format is NULL")
    try:
        ctypes.string_at(schema.format).decode("utf-8")
    except UnicodeDecodeError:
        raise ForeignError(f"{path}: format '{text_at(schema.format)}' is not UTF-8") from None
    for name in ("length", "offset", "n_buffers", "n_children"):
        if getattr(array, name) < 0:
            raise ForeignError(f"{path}: {name} is {getattr(array, name)}, and may not be negative")
    if array.null_count < -1:
        raise ForeignError(f"{path}: null_count is {array.null_count}, and may not be below -1")
    if array.n_buffers > 0 and not array.buffers:
        raise ForeignError(f"{path}: buffers is NULL, and n_buffers is {array.n_buffers}")
    if schema.n_children != array.n_children:
        raise ForeignError(
            f"{path}: n_children is {schema.n_children} in the schema and {array.n_children} in "
            "the array"
        )


def _children(struct: Tree, path: str, kind: str) -> list[Tree]:
    if struct.n_children > 0 and not struct.children:
        raise ForeignError(f"{path}: children of the {kind} is NULL, and n_children is not 0")
    found = []
    for i in range(struct.n_children):
        if not struct.children[i]:
            raise ForeignError(f"{path}: child {i} of the {kind} is NULL")
        found.append(struct.children[i].contents)
    return found
