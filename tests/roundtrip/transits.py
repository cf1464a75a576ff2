"""Calls each language from Python through its first conformance subject (tests/conformance)."""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int32, c_uint32, c_void_p
from typing import Any

import languages
from fletching import abi
from libraries import declare, load
from producer import Message

_Array = CFUNCTYPE(c_int, *(c_void_p,) * 5, ctypes.POINTER(Message))


class _Subject(ctypes.Structure):
    """The leading fields of struct FletchingSubject."""

    _fields_ = (
        *(("size", ctypes.c_size_t), ("name", c_char_p), ("context", c_void_p)),
        *(("promises", c_uint32), ("schema", c_void_p), ("array", _Array)),
    )


class Transit:
    """Counts the structs that the language got and released."""

    def __init__(self, subject: int) -> None:
        """`subject`: address of a table that is never freed."""
        self._subject: Any = _Subject.from_address(subject)
        self._lock = threading.Lock()
        self.given = 0
        self.released = 0

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        """Arguments are addresses. Returns an error message."""
        for struct in (abi.ArrowSchema.from_address(schema), abi.ArrowArray.from_address(array)):
            abi.implement(struct, _Given(self, struct))
            self.given += 1
        message = Message()
        addresses = (schema, array, out_schema, out_array)
        code = self._subject.array(self._subject.context, *addresses, message)
        text = message.text.decode("utf-8", "backslashreplace")
        return f"errno {code}: {text}" if code != 0 else ""

    def count_release(self) -> None:
        with self._lock:
            self.released += 1


class _Given:
    """Keeps the original members of a struct, and counts its release."""

    def __init__(self, transit: Transit, struct: abi.ArrowSchema | abi.ArrowArray) -> None:
        self._transit = transit
        self._source = type(struct)()
        ctypes.memmove(ctypes.byref(self._source), ctypes.byref(struct), ctypes.sizeof(struct))

    def release(self, _: object) -> None:
        abi.release(self._source)
        self._transit.count_release()


def subject_of(column: str) -> int:
    """The address of a column's subject, from its library of subjects or from the function
    `load(column)` of the Python file in language.toml.

    Raises OSError if something is missing.
    """
    home, found = languages.columns(languages.load())[column]
    if found.subject == languages.NATIVE:
        library = load(f"libfletching_subject_{column}.so")
        address: int = declare(library, "FletchingConformanceSubject", c_void_p, c_int32)(0)
        return address
    path = languages.ROOT / home.folder / found.subject
    sys.path.insert(0, str(path.parent))  # it may import modules of its folder
    loaded: int = importlib.import_module(path.stem).load(column)
    return loaded


def load_transit(column: str) -> Transit:
    """The transit of a column. Raises OSError like subject_of."""
    return Transit(subject_of(column))
