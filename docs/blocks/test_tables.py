"""Tests of the tables in docs/formats.md and docs/troubleshooting.md."""

from __future__ import annotations

import ctypes
import re
import subprocess

import pyarrow
import pytest
import yaml

from fletching import abi
from languages import ROOT

ROW = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)


def rows(page: str, heading: str) -> list[tuple[str, list[str]]]:
    """The first column of a table, and the others."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = [(match[1], match[2].split(" | ")) for match in ROW.finditer(section)]
    assert found
    return found


SIMPLE = rows("formats.md", "Types without children")
NESTED = rows("formats.md", "Types with children")


@pytest.mark.parametrize(("text", "cells"), SIMPLE)
def test_formats_name_types_of_pyarrow(text: str, cells: list[str]) -> None:
    format_ = ctypes.create_string_buffer(text.encode())
    schema = abi.ArrowSchema(format=ctypes.addressof(format_))
    abi.implement(schema, format_)
    assert str(pyarrow.DataType._import_from_c(ctypes.addressof(schema))) == cells[0]


def test_formats_have_buffers_and_children_of_parser() -> None:
    header = (ROOT / "cpp/include/fletching/format.hpp").read_text(encoding="utf-8")
    parsed = re.findall(r'\{"([^"]+)", TypeId::\w+, \d+, (\d+), ([\w:]+)', header)
    assert parsed
    listed = {text: (cells[-1], "0") for text, cells in SIMPLE if ":" not in text}
    listed |= {text: (cells[-1], cells[1]) for text, cells in NESTED if ":" not in text}
    assert sorted(listed) == sorted(text for text, _, _ in parsed)
    for text, n_buffers, n_children in parsed:
        buffers, children = listed[text]
        names = [name for name in buffers.split(";")[0].split(", ") if name != "none"]
        if text == "tin":  # the description of the values has a comma
            names = names[:2]
        assert len(names) == int(n_buffers), text
        assert children == n_children.replace("Format::kAnyNumber", "any number"), text


def test_formats_have_parameters_of_parser_and_types_of_spec() -> None:
    header = (ROOT / "cpp/include/fletching/format.hpp").read_text(encoding="utf-8")
    units = re.search(r'string_view units = "(\w+)"', header)
    assert units
    parsed = {f"ts{unit}:" for unit in units[1]}
    parsed |= set(re.findall(r'text\.starts_with\("([^"]+:)"\)', header))
    listed = {re.sub(":.*", ":", text) for text, _ in [*SIMPLE, *NESTED]}
    assert {text for text in listed if ":" in text} == parsed
    spec = yaml.safe_load((ROOT / "spec/tensor-types.yaml").read_text(encoding="utf-8"))
    formats = {re.sub(":.*", ":", row["format"]) for row in spec["types"] + spec["as_storage"]}
    assert formats <= listed


def test_troubleshooting_has_texts_of_the_sources() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    texts = re.findall(r"^### `(.+)`$", page, re.MULTILINE)
    assert len(texts) > 10
    sources = ["cpp/core", "cpp/include", "cpp/src", "cpp/cmake", "generator", "bindings"]
    for text in texts:
        for part in filter(None, (part.strip() for part in text.split("…"))):
            command = ["git", "grep", "-qF", "--", part, *sources]
            assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, part
