"""Size, alignment and offsets of every struct, for each class of targets.

Three classes cover all targets that Arrow supports. They differ in the size of a pointer and in the
alignment of an int64 struct member.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..reading.types import (
    SCALAR_SIZES,
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from .model import Declarations, Struct


@dataclass(frozen=True)
class LayoutClass:
    name: str  # "64bit"
    pointer_size: int  # 8
    int64_align: int  # 8
    targets: str  # "x86-64, aarch64, ..."


LAYOUT_CLASSES = (
    LayoutClass("64bit", 8, 8, "x86-64, aarch64, riscv64, ppc64, s390x, wasm64, Windows x64"),
    LayoutClass("32bit-align8", 4, 8, "armv7, wasm32, mips, ppc32, riscv32, x32, Windows x86"),
    LayoutClass("32bit-align4", 4, 4, "i386 System V (Linux, FreeBSD)"),
)


@dataclass(frozen=True)
class FieldLayout:
    name: str  # "sync_event"
    offset: int  # 96
    size: int  # 8


@dataclass(frozen=True)
class StructLayout:
    struct: str  # "ArrowDeviceArray"
    size: int  # 128
    align: int  # 8
    fields: tuple[FieldLayout, ...]

    def offset(self, field: str) -> int:
        return next(f.offset for f in self.fields if f.name == field)

    def gap_before(self, field: str) -> int:
        """Returns the bytes of padding before the field."""
        end = 0
        for entry in self.fields:
            if entry.name == field:
                return entry.offset - end
            end = entry.offset + entry.size
        raise KeyError(field)

    @property
    def tail_padding(self) -> int:
        last = self.fields[-1]
        return self.size - last.offset - last.size


@dataclass(frozen=True)
class Leaf:
    """A field that is not a struct, reached through embedded structs."""

    path: str  # "array.length"
    type: Type  # Scalar("int64")
    count: int  # 1; 3 for an array of three


def layout_class(name: str) -> LayoutClass | None:
    return next((c for c in LAYOUT_CLASSES if c.name == name), None)


def struct_layout(spec: Declarations, struct: Struct, target: LayoutClass) -> StructLayout:
    """Places the fields one after the other, each at the next multiple of its alignment."""
    end = 0
    align = 1
    fields = []
    for field in struct.fields:
        size, field_align = size_and_align(spec, field.type, target)
        offset = _round_up(end, field_align)
        fields.append(FieldLayout(field.name, offset, size))
        end = offset + size
        align = max(align, field_align)
    return StructLayout(struct.name, _round_up(end, align), align, tuple(fields))


def struct_layouts(spec: Declarations, struct: Struct) -> list[StructLayout]:
    """Returns the layout of a struct for each class of targets."""
    return [struct_layout(spec, struct, target) for target in LAYOUT_CLASSES]


def size_and_align(spec: Declarations, type_: Type, target: LayoutClass) -> tuple[int, int]:
    match type_:
        case Scalar(name=name):
            size = SCALAR_SIZES[name]
            return size, target.int64_align if size == 8 else size
        case Typedef(scalar=scalar):
            return size_and_align(spec, scalar, target)
        case Pointer() | Callback():
            return target.pointer_size, target.pointer_size
        case FixedArray(of=of, count=count):
            size, align = size_and_align(spec, of, target)
            return size * count, align
        case StructType(name=name):
            inner = struct_layout(spec, spec.struct(name), target)
            return inner.size, inner.align


def leaves(spec: Declarations, struct: Struct, prefix: str = "") -> tuple[Leaf, ...]:
    """Returns all fields of the struct, with embedded structs expanded."""
    found: list[Leaf] = []
    for field in struct.fields:
        path = prefix + field.name
        match field.type:
            case StructType(name=name):
                found.extend(leaves(spec, spec.struct(name), path + "."))
            case FixedArray(of=of, count=count):
                found.append(Leaf(path, of, count))
            case _:
                found.append(Leaf(path, field.type, 1))
    return tuple(found)


def _round_up(value: int, align: int) -> int:
    return (value + align - 1) // align * align
