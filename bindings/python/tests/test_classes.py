"""Only functions create objects: no constructors, no subclasses, no copies without a value."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from capsules import Produced
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema

CLASSES: list[Any] = [Schema, Array, DeviceArray, ArrayStream, DeviceArrayStream]
each_class = pytest.mark.parametrize("kind", CLASSES)


@each_class
def test_classes_have_no_constructor(kind: Any) -> None:
    for call in (kind, lambda: kind.__new__(kind), lambda: kind(Produced())):
        with pytest.raises(TypeError, match=rf"^{kind.__name__}: no constructor: expected"):
            call()
    with pytest.raises(TypeError):
        object.__new__(kind)


@each_class
def test_classes_are_final(kind: Any) -> None:
    """The functions would not return objects of the subclass."""
    with pytest.raises(TypeError, match="prohibits subclassing"):
        type("Sub", (kind,), {})


@pytest.mark.parametrize("kind", [Array, DeviceArray])
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_arrays_cannot_be_copied_or_pickled(kind: Any, make: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"cannot pickle '(?:fletching\._core\.)?{kind.__name__}' object"
    ):
        make(kind.from_arrow(Produced()))
