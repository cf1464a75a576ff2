"""The member `reserved` of an exported device array has what malloc has left there.

Run it with MALLOC_PERTURB_=85 in the environment, which makes glibc fill the memory.
"""

import ctypes

import pyarrow as pa

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

_, array = pa.array([1.5, 2.0]).__arrow_c_device_array__()
address = pointer(array, b"arrow_device_array")
reserved = list((ctypes.c_int64 * 3).from_address(address + 104))
assert reserved == [0, 0, 0], [hex(word) for word in reserved]
