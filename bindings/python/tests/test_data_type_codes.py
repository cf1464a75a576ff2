"""The data-type codes of DLPack: open integers with names, and the table."""

from __future__ import annotations

import pickle

import pytest

from fletching import abi
from fletching.abi import DATA_TYPE_CODES, DataTypeCode, find_data_type_code


def test_known_codes_print_name() -> None:
    assert str(DataTypeCode.BFLOAT) == "bfloat"
    assert repr(DataTypeCode.FLOAT8_E4M3FN) == "float8_e4m3fn"
    assert f"{DataTypeCode.BOOL} {DataTypeCode.BOOL:d}" == "bool 6"


def test_unknown_codes_print_number_and_pass_through_field() -> None:
    assert str(DataTypeCode(99)) == "unknown(99)"
    data_type = abi.DLDataType(code=DataTypeCode(99), bits=8, lanes=1)
    assert DataTypeCode(data_type.code) == 99


@pytest.mark.parametrize("value", [256, -1, 2**64 + 1])
def test_rejects_code_out_of_range(value: int) -> None:
    with pytest.raises(
        ValueError, match=f"DataTypeCode: out of range: expected a uint8, got {value}"
    ):
        DataTypeCode(value)


def test_codes_are_numbers() -> None:
    assert DataTypeCode.FLOAT == 2
    assert hash(DataTypeCode.FLOAT) == hash(2)
    assert type(pickle.loads(pickle.dumps(DataTypeCode.FLOAT))) is DataTypeCode


def test_lookup_finds_every_code() -> None:
    codes = [entry.code for entry in DATA_TYPE_CODES]
    assert codes == sorted(set(codes))
    for entry in DATA_TYPE_CODES:
        assert find_data_type_code(int(entry.code)) is entry
        assert getattr(DataTypeCode, entry.name.upper()) == entry.code
    assert find_data_type_code(99) is None
