# SPDX-License-Identifier: Apache-2.0
"""Moves structs of `fletching.abi` into and out of capsules of the Arrow PyCapsule interface."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeVar

from . import abi
from ._core import move_from_capsule, move_to_capsule

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

_NAMES: dict[type[Any], str] = {
    abi.ArrowSchema: "arrow_schema",
    abi.ArrowArray: "arrow_array",
    abi.ArrowDeviceArray: "arrow_device_array",
    abi.ArrowArrayStream: "arrow_array_stream",
    abi.ArrowDeviceArrayStream: "arrow_device_array_stream",
}
_Struct = TypeVar(
    "_Struct",
    abi.ArrowSchema,
    abi.ArrowArray,
    abi.ArrowDeviceArray,
    abi.ArrowArrayStream,
    abi.ArrowDeviceArrayStream,
)


def _name_of(kind: type[Any]) -> str:
    if kind not in _NAMES:
        expected = ", ".join(each.__name__ for each in _NAMES)
        raise TypeError(f"capsule: expected one of {expected}, got {kind.__name__}")
    return _NAMES[kind]


def to_capsule(struct: _Struct) -> CapsuleType:
    """Moves a struct into a capsule, which releases it if no consumer takes it.

    Marks `struct` as released. Raises Error with EINVAL if it was already released.
    """
    name = _name_of(type(struct))
    return move_to_capsule(ctypes.addressof(struct), name)


def from_capsule(capsule: object, kind: type[_Struct]) -> _Struct:
    """Moves a struct of type `kind` out of a capsule. The caller must release it.

    Raises TypeError for another capsule, and Error with EINVAL if it was already consumed.
    """
    struct = kind()
    move_from_capsule(capsule, ctypes.addressof(struct), _name_of(kind))
    return struct
