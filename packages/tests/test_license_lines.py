"""Tests that the source files of library packages name their license."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINE = "SPDX-License-Identifier: Apache-2.0"
FIRST_LINES = 3  # a generated file begins with "DO NOT EDIT", a Go file may begin with //go:build
SHIPPED = re.compile(
    r"""cpp/(bundle|core|examples|include|src)/.*\.(c|h|cpp|hpp)
    |bindings/go/(?!bench/|internal/|tools/).*\.(c|h|go)
    |bindings/java/[^/]+/src/main/.*\.java
    |bindings/python/(core|src)/.*\.(cpp|hpp|py)
    |bindings/rust/fletching(-abi)?/(src|examples|core)/.*\.(c|h|rs)
    |bindings/rust/fletching(-abi)?/build\.rs""",
    re.VERBOSE,
)


def shipped(names: list[str]) -> list[str]:
    return [name for name in names if SHIPPED.fullmatch(name)]


def has_line(text: str) -> bool:
    return any(LINE in line for line in text.split("\n", FIRST_LINES)[:FIRST_LINES])


def test_source_file_of_package_names_license() -> None:
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    names = shipped([name for name in listed.decode().split("\0") if (ROOT / name).is_file()])
    homes = {"/".join(name.split("/")[:2]) for name in names}
    assert {f"bindings/{name}" for name in ("go", "java", "python", "rust")} < homes
    lacking = [name for name in names if not has_line((ROOT / name).read_text("utf-8"))]
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
