"""Tests that the memory maps show the layout."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import pytest
from conftest import REPOSITORY

from fletching_generator.docs import maps
from fletching_generator.reading.types import Scalar, StructType, Type
from fletching_generator.render import render_module
from fletching_generator.spec.layout import LAYOUT_CLASSES, LayoutClass, struct_layout
from fletching_generator.spec.load import load_spec
from fletching_generator.spec.model import Spec, Struct

SVG = "{http://www.w3.org/2000/svg}"
CASES = [
    pytest.param(struct.name, target, id=f"{struct.name}-{target.name}")
    for struct in load_spec(REPOSITORY).structs
    for target in LAYOUT_CLASSES
]


@cache
def pictures() -> dict[str, str]:
    return render_module(maps, load_spec(REPOSITORY))


def draw(name: str, target: LayoutClass) -> ET.Element:
    return ET.fromstring(pictures()[f"{maps.FOLDER}/{name}-{target.name}.svg"])


def cells(picture: ET.Element) -> list[ET.Element]:
    return picture.findall(f"{SVG}g")


def part(cell: ET.Element, kind: str) -> str:
    """Returns the text of the cell's line of this class."""
    return next(t.text or "" for t in cell.findall(f"{SVG}text") if t.get("class") == kind)


def drawn_bytes(picture: ET.Element, cell: ET.Element, target: LayoutClass) -> list[int]:
    """Returns the bytes covered by a cell's rectangles, using the ruler and the offset column."""
    columns = {
        int(text.get("x", "")): int((text.text or "").removeprefix("+"))
        for text in picture.findall(f"{SVG}text[@class='ruler']")
    }
    rows = {
        int(text.get("y", "")): int(text.text or "")
        for text in picture.findall(f"{SVG}text[@class='offset']")
    }
    covered = []
    for rect in cell.findall(f"{SVG}rect"):
        if "cell" not in rect.get("class", "").split():
            continue
        x, y, width, height = (int(rect.get(key, "")) for key in ("x", "y", "width", "height"))
        covered += [
            start + byte
            for (middle_y, start), (middle_x, byte) in itertools.product(
                rows.items(), columns.items()
            )
            if x < middle_x < x + width and y < middle_y < y + height
        ]
    return sorted(covered)


def expected(
    spec: Spec, struct: Struct, target: LayoutClass, base: int = 0, prefix: str = ""
) -> dict[str, tuple[int, int]]:
    """Returns offset and size of each field that is not a struct, from the layouts only."""
    found: dict[str, tuple[int, int]] = {}
    layout = struct_layout(spec, struct, target)
    for field, place in zip(struct.fields, layout.fields, strict=True):
        if isinstance(field.type, StructType):
            inner = spec.struct(field.type.name)
            found |= expected(spec, inner, target, base + place.offset, f"{field.name}.")
        else:
            found[prefix + field.name] = (base + place.offset, place.size)
    return found


def test_each_struct_has_maps(spec: Spec) -> None:
    names = {output.path for output in maps.outputs(spec)}
    wanted = itertools.product(spec.structs, LAYOUT_CLASSES)
    assert names == {f"{maps.FOLDER}/{s.name}-{target.name}.svg" for s, target in wanted}


@pytest.mark.parametrize(("name", "target"), CASES)
def test_every_byte_is_drawn_once(name: str, target: LayoutClass, spec: Spec) -> None:
    picture = draw(name, target)
    covered = [b for cell in cells(picture) for b in drawn_bytes(picture, cell, target)]
    assert covered == list(range(struct_layout(spec, spec.struct(name), target).size))


