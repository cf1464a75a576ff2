"""Tests of the tensor types: the list, and mistakes in its file."""

from __future__ import annotations

import pytest
from conftest import Scratch

from fletching_generator.spec.model import Spec


def test_every_released_code_has_type(spec: Spec) -> None:
    named = {row.code for row in spec.tensor_types.types}
    codes = {code.name for code in spec.data_type_codes.enumerators}
    assert codes - named == {"kDLOpaqueHandle"}  # a handle has a meaning only for two parties


def test_value_sizes_match_storage(spec: Spec) -> None:
    rows = {row.name: row for row in spec.tensor_types.types}
    assert (rows["complex64"].part_bytes, rows["complex64"].parts) == (4, 2)
    assert rows["float6_e2m3fn_x4"].part_bytes == 3
    assert rows["kDLInt64"].part_bytes == 8


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "code: kDLBfloat",
            "code: kDLNone",
            r"types\[12\]\.code: 'kDLNone' is not a data-type code; hint: name one of spec/dlpack",
        ),
        (
            "bits: 16, format: S}",
            "bits: 16, format: I}",
            r"types\[5\]\.format: 'I' does not have the 16 bits of the DLPack type",
        ),
        (
            "code: kDLUInt, bits: 8,",
            "code: kDLInt, bits: 8,",
            r"types\[4\]\.code: kDLInt8 stands twice",
        ),
        (
            "type_name: float8_e4m3}",
            "type_name: float8_e3m4}",
            r"types\[17\]\.format: float8_e3m4 stands twice",
        ),
        (
            "extension: arrow.bool8}",
            "extension: arrow.bool8, type_name: bool}",
            r"types\[11\]\.extension: a type is of one extension",
        ),
        (
            "tdD, bits: 32, lost: time}",
            "tdD, bits: 32, lost: place}",
            r"as_storage\[0\]\.lost: 'place' is not defined",
        ),
    ],
)
def test_reports_mistakes(scratch: Scratch, old: str, new: str, expected: str) -> None:
    scratch.refuses("tensor-types.yaml", old, new, expected)
