"""What fletching.abi declares, found by walking the ctypes classes.

No struct, field or callback is named here. Values cross to the oracle as bits: the memory of the
value in its own width, as an unsigned number.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fletching import abi

Ctype: TypeAlias = Any  # a ctypes class; ctypes has no public name for what they have in common


@dataclass(frozen=True)
class Leaf:
    """A field that is not a struct, or one element of an array."""

    path: str  # "array.length"
    element: int  # 0; the index in an array
    ctype: Ctype
    in_array: bool

    def read(self, struct: ctypes.Structure) -> int:
        """The bits that the binding sees there."""
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
    """The public structs of the binding by name."""
    return {
        name: value
        for name, value in vars(abi).items()
        if isinstance(value, type)
        and issubclass(value, ctypes.Structure)
        and hasattr(value, "_fields_")
        and not name.startswith("_")
    }


def integer_macros() -> dict[str, int]:
    """The flags, the versions, and the device types that have an Arrow macro."""
    return {
        name: value
        for name, value in vars(abi).items()
        if name.startswith(("ARROW_", "DLPACK_")) and isinstance(value, int)
    }


def enumerators() -> dict[str, str]:
    """The enumerators that the tables name, one list per enum as the oracle reads it."""
    devices = (f"{device.dlpack_name}={device.type:d}" for device in abi.DEVICES)
    codes = (f"{code.dlpack_name}={code.code:d}" for code in abi.DATA_TYPE_CODES)
    return {"DLDeviceType": ",".join(devices), "DLDataTypeCode": ",".join(codes)}


def fields(struct: type[ctypes.Structure]) -> Iterator[tuple[str, Ctype]]:
    """The direct fields, in order."""
    for name, ctype, *_ in struct._fields_:
        yield name, ctype


def paths(struct: type[ctypes.Structure]) -> Iterator[tuple[str, int, int]]:
    """Path, offset and size of every field, those of embedded structs too."""
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
    """The callback fields and their types, which have _argtypes_ and _restype_."""
    return {name: ctype for name, ctype in fields(struct) if hasattr(ctype, "_argtypes_")}


def signature(callback: Ctype) -> str:
    """The widths of the arguments and of the result, as the oracle spells them."""
    arguments = ",".join(_width(ctype) for ctype in callback._argtypes_)
    return f"{arguments}->{_width(callback._restype_)}"


def _width(ctype: Ctype) -> str:
    if ctype is None:
        return "v"
    pointers = (ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p)
    is_pointer = issubclass(ctype, pointers) or hasattr(ctype, "_argtypes_")
    return "p" if is_pointer else str(ctypes.sizeof(ctype))


def bits_of(ctype: Ctype, value: object) -> int:
    """The bits of a value as ctypes gave it; the first 8 bytes of a struct."""
    memory = bytes((ctype * 1)(value))[:8]
    return int.from_bytes(memory, sys.byteorder)


def from_bits(ctype: Ctype, bits: int) -> Any:
    """A value of that type with these bits, cut to its width."""
    size = ctypes.sizeof(ctype)
    memory = (bits & ((1 << 8 * size) - 1)).to_bytes(size, sys.byteorder)
    return ctype.from_buffer_copy(memory)
