"""Structs and capsules between the peers and the languages."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema

# Exports an array of a peer: the addresses of the schema and of the device array, and their owner.
Export = Callable[[Any], tuple[int, int, Any]]


def export_to_structs(source: Any) -> tuple[int, int, Any]:
    """Lets pyarrow export to newly allocated structs."""
    schema, array = ArrowSchema(), ArrowDeviceArray()
    addresses = (ctypes.addressof(schema), ctypes.addressof(array))
    source._export_to_c_device(addresses[1], addresses[0])
    return (*addresses, (schema, array))


def export_to_device_capsules(source: Any) -> tuple[int, int, Any]:
    """Exports with __arrow_c_device_array__."""
    capsules = source.__arrow_c_device_array__()
    schema = _pointer(capsules[0], b"arrow_schema")
    array = _pointer(capsules[1], b"arrow_device_array")
    return schema, array, capsules


def export_to_capsules(source: Any) -> tuple[int, int, Any]:
    """Exports with __arrow_c_array__, and moves the result into a device array on the CPU."""
    capsules = source.__arrow_c_array__()
    schema = _pointer(capsules[0], b"arrow_schema")
    array = ArrowArray.from_address(_pointer(capsules[1], b"arrow_array"))
    device = ArrowDeviceArray(device_type=1, device_id=-1)
    ctypes.memmove(ctypes.byref(device.array), ctypes.byref(array), ctypes.sizeof(array))
    array.release = type(array.release)()
    return schema, ctypes.addressof(device), (capsules, device)


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return int(get(capsule, name))


class Capsules:
    """Structs at two addresses as an object for import. The structs must outlive it."""

    def __init__(self, schema: int, array: int) -> None:
        self._schema, self._array = schema, array

    def __arrow_c_device_array__(self, requested_schema: Any = None, **_: Any) -> tuple[Any, Any]:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return (
            new(self._schema, b"arrow_schema", None),
            new(self._array, b"arrow_device_array", None),
        )


def release_both(schema: int, array: int) -> None:
    for struct in (ArrowSchema.from_address(schema), ArrowArray.from_address(array)):
        if struct.release:
            struct.release(struct)


def buffers_of(array: ArrowArray) -> Iterator[int]:
    """The addresses of all buffers of an array, of its children and of its dictionaries."""
    for i in range(array.n_buffers):
        address = array.buffers[i]
        if address is not None:
            yield address
    for i in range(array.n_children):
        yield from buffers_of(array.children[i].contents)
    if array.dictionary:
        yield from buffers_of(array.dictionary.contents)
