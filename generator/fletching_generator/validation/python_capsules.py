"""Capsules and their structs, through ctypes. Needs only the standard library."""

from __future__ import annotations

import ctypes
import sys
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int64, c_void_p
from typing import Any, ClassVar


class Kind:
    """A struct of a capsule: its name, its words, and the word with the release callback."""

    def __init__(self, name: Any, words: Any, release: Any) -> None:
        self.name, self.words, self.release = name.encode(), words, release
        self.size = 8 * words


SCHEMA = Kind("arrow_schema", 9, 7)
ARRAY = Kind("arrow_array", 10, 8)
DEVICE_ARRAY = Kind("arrow_device_array", 16, 8)
STREAM = Kind("arrow_array_stream", 5, 3)
DEVICE_STREAM = Kind("arrow_device_array_stream", 6, 4)

# By role: the method, and the structs that it returns.
METHODS = {
    "array": ("__arrow_c_array__", (SCHEMA, ARRAY)),
    "device-array": ("__arrow_c_device_array__", (SCHEMA, DEVICE_ARRAY)),
    "stream": ("__arrow_c_stream__", (STREAM,)),
    "device-stream": ("__arrow_c_device_stream__", (DEVICE_STREAM,)),
}
RETURNS = {
    "array": "arrow-methods.array-returns",
    "device-array": "arrow-device-methods.array-returns",
    "stream": "arrow-methods.stream-returns",
    "device-stream": "arrow-device-methods.stream-returns",
}
TENSOR, LEGACY_TENSOR = b"dltensor_versioned", b"dltensor"
USED = {TENSOR: b"used_dltensor_versioned", LEGACY_TENSOR: b"used_dltensor"}
DELETER = {TENSOR: 2, LEGACY_TENSOR: 7}  # words

_api = ctypes.pythonapi
_is_valid = _api.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, (ctypes.py_object, c_char_p)
_get_name = _api.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = c_char_p, (ctypes.py_object,)
address_of = _api.PyCapsule_GetPointer
address_of.restype, address_of.argtypes = c_void_p, (ctypes.py_object, c_char_p)
rename = _api.PyCapsule_SetName
rename.restype, rename.argtypes = c_int, (ctypes.py_object, c_char_p)
destructor_of = _api.PyCapsule_GetDestructor
destructor_of.restype, destructor_of.argtypes = c_void_p, (ctypes.py_object,)
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)


def is_capsule(value: Any) -> bool:
    return type(value).__name__ == "PyCapsule"


def name_of(capsule: Any) -> Any:
    return _get_name(capsule) if is_capsule(capsule) else None


def words_at(address: Any, count: Any) -> Any:
    return (c_int64 * count).from_address(address)


class FindingError(Exception):
    """Ends a case with a finding."""

    def __init__(
        self, rule: Any, message: Any, severity: Any = "error", party: Any = "producer"
    ) -> None:
        super().__init__(message)
        self.line = {
            "rule": rule,
            "severity": severity,
            "party": party,
            "path": "",
            "message": message,
            "history": "",
        }


def checked_capsules(method: Any, kinds: Any, returned: Any, rule: Any) -> Any:
    """Returns the addresses of the structs. Raises FindingError for wrong capsules."""
    capsules = returned if len(kinds) > 1 else (returned,)
    if len(kinds) > 1 and (not isinstance(returned, tuple) or len(returned) != len(kinds)):
        raise FindingError(rule, f"{method}: expected {len(kinds)} capsules, got {type(returned)}")
    for capsule, kind in zip(capsules, kinds, strict=True):
        if not is_capsule(capsule):
            raise FindingError(rule, f"{method}: expected a capsule, got {type(capsule)}")
        if name_of(capsule) != kind.name:
            text = f"{method}: expected a capsule named {kind.name}, got {name_of(capsule)}"
            raise FindingError("capsule.names", text)
    return [address_of(capsule, kind.name) for capsule, kind in zip(capsules, kinds, strict=True)]


class Hook:
    """Counts the calls of a callback in a struct."""

    _alive: ClassVar[list[Any]] = []  # the structs may outlive the case

    def __init__(self, words: Any, at: Any) -> None:
        original = CFUNCTYPE(None, c_void_p)(words[at])
        self.calls = 0

        def called(struct: Any) -> None:
            self.calls += 1
            inner = words_at(struct, len(words))
            inner[at] = ctypes.cast(original, c_void_p).value
            original(struct)

        callback = CFUNCTYPE(None, c_void_p)(called)
        self._alive.append(callback)
        words[at] = ctypes.cast(callback, c_void_p).value


class Owned:
    """A capsule of a struct of the suite.

    It has no destructor, which would run while an exception is pending: ctypes cannot do that.
    """

    _held: ClassVar[list[Any]] = []  # by a consumer: the struct must stay

    def __init__(self, name: bytes, address: int, words: Any, release: int) -> None:
        self.capsule = _new(address, name, None)
        self._struct = address, words, release
        self._references = sys.getrefcount(self.capsule)

    def end(self) -> None:
        """Releases the struct if no consumer has moved it out or still holds the capsule."""
        if sys.getrefcount(self.capsule) > self._references:
            self._held.append(self)
            return
        address, words, release = self._struct
        is_used = _get_name(self.capsule) in USED.values()
        if words[release] and not is_used:
            CFUNCTYPE(None, c_void_p)(words[release])(address)


def capsule_of(kind: Kind, address: int) -> Owned:
    """Moves the struct at the address into a capsule."""
    words = (c_int64 * kind.words)()
    ctypes.memmove(words, address, kind.size)
    words_at(address, kind.words)[kind.release] = 0
    return Owned(kind.name, ctypes.addressof(words), words, kind.release)


def tensor_capsule_of(name: bytes, address: int) -> Owned:
    """Returns a capsule of the tensor. A consumer that takes the tensor renames it."""
    words = words_at(address, DELETER[name] + 1)
    return Owned(name, address, words, DELETER[name])
