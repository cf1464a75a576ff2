"""Helpers for Python capsules, through ctypes."""

from __future__ import annotations

import ctypes
from typing import Any, Self

from fletching import abi
from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema

_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)

NAMES: dict[type[ctypes.Structure], bytes] = {
    ArrowSchema: b"arrow_schema",
    ArrowArray: b"arrow_array",
    ArrowDeviceArray: b"arrow_device_array",
    abi.ArrowArrayStream: b"arrow_array_stream",
    abi.ArrowDeviceArrayStream: b"arrow_device_array_stream",
}


def name_of(capsule: object) -> bytes:
    name: bytes = _get_name(capsule)
    return name


def struct_in(kind: Any, capsule: object) -> Any:
    """Returns the struct in a capsule, which still owns it."""
    return kind.from_address(address_in(capsule, NAMES[kind]))


def capsule_of(struct: ctypes.Structure, name: bytes | None = None) -> Any:
    """Returns a capsule without a destructor. The struct must outlive it."""
    return _new(ctypes.addressof(struct), name or NAMES[type(struct)], None)


def capsule_at(address: int, name: bytes) -> Any:
    return _new(address, name, None)


def address_in(capsule: object, name: bytes) -> int:
    address: int = _get_pointer(capsule, name)
    return address


def rename(capsule: object, name: bytes) -> None:
    """Renames a capsule. A capsule does not copy its name: pass a constant."""
    assert _set_name(capsule, name) == 0


class HeldTensor(abi.DLManagedTensorVersioned):
    """A tensor that keeps its capsule alive, because the capsule's destructor would delete the
    tensor.
    """

    capsule: object


def tensor_in(capsule: object) -> HeldTensor:
    tensor = HeldTensor.from_address(address_in(capsule, b"dltensor_versioned"))
    tensor.capsule = capsule
    return tensor


class Given:
    """An object whose __arrow_c_*__ methods return the test's results."""

    def __init__(self, **results: Any) -> None:
        for method, result in results.items():
            setattr(self, f"__arrow_c_{method}__", lambda *_, result=result, **__: result)


class GivenStructs:
    """An object with one protocol. On exit it releases the remaining structs."""

    def __init__(self, method: str, *structs: Any) -> None:
        self._structs = structs
        capsules = tuple(capsule_of(struct) for struct in structs)
        result = capsules if len(capsules) > 1 else capsules[0]
        setattr(self, f"__arrow_c_{method}__", lambda *_, **__: result)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for struct in self._structs:
            abi.release(struct)


class TensorProducer:
    """A producer of a DLPack capsule. Records the keywords of each call."""

    def __init__(self, capsule: object, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **keywords: Any) -> object:
        self.asked.append(keywords)
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


_USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}


def take_tensor(capsule: object) -> int:
    """Returns the tensor's address; the caller must delete the tensor."""
    name = name_of(capsule)
    address = address_in(capsule, name)
    rename(capsule, _USED[name])  # the table keeps the name, because a capsule does not copy it
    return address


class Source:
    """An array of the format, int32 by default, that counts its releases."""

    def __init__(
        self, values: tuple[int, ...] = (1, 2, 3), format: str = "i", **fields: Any
    ) -> None:
        self.releases: list[str] = []
        self._text = ctypes.create_string_buffer(format.encode())
        self._values = (ctypes.c_int32 * len(values))(*values)
        self._buffers = (ctypes.c_void_p * 2)(None, ctypes.addressof(self._values))
        self.schema = ArrowSchema(format=ctypes.addressof(self._text), flags=2)
        self.device = ArrowDeviceArray(device_type=1, device_id=-1)
        self.array = self.device.array
        self.array.length, self.array.n_buffers = len(values), 2
        self.array.buffers = ctypes.cast(self._buffers, ctypes.POINTER(ctypes.c_void_p))
        for name, value in fields.items():
            setattr(self.device, name, value)
        abi.implement(self.schema, _Release(self, "schema"))
        abi.implement(self.array, _Release(self, "array"))

    def __arrow_c_schema__(self) -> Any:
        return capsule_of(self.schema)

    def end(self) -> None:
        """Releases the structs that were not consumed."""
        abi.release(self.schema)
        abi.release(self.array)


class Produced(Source):
    """Exports with the CPU method."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return capsule_of(self.schema), capsule_of(self.array)


class ProducedOnDevice(Source):
    """Exports with the device method."""

    def __arrow_c_device_array__(
        self, requested_schema: object = None, **_: object
    ) -> tuple[object, object]:
        return capsule_of(self.schema), capsule_of(self.device)


class _Release:
    def __init__(self, source: Source, what: str) -> None:
        self._source, self._what = source, what

    def release(self, struct: object) -> None:
        self._source.releases.append(self._what)
