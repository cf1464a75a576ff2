"""Tests that the memory maps show the layout."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache

import pytest
from conftest import REPOSITORY

from fletching_generator.docs import maps
from fletching_generator.reading.types import FixedArray, Scalar, StructType, Type
from fletching_generator.render import render_module
from fletching_generator.spec.layout import LAYOUT_CLASSES, LayoutClass, struct_layout
from fletching_generator.spec.load import load_spec
from fletching_generator.spec.model import Spec, Struct

SVG = "{http://www.w3.org/2000/svg}"
CHARACTER = 7.3  # pixels; the fonts are about 0.6 of their size wide
CASES = [
    pytest.param(struct, target, id=f"{struct.name}-{target.name}")
    for struct in load_spec(REPOSITORY).structs
    for target in LAYOUT_CLASSES
]


@cache
def pictures() -> dict[str, str]:
    return render_module(maps, load_spec(REPOSITORY))


def draw(struct: Struct, target: LayoutClass) -> ET.Element:
    return ET.fromstring(pictures()[f"{maps.FOLDER}/{struct.name}-{target.name}.svg"])


def texts(element: ET.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in element.iter(f"{SVG}text")]


def drawn(picture: ET.Element) -> list[tuple[str, int, list[int]]]:
    """Returns text, offset and bytes of each field, using the ruler and the offset column."""
    ruler = {
        int(text.get("x", "")): int((text.text or "").removeprefix("+"))
        for text in picture.findall(f"{SVG}text[@class='ruler']")
    }
    found: list[tuple[str, int, list[int]]] = []
    for line in picture.findall(f"{SVG}g"):
        label, text = texts(line)
        if text:
            found.append((text, int(label), []))
        for rect in line.findall(f"{SVG}rect"):
            x, width = int(rect.get("x", "")), int(rect.get("width", ""))
            columns = [byte for middle, byte in ruler.items() if x < middle < x + width]
            assert columns[0] == int(label) % len(ruler)
            found[-1][2].extend(int(label) - columns[0] + byte for byte in columns)
    return found


def expected(
    spec: Spec, struct: Struct, target: LayoutClass, base: int = 0, prefix: str = ""
) -> dict[str, tuple[int, int]]:
    """Returns offset and size of each field, from the layouts only."""
    found: dict[str, tuple[int, int]] = {}
    layout = struct_layout(spec, struct, target)
    for field, place in zip(struct.fields, layout.fields, strict=True):
        found[prefix + field.name] = (base + place.offset, place.size)
        if isinstance(field.type, StructType):
            inner = spec.struct(field.type.name)
            found |= expected(spec, inner, target, base + place.offset, f"{prefix}{field.name}.")
    return found


@pytest.mark.parametrize(("struct", "target"), CASES)
def test_drawing_matches_layout(struct: Struct, target: LayoutClass, spec: Spec) -> None:
    shown = drawn(draw(struct, target))
    layout = struct_layout(spec, struct, target)
    assert [byte for _, _, covered in shown for byte in covered] == list(range(layout.size))
    fields = {text.split()[0]: (offset, int(text.split()[-2])) for text, offset, _ in shown}
    for text, offset, covered in shown:
        assert not covered or (covered[0], len(covered)) == (offset, int(text.split()[-2]))
    fields.pop("padding", None)
    assert fields == expected(spec, struct, target)


@pytest.mark.parametrize(("struct", "target"), CASES)
def test_text_names_struct_and_fits(struct: Struct, target: LayoutClass, spec: Spec) -> None:
    picture, layout = draw(struct, target), struct_layout(spec, struct, target)
    size = f"{layout.size} bytes, aligned to {layout.align}"
    assert picture.findtext(f"{SVG}title") == f"{struct.name} on {target.name} targets: {size}"
    assert texts(picture)[:2] == [struct.name, f"{target.name}: {size}"]
    for text in picture.findall(f".//{SVG}text[@class='name']"):
        width = len("".join(text.itertext()).strip()) * CHARACTER
        assert int(text.get("x", "")) + width < int(picture.get("width", ""))


def test_kinds_differ_without_color(spec: Spec) -> None:
    shown = texts(draw(spec.struct("ArrowDeviceArray"), LAYOUT_CLASSES[0]))
    types = ["array ArrowArray", "array.buffers const void**", "array.release callback"]
    notes = [*(f"{type_}, " for type_ in types), "padding 4 bytes", "reserved int64_t[3], 24 bytes"]
    assert all(any(text.startswith(note) for text in shown) for note in notes)


def test_picture_supports_dark_mode_without_script_or_network() -> None:
    for text in pictures().values():
        assert "prefers-color-scheme: dark" in text
        assert "<script" not in text and "href" not in text
        assert text.count("http") == 1, "the SVG namespace alone"


def test_field_across_words_has_several_lines(spec: Spec) -> None:
    like = spec.struct("ArrowArray")
    types: dict[str, Type] = {"first": Scalar("uint8"), "wide": FixedArray(Scalar("uint8"), 10)}
    fields = tuple(replace(like.fields[0], name=n, type=type_) for n, type_ in types.items())
    found = maps.lines(spec, replace(like, fields=fields), LAYOUT_CLASSES[0])
    assert [(line.name, line.start, line.end) for line in found] == [
        ("first", 0, 1),
        ("wide", 1, 8),
        ("", 8, 11),
    ]
