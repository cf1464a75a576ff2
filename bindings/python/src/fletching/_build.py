# SPDX-License-Identifier: Apache-2.0
"""Builds arrays from Python values and NumPy arrays, and record batches from columns."""

from __future__ import annotations

import sys
from array import array as typed
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

from ._core import Array, from_buffer, from_buffers, make_schema

# Formats of the C data interface, and the type codes of the array module.
_CODES = {
    "c": "b",
    "C": "B",
    "s": "h",
    "S": "H",
    "i": "i",
    "I": "I",
    "l": "q",
    "L": "Q",
    "f": "f",
    "g": "d",
}
_TEXTS = {"u": "i", "U": "q", "z": "i", "Z": "q"}  # the type codes of the offsets
_OFFSETS_OF_32_BITS = 2**31 - 1


def array(
    values: Any, type: str | None = None, *, mask: Iterable[Any] | None = None, name: str = ""
) -> Array:
    """Builds an array from a sequence of numbers, booleans, strings, bytes or None, or from NumPy.

    `type` is a format string of the C data interface: an integer, a floating-point number, "b",
    "u", "U", "z" or "Z". Without it the values decide: "l", "g", "b", "u" or "z". `mask` is true
    for null values, as in a masked array. The memory of a NumPy array is not copied, except for
    booleans and for another byte order.

    Raises TypeError for other values, OverflowError for a number out of the type's range.
    """
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(values, numpy.ndarray) and values.dtype.kind in "iufbmM":
        return _of_numpy(values, type, mask, name)
    listed = list(values)
    nulls = [value is None for value in listed] if mask is None else [bool(one) for one in mask]
    if len(nulls) != len(listed):
        raise ValueError(f"mask: expected {len(listed)} values, got {len(nulls)}")
    present = [None if null else value for value, null in zip(listed, nulls, strict=True)]
    format = type or _format_of(present)
    schema = make_schema(format, name)
    return from_buffers(schema, len(listed), [_validity(nulls), *_buffers(format, present)])


def record_batch(
    columns: Mapping[str, Any], *, metadata: Mapping[str, str | bytes] | None = None
) -> Array:
    """Builds a record batch from columns of equal length: Arrow arrays, or arguments of `array`.

    Copies memory only where `array` does. Raises ValueError if the lengths differ.
    """
    arrays = [_column(values) for values in columns.values()]
    lengths = {len(column) for column in arrays}
    if len(lengths) > 1:
        raise ValueError(f"record_batch: expected columns of one length, got {sorted(lengths)}")
    children = [
        make_schema(
            field.format,
            name,
            nullable=field.nullable,
            metadata=field.metadata,
            children=field.children,
            dictionary=field.dictionary,
        )
        for name, field in zip(columns, (column.schema for column in arrays), strict=True)
    ]
    schema = make_schema("+s", nullable=False, metadata=metadata, children=children)
    return from_buffers(schema, lengths.pop() if lengths else 0, [None], children=arrays)


def _column(values: Any) -> Array:
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_device_array__"):
        return Array.from_arrow(values)
    return array(values)


def _format_of(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values} - {type(None)}
    for accepted, format in (
        ({bool}, "b"),
        ({int}, "l"),
        ({int, float}, "g"),
        ({str}, "u"),
        ({bytes}, "z"),
    ):
        if kinds and kinds <= accepted:
            return _large(format, values)
    names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none but None"
    raise TypeError(f"array: expected int, float, bool, str or bytes, got {names}; hint: pass type")


def _large(format: str, values: Iterable[Any]) -> str:
    """Returns the format with 64-bit offsets if 32-bit offsets cannot count the bytes."""
    if format not in ("u", "z"):
        return format
    size = sum(len(_bytes(format, value)) for value in values)
    return format.upper() if size > _OFFSETS_OF_32_BITS else format


def _bytes(format: str, value: Any) -> bytes | bytearray:
    if value is None:
        return b""
    if isinstance(value, str) and format in ("u", "U"):
        return value.encode()
    if isinstance(value, (bytes, bytearray)) and format in ("z", "Z"):
        return value
    expected = "str" if format in ("u", "U") else "bytes"
    raise TypeError(f"array: expected {expected}, got {type(value).__name__}")


def _boolean(value: Any) -> bool:
    if value is None:
        return False
    if value != bool(value):
        raise TypeError(f"array: expected bool, got {type(value).__name__}")
    return bool(value)


def _buffers(format: str, values: Sequence[Any]) -> list[Any]:
    if format == "b":
        return [_bits(map(_boolean, values))]
    if format in _TEXTS:
        texts = [_bytes(format, value) for value in values]
        offsets = accumulate(chain([0], map(len, texts)))
        return [typed(_TEXTS[format], offsets), b"".join(texts)]
    if format in _CODES:
        return [typed(_CODES[format], (0 if value is None else value for value in values))]
    raise TypeError(f"array: type: expected a number, b, u, U, z or Z, got {format!r}")


def _bits(values: Iterable[bool]) -> bytes:
    bits = bytearray()
    for index, value in enumerate(values):
        if index % 8 == 0:
            bits.append(0)
        bits[-1] |= value << index % 8
    return bytes(bits)


def _validity(nulls: Sequence[bool]) -> bytes | None:
    return _bits(not null for null in nulls) if any(nulls) else None


def _of_numpy(values: Any, type: str | None, mask: Iterable[Any] | None, name: str) -> Array:
    import numpy  # noqa: PLC0415, which has made the values

    if type is not None:
        raise TypeError("array: type: expected None for a NumPy array; hint: convert it by astype")
    if values.ndim != 1:
        raise TypeError(f"array: expected one dimension, got {values.ndim}")
    length = len(values)
    nulls = numpy.ma.getmask(values)  # a single False for unmasked arrays
    if mask is not None:
        given = numpy.asarray(mask, bool)
        if given.shape != values.shape:
            raise ValueError(f"mask: expected {len(values)} values, got {given.size}")
        nulls = nulls | given
    values = numpy.ascontiguousarray(values, values.dtype.newbyteorder("="))
    if values.dtype.kind == "b":
        format, values = "b", numpy.packbits(values, bitorder="little")
    elif values.dtype.kind in "mM":
        unit, count = numpy.datetime_data(values.dtype)
        if unit not in ("s", "ms", "us", "ns") or count != 1:
            got = unit if count == 1 else f"{count}{unit}"
            raise TypeError(f"array: unit of times: expected s, ms, us or ns, got {got}")
        format = f"tD{unit[0]}" if values.dtype.kind == "m" else f"ts{unit[0]}:"
        nulls = nulls | numpy.isnat(values)
        values = values.view(numpy.int64)
    else:
        format = from_buffer(values[:0]).schema.format
    validity = numpy.packbits(~nulls, bitorder="little") if nulls.any() else None
    return from_buffers(make_schema(format, name), length, [validity, values])
