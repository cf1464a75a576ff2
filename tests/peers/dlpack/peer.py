"""Python bindings of `peer.cpp`, and the capsules in which Python libraries pass tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pyarrow as pa

LIBRARY = Path(__file__).resolve().parents[3] / "build" / "lib" / "libfletching_dlpack_peer.so"

# Capsules keep the pointer to their name, so the names must stay alive.
NAMES = {False: b"dltensor_versioned", True: b"dltensor"}
USED = {False: b"used_dltensor_versioned", True: b"used_dltensor"}

SCHEMA_BYTES = 72
DEVICE_ARRAY_BYTES = 128
CPU = (1, 0)


def _load() -> ctypes.CDLL:
    if not LIBRARY.is_file():
        raise FileNotFoundError(f"{LIBRARY} is not there: build it with `make build`")
    library = ctypes.CDLL(str(LIBRARY))
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.PeerToDlpack.argtypes = [pointer] * 2 + [number] * 3 + [pointer] * 2
    library.PeerFromDlpack.argtypes = [pointer] + [number] * 4 + [pointer] * 4
    return library


_PEER = _load()
_API = ctypes.pythonapi
_API.PyCapsule_New.restype = ctypes.py_object
_API.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_API.PyCapsule_GetPointer.restype = ctypes.c_void_p
_API.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_API.PyCapsule_GetName.restype = ctypes.c_char_p
_API.PyCapsule_GetName.argtypes = [ctypes.py_object]
_API.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class PeerError(Exception):
    """The library's error, with its message."""


def _check(code: int, message: ctypes.Array[ctypes.c_char]) -> None:
    if code != 0:
        raise PeerError(message.value.decode())


def tensor_of(array: Any, *, legacy: bool, read_only: bool, as_storage: bool) -> Any:
    """A capsule with Fletching's tensor, which shares the array's memory."""
    schema = ctypes.create_string_buffer(SCHEMA_BYTES)
    device_array = ctypes.create_string_buffer(DEVICE_ARRAY_BYTES)
    array._export_to_c_device(ctypes.addressof(device_array), ctypes.addressof(schema))
    tensor = ctypes.c_void_p()
    message = ctypes.create_string_buffer(512)
    code = _PEER.PeerToDlpack(
        schema, device_array, legacy, read_only, as_storage, ctypes.byref(tensor), message
    )
    _check(code, message)
    assert tensor.value is not None
    return capsule_of(tensor.value, legacy=legacy)


class Exported:
    """An Arrow array that other libraries see as Fletching's tensor."""

    def __init__(self, array: Any, *, read_only: bool = True, as_storage: bool = False) -> None:
        self.array = array
        self.read_only = read_only
        self.as_storage = as_storage
        self.names: list[bytes] = []  # capsule names at the time of their return
        self.capsules: list[Any] = []

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> Any:
        legacy = max_version is None or max_version < (1, 0)
        capsule = tensor_of(
            self.array, legacy=legacy, read_only=self.read_only, as_storage=self.as_storage
        )
        self.names.append(NAMES[legacy])
        self.capsules.append(capsule)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    @property
    def consumed(self) -> bool:
        """Whether a capsule was returned, and every one was consumed."""
        names = [_API.PyCapsule_GetName(capsule) for capsule in self.capsules]
        return bool(names) and all(name in USED.values() for name in names)


class Pointer(ctypes.Structure):
    """The fields of a DLTensor that give the address of its first element."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("between", ctypes.c_uint8 * 32),  # the fields from device to strides
        ("byte_offset", ctypes.c_uint64),
    )
    data: int
    byte_offset: int


# The fields before the DLTensor of a versioned tensor: version, manager_ctx, deleter, flags.
VERSIONED_BYTES = 32


def pointer_of(capsule: Any) -> tuple[int, int]:
    """The data pointer and the byte_offset of an unconsumed capsule."""
    name = _API.PyCapsule_GetName(capsule)
    tensor = _API.PyCapsule_GetPointer(capsule, name)
    found = Pointer.from_address(tensor + (VERSIONED_BYTES if name == NAMES[False] else 0))
    return found.data, found.byte_offset


def capsule_of(tensor: int, *, legacy: bool) -> Any:
    """A capsule around a tensor. Its consumer deletes the tensor."""
    return _API.PyCapsule_New(tensor, NAMES[legacy], None)


def address_of(capsule: Any) -> tuple[int, bool]:
    """The tensor of a capsule, and whether it is legacy, from before DLPack 1.0."""
    legacy = _API.PyCapsule_GetName(capsule) == NAMES[True]
    tensor: int = _API.PyCapsule_GetPointer(capsule, NAMES[legacy])
    return tensor, legacy


def taken(capsule: Any) -> tuple[int, bool]:
    """Like address_of, and marks the capsule as consumed."""
    tensor, legacy = address_of(capsule)
    _API.PyCapsule_SetName(capsule, USED[legacy])
    return tensor, legacy


def imported(
    capsule: Any, *, lists: bool = False, copy: bool = False, as_storage: bool = False
) -> tuple[Any, bool, bool]:
    """A capsule's tensor as an Arrow array, whether it is read-only, and whether it is a copy."""
    tensor, legacy = taken(capsule)
    schema = ctypes.create_string_buffer(SCHEMA_BYTES)
    device_array = ctypes.create_string_buffer(DEVICE_ARRAY_BYTES)
    flags = ctypes.c_int()
    message = ctypes.create_string_buffer(512)
    _check(
        _PEER.PeerFromDlpack(
            tensor,
            legacy,
            lists,
            copy,
            as_storage,
            schema,
            device_array,
            ctypes.byref(flags),
            message,
        ),
        message,
    )
    array = pa.Array._import_from_c_device(ctypes.addressof(device_array), ctypes.addressof(schema))
    return array, bool(flags.value & 1), bool(flags.value & 2)
