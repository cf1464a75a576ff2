"""The cases in the groups of the conformance suite that play the corpus and the hostile peer."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache

from cells import CORPUS_DIRECTIONS
from libraries import declare, load

_Begin = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)


class _Subject(ctypes.Structure):
    """The first version of struct FletchingSubject."""

    _fields_ = (
        *(("size", c_size_t), ("name", c_char_p), ("context", c_void_p), ("promises", c_uint32)),
        ("functions", c_void_p * 9),
    )


class _Options(ctypes.Structure):
    """struct FletchingConformanceOptions."""

    _fields_ = (
        *(("size", c_size_t), ("group", c_char_p), ("case_name", c_char_p)),
        *(("report", c_void_p), ("context", c_void_p), ("begin", _Begin)),
    )


@cache
def corpus_cases() -> list[tuple[str, str]]:
    """Each group with its cases. Raises OSError if the suite is missing."""
    play = declare(load("libfletching_conformance.so"), "FletchingConformanceRun", c_int)
    play.argtypes = [POINTER(_Subject), POINTER(_Options), c_void_p, c_void_p]
    found: list[tuple[str, str]] = []

    def skip(_: object, group: bytes, name: bytes) -> int:
        found.append((group.decode(), name.decode()))
        return 1

    subject = _Subject(ctypes.sizeof(_Subject), b"none")
    for group in CORPUS_DIRECTIONS:
        options = _Options(ctypes.sizeof(_Options), group.encode(), begin=_Begin(skip))
        if code := play(byref(subject), byref(options), None, None):
            raise OSError(f"the suite cannot list the cases of {group}: errno {code}")
    return found
