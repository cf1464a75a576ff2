"""Which buffers a format has, and how large they are."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum, auto

from fletching.abi import ArrowArray
from foreign import ForeignError, Node, text_at


class Kind(Enum):
    VALUES = auto()  # of so many bits, as many as there are elements
    OFFSETS = auto()  # of so many bytes, one more than there are elements
    DATA = auto()  # as many bytes as the last offset of the buffer before says
    VIEWED = auto()  # the data buffers of a view array, and behind them their sizes


Part = tuple[Kind, int]

_BITMAP = (Kind.VALUES, 1)
# By format, behind the validity bitmap.
_BEHIND_VALIDITY: dict[str, list[Part]] = {
    "+s": [],
    **{form: [(Kind.OFFSETS, width)] for form, width in (("+l", 4), ("+m", 4), ("+L", 8))},
    **{form: [(Kind.VALUES, width)] * 2 for form, width in (("+vl", 32), ("+vL", 64))},
    **{form: [(Kind.OFFSETS, 4), (Kind.DATA, 0)] for form in "uz"},
    **{form: [(Kind.OFFSETS, 8), (Kind.DATA, 0)] for form in "UZ"},
    **{form: [(Kind.VALUES, 128), (Kind.VIEWED, 0)] for form in ("vu", "vz")},
    **{form: [(Kind.VALUES, 8)] for form in "cC"},
    **{form: [(Kind.VALUES, 16)] for form in "sSe"},
    **{form: [(Kind.VALUES, 32)] for form in ("i", "I", "f", "tdD", "tts", "ttm", "tiM")},
    **{form: [(Kind.VALUES, 64)] for form in ("l", "L", "g", "tdm", "ttu", "ttn", "tiD")},
    **{form: [(Kind.VALUES, 64)] for form in ("tDs", "tDm", "tDu", "tDn")},
    "b": [(Kind.VALUES, 1)],
    "tin": [(Kind.VALUES, 128)],
}
# Formats with parameters, and those without validity.
_OTHERS: dict[str, Callable[[re.Match[str]], list[Part]]] = {
    r"n|\+r": lambda _: [],
    r"\+us:.*": lambda _: [(Kind.VALUES, 8)],
    r"\+ud:.*": lambda _: [(Kind.VALUES, 8), (Kind.VALUES, 32)],
    r"\+w:\d+": lambda _: [_BITMAP],
    r"ts[smun]:.*": lambda _: [_BITMAP, (Kind.VALUES, 64)],
    r"w:(\d+)": lambda found: [_BITMAP, (Kind.VALUES, 8 * int(found[1]))],
    r"d:\d+,-?\d+(?:,(\d+))?": lambda found: [_BITMAP, (Kind.VALUES, int(found[1] or 128))],
}


def buffer_sizes(node: Node) -> list[int]:
    """The size of every buffer in bytes; raises ForeignError where they cannot be told."""
    array, form = node.array, text_at(node.schema.format) or ""
    parts = _parts(form)
    if parts is None:
        raise ForeignError(f"{node.path}: format {form} is none of the catalogue's")
    or_more = " or more" if parts and parts[-1][0] is Kind.VIEWED else ""
    if array.n_buffers < len(parts) or (array.n_buffers > len(parts) and not or_more):
        raise ForeignError(
            f"{node.path}: format {form} has {len(parts)}{or_more} buffers, and n_buffers is "
            f"{array.n_buffers}"
        )
    end = array.offset + array.length
    sizes: list[int] = []
    for kind, width in parts:
        match kind:
            case Kind.VALUES:
                sizes.append((width * end + 7) // 8)
            case Kind.OFFSETS:
                sizes.append(width * (end + 1))
            case Kind.DATA:
                sizes.append(_last_offset(array, sizes[1] // (end + 1), end))
            case Kind.VIEWED:
                sizes += [*_data_sizes(node.path, array), 8 * (array.n_buffers - 3)]
    return sizes


def _parts(form: str) -> list[Part] | None:
    """None for a format that is not known."""
    if form in _BEHIND_VALIDITY:
        return [_BITMAP, *_BEHIND_VALIDITY[form]]
    for pattern, parts in _OTHERS.items():
        if found := re.fullmatch(pattern, form):
            return parts(found)
    return None


def _last_offset(array: ArrowArray, width: int, end: int) -> int:
    offsets = array.buffers[1]
    if offsets is None:
        return 0
    return int.from_bytes(ctypes.string_at(offsets + width * end, width), sys.byteorder)


def _data_sizes(path: str, array: ArrowArray) -> Iterator[int]:
    """Of the data buffers of a view array; the last buffer holds them."""
    sizes = array.buffers[array.n_buffers - 1]
    for i in range(array.n_buffers - 3):
        if sizes is None:
            raise ForeignError(f"{path}: the sizes of the data buffers are NULL")
        size = int.from_bytes(ctypes.string_at(sizes + 8 * i, 8), sys.byteorder, signed=True)
        if size < 0:
            raise ForeignError(f"{path}: the size of data buffer {i} is {size}")
        yield size