@pytest.mark.parametrize(("name", "target"), CASES)
def test_drawing_matches_layout(name: str, target: LayoutClass, spec: Spec) -> None:
    picture = draw(name, target)
    wanted = expected(spec, spec.struct(name), target)
    drawn = {}
    for cell in cells(picture):
        shown = part(cell, "name").removeprefix("→ ").removeprefix("ƒ ")
        covered = drawn_bytes(picture, cell, target)
        assert covered == list(range(covered[0], covered[0] + len(covered)))
        assert re.search(rf"\b{len(covered)} bytes? at {covered[0]}$", part(cell, "note"))
        assert (cell.findtext(f"{SVG}title") or "").startswith(f"{shown}:")
        if shown != "padding":
            drawn[shown] = (covered[0], len(covered))
    assert drawn == wanted


@pytest.mark.parametrize(("name", "target"), CASES)
def test_picture_has_text_description(name: str, target: LayoutClass, spec: Spec) -> None:
    picture = draw(name, target)
    layout = struct_layout(spec, spec.struct(name), target)
    title = picture.findtext(f"{SVG}title") or ""
    assert name in title and target.name in title
    assert f"{layout.size} bytes, aligned to {layout.align}" in title
    words = picture.findtext(f"{SVG}desc") or ""
    for path, (offset, size) in expected(spec, spec.struct(name), target).items():
        assert re.search(rf"\b{re.escape(path)}: [^;]+, offset {offset}, {size} bytes?\b", words)


def test_kinds_differ_without_color() -> None:
    picture = draw("ArrowDeviceArray", LAYOUT_CLASSES[0])
    names = [part(cell, "name") for cell in cells(picture)]
    assert {"array.length", "→ array.buffers", "ƒ array.release", "padding"} <= set(names)


def test_picture_supports_dark_mode_without_script_or_network() -> None:
    for text in pictures().values():
        assert "prefers-color-scheme: dark" in text
        assert "<script" not in text and "href" not in text
        assert text.count("http") == 1, "the SVG namespace alone"


def nested(spec: Spec) -> Spec:
    """Returns a spec with one-byte fields in structs nested two levels deep at nonzero offsets."""
    structs = (
        struct(spec, "Inner", code=Scalar("uint8"), bits=Scalar("uint8"), lanes=Scalar("uint16")),
        struct(spec, "Middle", ndim=Scalar("int32"), dtype=StructType("Inner")),
        struct(spec, "Outer", version=Scalar("int64"), tensor=StructType("Middle")),
    )
    return replace(spec, interfaces=(replace(spec.interfaces[0], structs=structs),))


def struct(spec: Spec, name: str, **fields: Type) -> Struct:
    like = spec.struct("ArrowArray")
    made = tuple(replace(like.fields[0], name=name, type=type_) for name, type_ in fields.items())
    return replace(like, name=name, fields=made)


def test_embedded_structs_are_expanded_in_place(spec: Spec) -> None:
    other = nested(spec)
    picture = maps.memory_map(other, other.struct("Outer"), LAYOUT_CLASSES[0])
    assert {cell.path: cell.offset for cell in picture.cells} == {
        "version": 0,
        "tensor.ndim": 8,
        "dtype.code": 12,
        "dtype.bits": 13,
        "dtype.lanes": 14,
    }
    assert [(g.field, g.offset, g.size) for g in picture.groups] == [
        ("tensor", 8, 8),
        ("dtype", 12, 4),
    ]
    outer, inner = (maps.bracket(group, picture) for group in picture.groups)
    assert inner.x + maps.GROUP == outer.x, "the innermost is next to the memory"


def test_text_fits_cell(spec: Spec) -> None:
    other = nested(spec)
    picture = maps.memory_map(other, other.struct("Outer"), LAYOUT_CLASSES[0])
    labels = [maps.label(cell, picture.row) for cell in picture.cells]
    assert [label.note for label in labels[2:]] == [
        "1 byte at 12",
        "1 byte at 13",
        "uint16_t · 2 bytes at 14",
    ]


def test_field_across_rows_is_drawn_in_pieces() -> None:
    cell = maps.Cell("wide", "integer", "int64_t[2]", 4, 16)
    pieces = [(box.width // maps.BYTE, box.height // maps.ROW) for box in maps.boxes(cell, 8)]
    assert pieces == [(4, 1), (8, 1), (4, 1)]
