"""The memory maps in docs/reference/maps/: one SVG picture per struct and layout class.

A row of the picture has the size of a pointer: eight bytes on 64-bit targets, four on the others.
The geometry is computed here; the template only prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..languages.c import type_name
from ..reading.types import Callback, FixedArray, Pointer, StructType, Type
from ..render import Filters, Output
from ..spec.layout import LAYOUT_CLASSES, LayoutClass, struct_layout
from ..spec.model import Spec, Struct

FOLDER = "docs/reference/maps"

# Pixels. A character of the monospaced fonts is about 0.6 of its size wide.
BYTE = 80
ROW = 40
LEFT = 64
TOP = 74
LEGEND = 54
GROUP = 168
SAMPLE = 108
NAME_CHARACTER = 7.3
NOTE_CHARACTER = 6.1

Kind = Literal["integer", "pointer", "callback", "padding"]
MARKS: dict[Kind, str] = {"integer": "", "pointer": "\N{RIGHTWARDS ARROW} ", "callback": "ƒ "}


@dataclass(frozen=True)
class Cell:
    """A run of bytes: a field that is not a struct, or padding."""

    path: str  # "array.length"; "padding"
    kind: Kind
    type: str  # "int64_t"; "callback"; "" for padding
    offset: int  # 0
    size: int  # 8

    @property
    def says(self) -> str:
        kind = f" {self.type}," if self.type else ""
        return f"{self.path}:{kind} offset {self.offset}, {count_bytes(self.size)}"


@dataclass(frozen=True)
class Group:
    """An embedded struct."""

    field: str  # "array"
    struct: str  # "ArrowArray"
    offset: int  # 0
    size: int  # 80
    depth: int  # 1; 2 for a struct nested in it


@dataclass(frozen=True)
class Box:
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Label:
    x: int
    y: int
    name: str  # "→ array.buffers"
    note: str  # "const void** · 8 bytes at 40"


@dataclass(frozen=True)
class Map:
    """The content of one picture."""

    struct: str  # "ArrowDeviceArray"
    target: LayoutClass
    size: int  # 128
    align: int  # 8
    cells: tuple[Cell, ...]  # each byte is in exactly one cell
    groups: tuple[Group, ...]

    @property
    def row(self) -> int:
        """The number of bytes per row."""
        return self.target.pointer_size

    @property
    def title(self) -> str:
        size = f"{count_bytes(self.size)}, aligned to {self.align}"
        return f"{self.struct} on {self.target.name} targets: {size}"

    @property
    def rows(self) -> int:
        return -(-self.size // self.row)

    @property
    def right(self) -> int:
        """The position where the memory ends and the names of the embedded structs begin."""
        return LEFT + self.row * BYTE

    @property
    def bottom(self) -> int:
        return TOP + self.rows * ROW

    @property
    def depth(self) -> int:
        return max((group.depth for group in self.groups), default=0)

    @property
    def width(self) -> int:
        return max(self.right + self.depth * GROUP + 24, LEFT + len(self.kinds) * SAMPLE)

    @property
    def height(self) -> int:
        return self.bottom + LEGEND

    @property
    def kinds(self) -> list[str]:
        """The kinds of cells in the picture, for the legend."""
        present = {cell.kind for cell in self.cells}
        return [kind for kind in (*MARKS, "padding") if kind in present]


def outputs(spec: Spec) -> list[Output]:
    grid = {
        "left": LEFT,
        "top": TOP,
        "byte_width": BYTE,
        "row_height": ROW,
        "sample_width": SAMPLE,
        "marks": MARKS,
    }
    return [
        Output(
            f"{FOLDER}/{map_name(struct, target)}",
            "map.svg",
            f"spec/{interface.id}.yaml",
            {**grid, "map": memory_map(spec, struct, target)},
        )
        for interface in spec.interfaces
        for struct in interface.structs
        for target in LAYOUT_CLASSES
    ]


def map_name(struct: Struct, target: LayoutClass) -> str:
    return f"{struct.name}-{target.name}.svg"


def memory_map(spec: Spec, struct: Struct, target: LayoutClass) -> Map:
    layout = struct_layout(spec, struct, target)
    parts = list(_parts(spec, Group("", struct.name, 0, layout.size, 0), target))
    cells = tuple(part for part in parts if isinstance(part, Cell))
    groups = tuple(part for part in parts if isinstance(part, Group))
    return Map(struct.name, target, layout.size, layout.align, cells, groups)


def _parts(spec: Spec, whole: Group, target: LayoutClass) -> Iterator[Cell | Group]:
    """Yields the members and gaps of a struct in order, with embedded structs expanded."""
    struct = spec.struct(whole.struct)
    layout = struct_layout(spec, struct, target)
    end = whole.offset
    for field, part in zip(struct.fields, layout.fields, strict=True):
        start = whole.offset + part.offset
        yield from _padding(end, start)
        if isinstance(field.type, StructType):
            inner = Group(field.name, field.type.name, start, part.size, whole.depth + 1)
            yield inner
            yield from _parts(spec, inner, target)
        else:
            path = f"{whole.field}.{field.name}" if whole.field else field.name
            kind, spelled = _spell(field.type)
            yield Cell(path, kind, spelled, start, part.size)
        end = start + part.size
    yield from _padding(end, whole.offset + whole.size)


def _padding(start: int, end: int) -> Iterator[Cell]:
    if end > start:
        yield Cell("padding", "padding", "", start, end - start)


def _spell(type_: Type) -> tuple[Kind, str]:
    match type_:
        case Callback():
            return "callback", "callback"
        case Pointer():
            return "pointer", type_name(type_)
        case FixedArray(of=of, count=count):
            kind, spelled = _spell(of)
            return kind, f"{spelled}[{count}]"
        case _:
            return "integer", type_name(type_)


def boxes(cell: Cell, row: int) -> list[Box]:
    """Returns the rectangles of a cell: more than one if it begins or ends inside a row."""
    return [
        Box(LEFT + column * BYTE, TOP + first * ROW, width * BYTE, rows * ROW)
        for first, column, width, rows in _pieces(cell.offset, cell.offset + cell.size, row)
    ]


def _pieces(start: int, end: int, row: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields first row, first column, bytes per row, number of rows."""
    while start < end:
        column = start % row
        if column == 0 and end - start >= row:
            rows = (end - start) // row
            yield start // row, 0, row, rows
            start += rows * row
        else:
            width = min(row - column, end - start)
            yield start // row, column, width, 1
            start += width


