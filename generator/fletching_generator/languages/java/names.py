"""Names and types of the spec in Java. A flavor is "jna" or "ffm"."""

from __future__ import annotations

import re

from ... import spelling
from ...reading.types import (
    SCALAR_SIZES,
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...spelling import identifier

# By size: the type, the suffix of JNA's accessors, the layout of java.lang.foreign.
_INTEGERS = {
    1: ("byte", "Byte", "JAVA_BYTE"),
    2: ("short", "Short", "JAVA_SHORT"),
    4: ("int", "Int", "JAVA_INT"),
    8: ("long", "Long", "JAVA_LONG"),
}
# The Java representation of an unsigned field: the type, and the class and method that widen it.
_WIDENED = {
    "uint8": ("int", "Byte.toUnsignedInt"),
    "uint16": ("int", "Short.toUnsignedInt"),
    "uint32": ("long", "Integer.toUnsignedLong"),
}
_POINTERS = {"jna": "Pointer", "ffm": "MemorySegment"}
_RESERVED = "case class default for import native new package this"


def camel(name: str) -> str:
    """Returns `nullCount` for `null_count`."""
    return identifier(spelling.camel(name), _RESERVED, lambda text: f"{text}_")


def constant(name: str) -> str:
    """Returns `ARROW_ARRAY` for `ArrowArray`, `DL_TENSOR` for `DLTensor`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def is_void(type_: Type) -> bool:
    return type_ == Scalar("void")


def is_address(type_: Type) -> bool:
    return isinstance(type_, Pointer | Callback)


def java_type(type_: Type, flavor: str) -> str:
    match type_:
        case Scalar(name="void"):
            return "void"
        case Pointer() | Callback():
            return _POINTERS[flavor]
        case FixedArray(of=of):
            return f"{java_type(of, flavor)}[]"
        case StructType(name=name):
            return name
        case _:
            return _integer(type_)[0]


def field_type(type_: Type, flavor: str) -> str:
    """Returns the type of a value in memory: unsigned types are widened, except 64-bit ones."""
    widened = _WIDENED.get(_scalar_name(type_))
    return widened[0] if widened else java_type(type_, flavor)


def from_memory(type_: Type, value: str) -> str:
    """Returns the expression that widens a value from memory."""
    widened = _WIDENED.get(_scalar_name(type_))
    return f"{widened[1]}({value})" if widened else value


def to_memory(type_: Type, name: str) -> str:
    """Returns the expression that narrows `value` and checks its range, if it was widened."""
    if _scalar_name(type_) not in _WIDENED:
        return "value"
    java, bits = _integer(type_)[0], 8 * _size(type_)
    return f'({java}) Checks.unsigned(value, {bits}, "{name}")'


def unsigned_bits(type_: Type) -> tuple[int, str]:
    """Returns the width of an unsigned number and its widened type; 0 for another value."""
    name = _scalar_name(type_)
    widened = _WIDENED.get(name)
    bits = 8 * _size(type_) if name.startswith("uint") else 0
    return bits, widened[0] if widened else ""


def _scalar_name(type_: Type) -> str:
    scalar = type_.scalar if isinstance(type_, Typedef) else type_
    return scalar.name if isinstance(scalar, Scalar) else ""


def singular(name: str) -> str:
    """Returns `child` for `children`, `buffer` for `buffers`; `shape` stays."""
    return "child" if name == "children" else name.removesuffix("s")


def jna_suffix(type_: Type) -> str:
    """Returns the suffix of `get` and `set` in the accessors of JNA's Pointer."""
    return "Pointer" if is_address(type_) else _integer(type_)[1]


def jna_size(type_: Type) -> str:
    """Returns the size of an array element, as an expression."""
    if is_address(type_):
        return "Abi.POINTER_SIZE"
    return str(_size(type_))


def ffm_layout(type_: Type) -> str:
    match type_:
        case StructType(name=name):
            return f"{name}.LAYOUT"
        case FixedArray(of=of, count=count):
            return f"MemoryLayout.sequenceLayout({count}, {ffm_layout(of)})"
        case _:
            return "ADDRESS" if is_address(type_) else _integer(type_)[2]


def _size(type_: Type) -> int:
    return next(size for size, row in _INTEGERS.items() if row == _integer(type_))


def _integer(type_: Type) -> tuple[str, str, str]:
    if isinstance(type_, Typedef):
        return _integer(type_.scalar)
    if isinstance(type_, Scalar) and type_.name in SCALAR_SIZES:
        return _INTEGERS[SCALAR_SIZES[type_.name]]
    raise ValueError(f"{type_} has no counterpart in Java here; use an integer or a pointer")
