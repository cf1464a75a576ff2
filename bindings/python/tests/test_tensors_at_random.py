"""Shapes, strides and types of tensors at random, with NumPy as the judge. Seeds are fixed."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pyarrow
import pytest

from fletching import Array, from_buffer, from_dlpack

TYPES = [*("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]


def view(chance: random.Random) -> numpy.ndarray[Any, Any]:
    """A part of an array, with steps, dimensions in any order and maybe nothing in it."""
    shape = [
        chance.randint(0 if chance.random() < 0.1 else 1, 5) for _ in range(chance.randint(1, 4))
    ]
    count = int(numpy.prod(shape))
    whole = numpy.arange(count).astype(chance.choice(TYPES)).reshape(shape)
    if chance.random() < 0.5:
        whole = whole.transpose(chance.sample(range(whole.ndim), whole.ndim))
    parts = []
    for size in whole.shape:
        start = chance.randint(0, size)
        parts.append(slice(start, None, chance.choice([1, 1, 1, 2, -1])))
    return whole[tuple(parts)] if chance.random() < 0.5 else whole


@pytest.mark.parametrize("seed", range(20))
def test_views_of_numpy(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        values = view(chance)
        try:
            array = from_dlpack(values, copy=False)
        except TypeError as error:
            assert "stride" in str(error)
            assert not values.flags.c_contiguous
            array = from_dlpack(values)
        else:
            found = array.to_numpy()
            assert values.size == 0 or found.ctypes.data == values.ctypes.data
        assert len(array) == len(values)
        for found in (
            array.to_numpy(),
            numpy.from_dlpack(array),
            numpy.from_dlpack(array, copy=True),
        ):
            assert found.dtype == values.dtype
            assert found.shape == values.shape
            assert numpy.array_equal(found, values)


@pytest.mark.parametrize("seed", range(5))
def test_slices_of_pyarrow(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        values = numpy.arange(chance.randint(0, 20)).astype(chance.choice(TYPES))
        start = chance.randint(0, len(values))
        array = Array.from_arrow(pyarrow.array(values)[start : chance.randint(start, 20)])
        expected = values[start : start + len(array)]
        for found in (array.to_numpy(), numpy.from_dlpack(array, copy=True)):
            assert numpy.array_equal(found, expected)
        assert pyarrow.array(from_buffer(values)).equals(pyarrow.array(values))
