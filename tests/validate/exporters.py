"""Python objects that are tested with `fletching validate --python`: correct ones and broken ones.

They export the structs of library.c, which FLETCHING_COUNTER names.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import PYFUNCTYPE, c_char_p, c_int64, c_void_p
from typing import Any

_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
_get_name = PYFUNCTYPE(c_char_p, c_void_p)(("PyCapsule_GetName", _api))
_get_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))

_set_name = _api.PyCapsule_SetName
_set_name.argtypes = ctypes.py_object, c_char_p

_RELEASE = {b"arrow_schema": 7, b"arrow_array": 8, b"arrow_array_stream": 3}
_structs: dict[int, Any] = {}
_library = ctypes.CDLL(os.environ["FLETCHING_COUNTER"])


def _destroy(capsule: int) -> None:
    name = _get_name(capsule)
    address = _get_pointer(capsule, name)
    struct = _structs.pop(address)
    if release := struct[_RELEASE[name]]:
        ctypes.CFUNCTYPE(None, c_void_p)(release)(address)


_destructor = PYFUNCTYPE(None, c_void_p)(_destroy)


def _capsule(struct: Any, name: bytes, is_destroyed: bool = True) -> Any:
    address = ctypes.addressof(struct)
    _structs[address] = struct
    destructor = ctypes.cast(_destructor, c_void_p) if is_destroyed else None
    return _new(address, name, destructor)


def _pair(is_destroyed: bool = True) -> tuple[Any, Any]:
    schema, array = (c_int64 * 9)(), (c_int64 * 10)()
    assert _library.count_array(schema, array) == 0
    return (
        _capsule(schema, b"arrow_schema", is_destroyed),
        _capsule(array, b"arrow_array", is_destroyed),
    )


class Array:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return _pair()


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        stream = (c_int64 * 5)()
        assert _library.count_stream(stream) == 0
        return _capsule(stream, b"arrow_array_stream")


class WrongNames:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return _pair()[::-1]


class WithoutDestructor:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return _pair(is_destroyed=False)


class WithoutRequest:
    def __arrow_c_array__(self) -> tuple[Any, Any]:
        return _pair()


class RefusesRequest:
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        if requested_schema is not None:
            raise NotImplementedError("requested_schema")
        return _pair()


class Tensor:
    """Data that DLPack cannot hold."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __dlpack__(self, **_: object) -> object:
        raise self.error("no nulls")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _delete(tensor: int) -> None:
    _structs.pop(tensor, None)


def _destroy_tensor(capsule: int) -> None:
    _delete(_get_pointer(capsule, b"dltensor"))


def _destroy_tensor_twice(capsule: int) -> None:
    tensor = _get_pointer(capsule, b"dltensor")
    words = _structs[tensor]  # alive in the second call, too
    deleter = _Deleter(words[7])
    deleter(tensor)
    deleter(tensor)


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_deleter = _Deleter(_delete)
_tensor_destructors = {
    "direct": PYFUNCTYPE(None, c_void_p)(_destroy_tensor),  # not through the struct
    "twice": PYFUNCTYPE(None, c_void_p)(_destroy_tensor_twice),
}


class DroppedTensor:
    """A legacy tensor."""

    def __init__(self, destructor: str = "") -> None:
        found = _tensor_destructors.get(destructor)
        self.destructor = ctypes.cast(found, c_void_p) if found else None

    def __dlpack__(self, **_: object) -> Any:
        tensor = (c_int64 * 8)()
        tensor[7] = ctypes.cast(_deleter, c_void_p).value or 0
        _structs[ctypes.addressof(tensor)] = tensor
        return _new(ctypes.addressof(tensor), b"dltensor", self.destructor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def take_legacy(given: Any, is_deleted: bool = True) -> None:
    """Takes a tensor as a consumer from before DLPack 1.0."""
    capsule = given.__dlpack__()
    tensor = _get_pointer(id(capsule), b"dltensor")
    assert _set_name(capsule, b"used_dltensor") == 0
    if (deleter := (c_int64 * 8).from_address(tensor)[7]) and is_deleted:
        _Deleter(deleter)(tensor)


class CudaArray:
    def __init__(self, **entries: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (3,),
            "typestr": "<i4",
            "data": (4096, False),
            "version": 3,
            **entries,
        }


def consume(given: Any) -> None:
    """Takes an array, and drops the capsules, whose destructors release it."""
    given.__arrow_c_array__()


def crash(_: Any) -> None:
    os.abort()


def hold(given: Any) -> None:
    """Keeps the capsules forever."""
    _structs[id(given)] = given.__arrow_c_array__()


def fail(given: Any) -> None:
    raise ValueError("expected another object")


class PanicError(BaseException):
    """Like the panics of a library in Rust."""


def panic(given: Any) -> None:
    raise PanicError("not implemented")
