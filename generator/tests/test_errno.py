"""Tests of the error numbers: their values, and mistakes in their file."""

from __future__ import annotations

import errno
import re
import sys

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator.spec.model import Spec


@pytest.mark.skipif(sys.platform != "linux", reason="compares with the numbers of Linux")
def test_linux_numbers_match_system(spec: Spec) -> None:
    for error in spec.errno.errors:
        assert error.linux == getattr(errno, error.name), error.name


def test_table_has_every_number_named_in_spec(spec: Spec) -> None:
    known = {error.name for error in spec.errno.errors}
    named = set()
    for path in (REPOSITORY / "spec").rglob("*.yaml"):
        named |= set(re.findall(r"\bE[A-Z]{2,}\b", path.read_text(encoding="utf-8")))
    assert {"EINVAL", "ENOMEM"} <= {name for name in named if hasattr(errno, name)} <= known


def test_classes_without_exceptions_are_omitted(spec: Spec) -> None:
    assert spec.errno.of("go")["ENOSYS"] == ("errors.ErrUnsupported",)
    assert "ENOMEM" not in spec.errno.of("go")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: EPERM", "name: EIO", r"errors\[3\]\.name: EIO is already EIO's"),
        ("darwin: 78", "darwin: 45", r"errors\[20\]\.darwin: 45 is already ENOSYS's"),
        ("windows: 40", "windows: 0", r"errors\[16\]\.windows: 0 is out of range"),
        ("error: ENOSYS", "error: ENOTHING", r"classes\[0\]\.error: 'ENOTHING' is not defined"),
        ("other: EIO", "other: EX", r"other: 'EX' is not defined; hint: name one of 'errors'"),
        ("      go: []\n", "", r"classes\[1\]\.exceptions: 'go' is missing; hint: add 'go: \[\]'"),
        ("[ValueError]", "[MemoryError]", r"exceptions\.python: 'MemoryError' is already ENOMEM"),
    ],
)
def test_reports_mistakes(scratch: Scratch, old: str, new: str, expected: str) -> None:
    scratch.refuses("errno.yaml", old, new, expected)
