"""The validation layer at level DATA must have no finding in arrays of pyarrow and nanoarrow."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_void_p
from typing import Any

import pyarrow as pa
import pytest

from fletching.abi import ArrowDeviceArray
from libraries import declare, load
from limits import HOLD_VIEWS
from nanoarrow_peer import NanoarrowPeer
from pyarrow_cases import CASES
from structs import export_to_device_capsules, export_to_structs, release_both

DATA = 2  # FLETCHING_VALIDATE_DATA


class Finding(ctypes.Structure):
    """struct FletchingFinding"""

    _fields_ = tuple(
        (name, c_char_p) for name in ("rule", "severity", "party", "path", "message", "history")
    )


Report = CFUNCTYPE(None, c_void_p, POINTER(Finding))


class Options(ctypes.Structure):
    """struct FletchingValidateOptions"""

    _fields_ = (
        *(("size", c_size_t), ("level", c_int32), ("report", Report)),
        *(("context", c_void_p), ("stress", c_uint32)),
    )


_check = declare(
    load("libfletching.so"),
    "FletchingCheckDeviceArray",
    c_int,
    *(c_void_p, c_void_p, POINTER(Options), c_void_p, c_void_p),
)


def findings(schema: int, array: int) -> list[str]:
    found: list[str] = []

    def report(_: object, finding: Any) -> None:
        of = finding.contents
        found.append(f"{of.path.decode()}: {of.message.decode()} ({of.rule.decode()})")

    options = Options(ctypes.sizeof(Options), DATA, Report(report), None, 0)
    assert _check(schema, array, options, None, None) == 0
    return found


def findings_in(source: Any) -> list[str]:
    schema, array, owner = export_to_structs(source)
    found = findings(schema, array)
    release_both(schema, array)
    del owner
    return found


CUTS = {
    "whole": lambda made: made,
    "without the first": lambda made: made.slice(1),
    "without both ends": lambda made: made.slice(1, max(0, len(made) - 2)),
    "no rows": lambda made: made.slice(0, 0),
    "no rows at the end": lambda made: made.slice(len(made)),
    "cut twice": lambda made: made.slice(1).slice(1),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("case", CASES)
def test_pyarrow_array_has_no_findings(case: str, cut: str) -> None:
    assert findings_in(CUTS[cut](CASES[case]())) == []


@pytest.mark.parametrize("case", CASES)
def test_pyarrow_struct_of_sliced_array_has_no_findings(case: str) -> None:
    made = CASES[case]()
    if isinstance(made, pa.RecordBatch):
        made = made.to_struct_array()
    parent = pa.StructArray.from_arrays([made, made], ["one", "other"])
    assert findings_in(parent.slice(1)) == []
    assert findings_in(pa.concat_arrays([parent.slice(1), parent])) == []


@pytest.mark.parametrize("case", [case for case in CASES if case not in HOLD_VIEWS])
def test_nanoarrow_array_has_no_findings(case: str) -> None:
    schema, array, owner = export_to_device_capsules(NanoarrowPeer().make(case))
    assert findings(schema, array) == []
    del owner


def test_wrong_null_count_has_finding() -> None:
    schema, array, owner = export_to_structs(pa.array([1, None, 3]))
    ArrowDeviceArray.from_address(array).array.null_count = 2
    assert "array.null-count-correct" in findings(schema, array)[0]
    release_both(schema, array)
    del owner
