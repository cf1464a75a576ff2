"""Tests that the source files of library packages name their license."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from languages import load

ROOT = Path(__file__).resolve().parents[2]
LINE = "SPDX-License-Identifier: Apache-2.0"
FIRST_LINES = 3  # a generated file begins with "DO NOT EDIT", a Go file may begin with //go:build
SOURCES = {
    language.folder: language.release.sources for language in load().values() if language.release
}


def shipped(folder: str) -> list[str]:
    """The source files of a language's packages, relative to its home."""
    command = ["git", "ls-files", "-z", "--", "."]
    listed = subprocess.run(command, cwd=ROOT / folder, capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if (ROOT / folder / name).is_file()]
    return [name for name in names if re.fullmatch(SOURCES[folder], name)]


def has_line(text: str) -> bool:
    return any(LINE in line for line in text.split("\n", FIRST_LINES)[:FIRST_LINES])


@pytest.mark.parametrize("folder", SOURCES)
def test_source_file_of_package_names_license(folder: str) -> None:
    names = shipped(folder)
    assert names
    lacking = [name for name in names if not has_line((ROOT / folder / name).read_text("utf-8"))]
    assert lacking == [], f"add '{LINE}' to the first {FIRST_LINES} lines"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"// {LINE}\n", True),
        (f"//go:build race\n\n// {LINE}\n", True),
        ("// Apache License\n", False),
        (f"a\nb\nc\n// {LINE}\n", False),
    ],
)
def test_has_line_reads_first_lines(text: str, expected: bool) -> None:
    assert has_line(text) == expected
