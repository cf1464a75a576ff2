"""The memory maps in docs/reference/maps/: one SVG picture per struct and layout class.

A line of the picture has the size of a pointer. A field gets as many lines as it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ..languages.c.names import type_name
from ..reading.types import Callback, FixedArray, Pointer, StructType, Type
from ..render import Filters, Output
from ..spec.layout import LAYOUT_CLASSES, LayoutClass, struct_layout
from ..spec.model import Spec, Struct

FOLDER = "docs/reference/maps"


class Line(NamedTuple):
    kind: str  # "integer", "pointer", "callback", "padding"; "struct": the fields are below
    name: str  # "array.length"; "" after the first line of a field
    note: str  # "int64_t, 8 bytes"
    start: int  # 0
    end: int  # 8; the same as the start for an embedded struct


def outputs(spec: Spec) -> list[Output]:
    return [
        Output(
            f"{FOLDER}/{map_name(struct, target)}",
            "map.svg",
            f"spec/{interface.id}.yaml",
            {
                "layout": struct_layout(spec, struct, target),
                "lines": list(lines(spec, struct, target)),
                "target": target,
            },
        )
        for interface in spec.interfaces
        for struct in interface.structs
        for target in LAYOUT_CLASSES
    ]


def map_name(struct: Struct, target: LayoutClass) -> str:
    return f"{struct.name}-{target.name}.svg"


def lines(spec: Spec, struct: Struct, target: LayoutClass) -> Iterator[Line]:
    width = target.pointer_size
    for field in _fields(spec, struct, target):
        words = range(field.start // width * width + width, field.end, width)
        edges = pairwise([field.start, *words, field.end])
        yield field._replace(end=next(edges)[1])
        yield from (Line(field.kind, "", "", *edge) for edge in edges)


def _fields(
    spec: Spec, struct: Struct, target: LayoutClass, base: int = 0, prefix: str = ""
) -> Iterator[Line]:
    """Yields the fields and the padding. The fields of an embedded struct follow its line."""
    layout = struct_layout(spec, struct, target)
    nexts = [*(place.offset for place in layout.fields[1:]), layout.size]
    for field, place, following in zip(struct.fields, layout.fields, nexts, strict=True):
        kind, type_ = _spell(field.type)
        name, start = prefix + field.name, base + place.offset
        end, after = start + place.size, base + following
        note = f"{type_}, {_bytes(place.size)}"
        yield Line(kind, name, note, start, start if kind == "struct" else end)
        if kind == "struct":
            yield from _fields(spec, spec.struct(type_), target, start, f"{name}.")
        if end < after:
            yield Line("padding", "padding", _bytes(after - end), end, after)


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def _spell(type_: Type) -> tuple[str, str]:
    """Returns the kind and the name of a type."""
    match type_:
        case Callback():
            return "callback", "callback"
        case FixedArray(of=of, count=count):
            kind, name = _spell(of)
            return kind, f"{name}[{count}]"
        case Pointer():
            return "pointer", type_name(type_)
        case StructType(name=name):
            return "struct", name
        case _:
            return "integer", type_name(type_)


FILTERS: Filters = {}
