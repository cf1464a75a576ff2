# SPDX-License-Identifier: Apache-2.0
"""The shared part of the structs of `fletching.abi`: base class, moves and releases."""

from __future__ import annotations

import ctypes
import operator
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    Pointer = ctypes._Pointer
else:

    class Pointer:
        """`Pointer[ArrowArray]` is `ctypes.POINTER(ArrowArray)`, and a type for type checkers."""

        def __class_getitem__(cls, target: type) -> type:
            return ctypes.POINTER(target)


class Struct(ctypes.Structure):
    """A C struct. Assigning to a name that is not a field raises an error."""

    __slots__ = ()
    # The path to the callback that releases the struct, for example ("array", "release").
    _release_ = cast("tuple[str, ...]", ())
    # False if others refer to the struct by its address.
    _movable_ = False


Value = TypeVar("Value")
AnyStruct = TypeVar("AnyStruct", bound=Struct)


class OpenField:
    """An integer field that rejects out-of-range numbers."""

    __slots__ = ("_field", "_name", "_type")

    def __init__(self, struct: type[Struct], name: str, type_: type[Any]) -> None:
        self._field: Any = getattr(struct, name)
        self._name = f"{struct.__name__}.{name}"
        self._type = type_
        setattr(struct, name, self)

    @property
    def offset(self) -> int:
        return cast("int", self._field.offset)

    @property
    def size(self) -> int:
        return cast("int", self._field.size)

    def __get__(self, struct: Struct | None, owner: type | None = None) -> Any:
        return self if struct is None else self._field.__get__(struct, owner)

    def __set__(self, struct: Struct, value: Any) -> None:
        if not isinstance(value, self._type):
            value = fitting(self._name, self._type, value)
        self._field.__set__(struct, value)


def fitting(what: str, type_: type[Any], value: Any) -> int:
    """Returns the number if a field of that type can hold it; otherwise raises ValueError."""
    number = operator.index(value)
    if type_(number).value != number:
        width = 8 * ctypes.sizeof(type_)
        kind = f"an int{width}" if type_(-1).value < 0 else f"a uint{width}"
        raise ValueError(f"{what}: out of range: expected {kind}, got {number}")
    return number


def _owner(struct: Struct) -> tuple[Any, str]:
    """Returns the struct that has the release callback, and the callback's name."""
    if not struct._release_:
        raise TypeError(f"{type(struct).__name__}: no release callback")
    owner: Any = struct
    *path, name = struct._release_
    for part in path:
        owner = getattr(owner, part)
    return owner, name


def is_released(struct: Struct) -> bool:
    """Returns whether the struct is released or empty: after release or move, or before filling.

    For a deleter of DLPack, where NULL means that nothing needs freeing: whether it is NULL.
    """
    owner, name = _owner(struct)
    return not getattr(owner, name)


def move(source: AnyStruct, target: AnyStruct) -> None:
    """Moves a struct: copies its bytes and marks the source as released.

    Overwrites the target: release it first if it is filled. Callbacks stay alive; all other
    memory that the struct points to belongs to its producer.
    """
    kind = type(source)
    if type(target) is not kind:
        got = type(target).__name__
        raise TypeError(f"move: types differ: expected {kind.__name__}, got {got}")
    if not kind._movable_:
        raise TypeError(f"move: {kind.__name__} cannot be moved: others know its address")
    if ctypes.addressof(source) == ctypes.addressof(target):
        return
    ctypes.memmove(ctypes.byref(target), ctypes.byref(source), ctypes.sizeof(kind))
    owner, name = _owner(source)
    setattr(owner, name, type(getattr(owner, name))())


def release(struct: Struct) -> None:
    """Releases the struct; does nothing if it is released.

    Marks the struct as released first and passes a moved copy to the callback, so the callback runs
    once even if it does not mark the struct. A struct that cannot be moved (a handler of an async
    stream, a DLPack tensor) is passed directly, and the callback may free it: do not use it
    afterwards.
    """
    owner, name = _owner(struct)
    if not getattr(owner, name):
        return
    if not type(owner)._movable_:
        kind = type(getattr(owner, name))
        callback = kind(ctypes.cast(getattr(owner, name), ctypes.c_void_p).value)
        if name == "release":
            setattr(owner, name, kind())
        callback(owner)
        return
    moved = type(owner)()
    move(owner, moved)
    getattr(moved, name)(moved)


def text(address: int | None) -> bytes | None:
    """Returns the bytes of a NUL-terminated string, which may not be UTF-8; None for NULL."""
    return ctypes.string_at(address) if address else None


def values(pointer: Pointer[Any], count: int) -> list[Any]:
    """Returns the values that a pointer field points to; empty for NULL or count <= 0."""
    return pointer[:count] if pointer else []