def label(cell: Cell, row: int) -> Label:
    """Returns the text of a cell, shortened to fit its largest rectangle."""
    box = max(boxes(cell, row), key=lambda box: box.width * box.height)
    size = f"{count_bytes(cell.size)} at {cell.offset}"
    names = [MARKS.get(cell.kind, "") + name for name in (cell.path, cell.path.split(".")[-1])]
    notes = [f"{cell.type} · {size}" if cell.type else size, size, f"at {cell.offset}"]
    return Label(
        box.x + box.width // 2,
        box.y + box.height // 2,
        _fitting(names, box.width, NAME_CHARACTER),
        _fitting(notes, box.width, NOTE_CHARACTER),
    )


def _fitting(texts: list[str], width: int, character: float) -> str:
    return next((text for text in texts if len(text) * character <= width), texts[-1])


def bracket(group: Group, picture: Map) -> Box:
    """Returns the line next to the rows of an embedded struct, the innermost next to the memory."""
    first = group.offset // picture.row
    last = (group.offset + group.size - 1) // picture.row
    x = picture.right + (picture.depth - group.depth) * GROUP + 10
    return Box(x, TOP + first * ROW + 2, 8, (last - first + 1) * ROW - 4)


def describe(picture: Map) -> str:
    """Returns the description of the picture."""
    inside = "".join(
        f" {group.field} is an embedded {group.struct}: offset {group.offset},"
        f" {count_bytes(group.size)}."
        for group in picture.groups
    )
    cells = "; ".join(cell.says for cell in picture.cells)
    return f"{picture.row} bytes in each row. {cells}.{inside}"


def count_bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


FILTERS: Filters = {
    "boxes": boxes,
    "bracket": bracket,
    "describe": describe,
    "label": label,
}
