"""Passes tensors through the subject of a column, and calls each deleter twice."""

from __future__ import annotations

import sys
from ctypes import CFUNCTYPE, byref, c_char_p, c_int, c_void_p

from libraries import declare, load
from producer import Message
from transits import subject_of

# The word of the function in struct FletchingSubject, and the word of the deleter in the tensor.
_TENSORS = {"FletchingHostileExportTensor": (9, 2), "FletchingHostileExportLegacyTensor": (10, 7)}


def main(column: str) -> None:
    hostile = load("libfletching_hostile.so")
    subject = (c_void_p * 11).from_address(subject_of(column))
    for name, (function, deleter) in _TENSORS.items():
        given, taken, message = c_void_p(), c_void_p(), Message()
        produce = declare(hostile, name, c_int, c_char_p, c_void_p, c_void_p)
        assert produce(b"tensor.good", byref(given), None) == 0
        pass_through = CFUNCTYPE(c_int, *(c_void_p,) * 4)(subject[function] or 0)
        code = pass_through(subject[2], given, byref(taken), byref(message))
        assert code == 0, message.text
        words = (c_void_p * 8).from_address(taken.value or 0)
        delete = CFUNCTYPE(None, c_void_p)(words[deleter] or 0)
        delete(taken)
        delete(taken)


if __name__ == "__main__":
    main(sys.argv[1])
