"""Finds the declarations of fletching.abi by walking the ctypes classes.

Names no struct, field or callback. Values are passed to the oracle as bits: the memory of the
value at its width, as an unsigned integer.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fletching import abi

Ctype: TypeAlias = Any  # a ctypes class; ctypes has no public name for their common base


@dataclass(frozen=True)
class Leaf:
    """A field that is not a struct, or one element of an array."""

    path: str  # "array.length"
    element: int  # index in an array; otherwise 0
    ctype: Ctype
    in_array: bool

    def read(self, struct: ctypes.Structure) -> int:
        """Returns the bits that the binding reads."""
        value: Any = struct
        for name in self.path.split("."):
            value = getattr(value, name)
        return bits_of(self.ctype, value[self.element] if self.in_array else value)

    def write(self, struct: ctypes.Structure, bits: int) -> None:
        *outer, name = self.path.split(".")
        owner: Any = struct
        for part in outer:
            owner = getattr(owner, part)
        if self.in_array:
            getattr(owner, name)[self.element] = from_bits(self.ctype, bits)
        else:
            setattr(owner, name, from_bits(self.ctype, bits))


def structs() -> dict[str, type[ctypes.Structure]]:
    """Returns the public structs of the binding by name."""
    return {
        name: value
        for name, value in vars(abi).items()
        if isinstance(value, type)
        and issubclass(value, ctypes.Structure)
        and hasattr(value, "_fields_")
        and not name.startswith("_")
    }


def integer_macros() -> dict[str, int]:
    """Returns the flags, the versions, and the device types that have an Arrow macro."""
    return {
        name: value
        for name, value in vars(abi).items()
        if name.startswith(("ARROW_", "DLPACK_")) and isinstance(value, int)
    }


def enumerators() -> dict[str, str]:
    """Returns the enumerators that the tables name, one list per enum in the oracle's format."""
    devices = (f"{device.dlpack_name}={device.type:d}" for device in abi.DEVICES)
    codes = (f"{code.dlpack_name}={code.code:d}" for code in abi.DATA_TYPE_CODES)
    return {"DLDeviceType": ",".join(devices), "DLDataTypeCode": ",".join(codes)}


def fields(struct: type[ctypes.Structure]) -> Iterator[tuple[str, Ctype]]:
    """Yields the direct fields, in order."""
    for name, ctype, *_ in struct._fields_:
        yield name, ctype


def paths(struct: type[ctypes.Structure]) -> Iterator[tuple[str, int, int]]:
    """Yields path, offset and size of every field, including those of embedded structs."""
    for name, ctype in fields(struct):
        place = getattr(struct, name)
        yield name, place.offset, place.size
        if issubclass(ctype, ctypes.Structure):
            for path, offset, size in paths(ctype):
                yield f"{name}.{path}", place.offset + offset, size


def leaves(struct: type[ctypes.Structure], prefix: str = "") -> Iterator[Leaf]:
    for name, ctype in fields(struct):
        path = prefix + name
        if issubclass(ctype, ctypes.Structure):
            yield from leaves(ctype, path + ".")
        elif issubclass(ctype, ctypes.Array):
            for element in range(ctype._length_):
                yield Leaf(path, element, ctype._type_, in_array=True)
        else:
            yield Leaf(path, 0, ctype, in_array=False)


def callbacks(struct: type[ctypes.Structure]) -> dict[str, Ctype]:
    """Returns the callback fields and their types, which have _argtypes_ and _restype_."""
    return {name: ctype for name, ctype in fields(struct) if hasattr(ctype, "_argtypes_")}


def signature(callback: Ctype) -> str:
    """Returns the widths of the arguments and of the result, in the oracle's notation."""
    arguments = ",".join(_width(ctype) for ctype in callback._argtypes_)
    return f"{arguments}->{_width(callback._restype_)}"


def _width(ctype: Ctype) -> str:
    if ctype is None:
        return "v"
    pointers = (ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p)
    is_pointer = issubclass(ctype, pointers) or hasattr(ctype, "_argtypes_")
    return "p" if is_pointer else str(ctypes.sizeof(ctype))


def bits_of(ctype: Ctype, value: object) -> int:
    """Returns the bits of a value from ctypes; for a struct, its first 8 bytes."""
    memory = bytes((ctype * 1)(value))[:8]
    return int.from_bytes(memory, sys.byteorder)


def from_bits(ctype: Ctype, bits: int) -> Any:
    """Returns a value of that type with these bits, truncated to its width."""
    size = ctypes.sizeof(ctype)
    memory = (bits & ((1 << 8 * size) - 1)).to_bytes(size, sys.byteorder)
    return ctype.from_buffer_copy(memory)
