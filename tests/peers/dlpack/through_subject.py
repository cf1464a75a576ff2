"""Passes tensors of NumPy and tvm-ffi through the subject of FLETCHING_COLUMN and back.

test_subjects.py runs this file for each column.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from passing import Retyped, Subject, Through, load
from peer import PeerError
from test_dlpack import NUMBERS, numbers


@pytest.fixture(scope="module")
def subject() -> Subject:
    return load(os.environ["FLETCHING_COLUMN"])


@pytest.mark.parametrize("dtype", [*NUMBERS, "bool", "complex64", "complex128"])
def test_numpy_numbers_pass_through(subject: Subject, dtype: str) -> None:
    values = numbers(dtype)[3:]
    read = np.from_dlpack(Through(subject, values))
    assert read.dtype == values.dtype
    assert read.ctypes.data == values.ctypes.data
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)])
def test_permuted_tensors_pass_through(subject: Subject, order: tuple[int, ...]) -> None:
    memory = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    values = memory.transpose(order)
    read = np.from_dlpack(Through(subject, values))
    assert (read.shape, read.strides) == (values.shape, values.strides)
    np.testing.assert_array_equal(read, values)


class Old(Through):
    """Accepts no keywords, as before DLPack 1.0."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return super().__dlpack__()


def test_tensors_before_version_1_pass_through(subject: Subject) -> None:
    values = numbers("float32").reshape(4, 6)
    source: Any = Old(subject, values)
    read = np.from_dlpack(source)
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_tvm_ffi_tensors_pass_through(subject: Subject, dtype: str) -> None:
    values = numbers(dtype).reshape(4, 6)
    read = tvm_ffi.from_dlpack(Through(subject, tvm_ffi.from_dlpack(values)))
    assert (str(read.dtype), tuple(read.shape)) == (dtype, (4, 6))
    np.testing.assert_array_equal(np.from_dlpack(read), values)


@pytest.mark.parametrize(
    ("dtype", "code"), [("bfloat16", 4), ("float8_e4m3fn", 10), ("float8_e5m2", 12)]
)
def test_types_without_numpy_and_arrow_pass_through(
    subject: Subject, dtype: str, code: int
) -> None:
    values = numbers("uint16" if dtype == "bfloat16" else "uint8")
    source = tvm_ffi.from_dlpack(Retyped(values, code))
    assert str(source.dtype) == dtype
    read = tvm_ffi.from_dlpack(Through(subject, source))
    assert str(read.dtype) == dtype
    assert ctypes.string_at(read.data_ptr(), values.nbytes) == values.tobytes()


def test_tensors_with_gaps_are_rejected_or_copied(subject: Subject) -> None:
    values = numbers("int32")[::2]
    try:
        read = np.from_dlpack(Through(subject, values))
    except PeerError as error:
        assert "hint: copy the tensor" in str(error)
    else:
        np.testing.assert_array_equal(read, values)


def test_memory_is_released(subject: Subject) -> None:
    view = numbers("int64").view()
    held = sys.getrefcount(view)
    read = np.from_dlpack(Through(subject, view))
    assert sys.getrefcount(view) > held
    del read
    gc.collect()
    assert sys.getrefcount(view) == held
