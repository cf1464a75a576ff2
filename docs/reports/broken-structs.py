"""Gives a function a broken struct, without Fletching.

python broken-structs.py KIND MODULE:FUNCTION

KIND: callbacks-null (a stream), left-behind (a schema, by a call that fails), length-negative
(an array), buffers-null (an array), shape-null (a tensor), ndim-max (a tensor).
"""

import ctypes
import importlib
import sys
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int64, c_void_p

new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
kept = []


def words(count, **values):
    struct = (c_int64 * count)()
    for at, value in values.items():
        struct[int(at[1:])] = value
    kept.append(struct)
    return struct


def pointer(function):
    kept.append(function)
    return ctypes.cast(function, c_void_p).value


def release(at):
    def released(struct):
        c_int64.from_address(struct + 8 * at).value = 0

    return pointer(CFUNCTYPE(None, c_void_p)(released))


def left_behind(_, out):
    def released(schema):
        print("released the schema that the failed call has left behind", flush=True)
        c_int64.from_address(schema + 8 * 7).value = 0

    c_int64.from_address(out + 8 * 7).value = pointer(CFUNCTYPE(None, c_void_p)(released))
    return 12


class Stream:
    def __init__(self, get_schema):
        text = pointer(CFUNCTYPE(c_void_p, c_void_p)(lambda _: None))
        self.struct = words(
            5, _0=get_schema, _1=get_schema, _2=text if get_schema else 0, _3=release(3)
        )

    def __arrow_c_stream__(self, requested_schema=None):
        return new(ctypes.addressof(self.struct), b"arrow_array_stream", None)


class Array:
    def __init__(self, length, buffers):
        text = ctypes.create_string_buffer(b"i")
        kept.append(text)
        self.schema = words(9, _0=ctypes.addressof(text), _7=release(7))
        self.array = words(10, _0=length, _3=2, _5=buffers, _8=release(8))

    def __arrow_c_array__(self, requested_schema=None):
        schema = new(ctypes.addressof(self.schema), b"arrow_schema", None)
        return schema, new(ctypes.addressof(self.array), b"arrow_array", None)


class Tensor:
    def __init__(self, ndim, shape):
        self.ndim, self.shape = ndim, shape

    def __dlpack__(self, **options):
        is_versioned = (options.get("max_version") or (0, 0)) >= (1, 0)
        at = 4 if is_versioned else 0
        tensor = words(10)
        tensor[0] = 1  # the major version, which data overwrites in a legacy tensor
        tensor[at] = ctypes.addressof(words(4))
        tensor[at + 1 : at + 4] = 1, self.ndim | (0 | 32 << 8 | 1 << 16) << 32, self.shape
        name = b"dltensor_versioned" if is_versioned else b"dltensor"
        return new(ctypes.addressof(tensor), name, None)

    def __dlpack_device__(self):
        return 1, 0


GIVEN = {
    "callbacks-null": lambda: Stream(0),
    "left-behind": lambda: Stream(pointer(CFUNCTYPE(c_int, c_void_p, c_void_p)(left_behind))),
    "length-negative": lambda: Array(-1, ctypes.addressof(words(2, _1=ctypes.addressof(words(4))))),
    "buffers-null": lambda: Array(3, 0),
    "shape-null": lambda: Tensor(1, 0),
    "ndim-max": lambda: Tensor(2**31 - 1, ctypes.addressof(words(1, _0=1))),
}
if len(sys.argv) != 3 or sys.argv[1] not in GIVEN:
    sys.exit(__doc__)
module, _, function = sys.argv[2].partition(":")
eval(function, vars(importlib.import_module(module)))(GIVEN[sys.argv[1]]())
