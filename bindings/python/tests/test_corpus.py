"""The values of the corpus cases (tests/corpus) in pyarrow and NumPy."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy
import pyarrow
import pytest

import corpus
from capsules import GivenStructs
from corpus import Case, each
from fletching import DeviceArray, from_dlpack


@pytest.fixture(autouse=True)
def account() -> Iterator[None]:
    """Checks that every export of a case was released once."""
    yield
    gc.collect()
    corpus.finish()


def _plain(values: Any) -> Any:
    """Returns the values in the form that JSON uses."""
    if isinstance(values, Decimal):
        return str(values)
    if isinstance(values, bytes):
        return values.decode()
    if isinstance(values, (list, tuple)):
        return [_plain(each) for each in values]
    return values


@each(corpus.ARRAY)
def test_array_has_expected_values_in_pyarrow(case: Case) -> None:
    reason = case.exception("pyarrow")
    if not case.accepted:
        return  # owners pass unread data on; pyarrow aborts on some cases
    with GivenStructs("device_array", corpus.schema_of(case), corpus.array_of(case)) as given:
        array = DeviceArray.from_arrow(given)
    if reason is not None:
        with pytest.raises((pyarrow.ArrowException, KeyError)):
            pyarrow.array(array)
        return
    read = pyarrow.array(array)
    if case.values is not None:
        assert _plain(read.to_pylist()) == case.values


class _Tensor:
    def __init__(self, case: Case) -> None:
        self._capsule = corpus.tensor_of(case)

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@each(corpus.TENSOR, corpus.LEGACY_TENSOR)
def test_tensor_has_expected_values(case: Case) -> None:
    tensor = _Tensor(case)
    if not case.accepted:
        with pytest.raises(TypeError):
            from_dlpack(tensor)
        return
    assert numpy.from_dlpack(from_dlpack(tensor)).tolist() == case.values
