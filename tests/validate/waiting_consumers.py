"""Functions that pass the capsules of an object to the consumers of waiting.c, which
FLETCHING_WAITING names."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from ctypes import c_char_p, c_void_p
from typing import Any

_address_of = ctypes.pythonapi.PyCapsule_GetPointer
_address_of.restype, _address_of.argtypes = c_void_p, (ctypes.py_object, c_char_p)
_library = ctypes.CDLL(os.environ["FLETCHING_WAITING"])


def _call(function: str, *addresses: int | None) -> None:
    if _library[function](*map(c_void_p, addresses)) != 0:
        raise NotImplementedError(function)


def take_array(function: str) -> Callable[[Any], None]:
    def take(given: Any) -> None:
        schema, array = given.__arrow_c_device_array__()
        addresses = _address_of(schema, b"arrow_schema"), _address_of(array, b"arrow_device_array")
        _call(f"{function}_array", *addresses)

    return take


def take_stream(function: str) -> Callable[[Any], None]:
    def take(given: Any) -> None:
        stream = given.__arrow_c_device_stream__()
        _call(f"{function}_stream", _address_of(stream, b"arrow_device_array_stream"))

    return take
