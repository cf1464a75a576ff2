"""Loads subjects of the conformance suite, and passes tensors through them."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

from peer import VERSIONED_BYTES, PeerError, address_of, capsule_of, taken

ROOT = Path(__file__).resolve().parents[3]
CODE_AT = 20  # offset in a DLTensor, after data, device and ndim
sys.path += [str(ROOT / folder) for folder in ("tools", "tests/roundtrip")]

import languages  # noqa: E402
import transits  # noqa: E402


class Subject(ctypes.Structure):
    """The leading fields of FletchingSubject."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("context", ctypes.c_void_p),
        ("promises", ctypes.c_uint32),
        ("others", ctypes.c_void_p * 5),
        ("tensor", ctypes.c_void_p),
        ("legacy_tensor", ctypes.c_void_p),
    )


FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p
)


def columns() -> list[str]:
    """The columns of the round trip that have a subject."""
    found = languages.columns(languages.load())
    return [name for name, (_, column) in found.items() if column.subject]


def load(column: str) -> Subject:
    """Loads a column's subject into this process, which can have only one Go runtime and JVM."""
    return Subject.from_address(transits.subject_of(column))


class Retyped:
    """A NumPy tensor with its data-type code replaced."""

    def __init__(self, values: Any, code: int) -> None:
        self._values = values
        self._code = code

    def __dlpack__(self, **request: Any) -> Any:
        capsule = self._values.__dlpack__(**request)
        tensor, is_legacy = address_of(capsule)
        ctypes.c_uint8.from_address(
            tensor + (0 if is_legacy else VERSIONED_BYTES) + CODE_AT
        ).value = self._code
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._values.__dlpack_device__()
        return device


class Through:
    """A tensor of another library that has passed through a subject."""

    def __init__(self, subject: Subject, source: Any) -> None:
        self._subject = subject
        self._source = source

    def __dlpack__(self, **request: Any) -> Any:
        tensor, legacy = taken(self._source.__dlpack__(**request))
        function = FUNCTION(self._subject.legacy_tensor if legacy else self._subject.tensor)
        message = ctypes.create_string_buffer(1024)
        out = ctypes.c_void_p()
        code = function(self._subject.context, tensor, ctypes.byref(out), message)
        if code != 0 or out.value is None:
            raise PeerError(message.value.decode())
        return capsule_of(out.value, legacy=legacy)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._source.__dlpack_device__()
        return device
