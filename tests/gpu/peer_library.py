"""ctypes bindings of libfletching_gpu_peers, and its data in forms that other libraries take."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

VALUES = 1024  # number of int32 values
OLD = 0x11111111
NEW = 0x22222222

# Capsules keep the pointer to their name, so the names must stay alive.
NAMES = {False: b"dltensor_versioned", True: b"dltensor"}
USED = {False: b"used_dltensor_versioned", True: b"used_dltensor"}
CUDA = (2, 0)

Release = ctypes.CFUNCTYPE(None)

_API = ctypes.pythonapi
_API.PyCapsule_New.restype = ctypes.py_object
_API.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_API.PyCapsule_GetPointer.restype = ctypes.c_void_p
_API.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_API.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_API.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class PeerError(Exception):
    """The library's error or finding, with its message."""


class Library:
    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        pointer, number, wide = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
        self._library.FletchingGpuStream.restype = wide
        self._library.FletchingGpuSourceOpen.argtypes = [pointer]
        self._library.FletchingGpuSourceOpen.restype = None
        self._library.FletchingGpuDropTensor.argtypes = [pointer, number]
        self._library.FletchingGpuDropTensor.restype = None
        calls: dict[str, list[Any]] = {
            "Status": [],
            "SourceNew": [pointer],
            "SourceFinish": [pointer],
            "SourceDelete": [pointer],
            "SourceToDlpack": [pointer, pointer, number, pointer],
            "SourceToCudaArray": [pointer, pointer, pointer],
            "TakeDlpack": [pointer, number, ctypes.c_int32, pointer],
            "TakeCudaArray": [
                ctypes.c_uint64,
                wide,
                ctypes.c_char_p,
                pointer,
                Release,
                ctypes.c_int32,
                pointer,
            ],
        }
        for name, arguments in calls.items():
            getattr(self._library, f"FletchingGpu{name}").argtypes = [*arguments, pointer]

    def _call(self, name: str, *arguments: Any) -> str:
        message = ctypes.create_string_buffer(1024)
        code = getattr(self._library, f"FletchingGpu{name}")(*arguments, message)
        text = message.value.decode()
        if code != 0:
            raise PeerError(text)
        return text

    def status(self) -> str:
        """Returns "real" or "stand-in". Raises PeerError without a device."""
        return self._call("Status")

    def stream(self) -> int:
        """The stream on which other libraries deliver their data."""
        return int(self._library.FletchingGpuStream())

    def source(self) -> Source:
        return Source(self)

    def take_dlpack(self, other: Any, expected: int = NEW) -> int:
        """Reads another library's export. Returns the number of compared values."""
        if tuple(map(int, other.__dlpack_device__())) != CUDA:
            raise PeerError(f"__dlpack_device__ is {other.__dlpack_device__()}, expected {CUDA}")
        try:
            capsule = other.__dlpack__(stream=self.stream(), max_version=(1, 3))
        except TypeError:  # a library from before DLPack 1.0
            capsule = other.__dlpack__(stream=self.stream())
        legacy = not _API.PyCapsule_IsValid(capsule, NAMES[False])
        tensor = _API.PyCapsule_GetPointer(capsule, NAMES[legacy])
        _API.PyCapsule_SetName(capsule, USED[legacy])
        compared = ctypes.c_int64()
        self._call("TakeDlpack", tensor, legacy, expected, ctypes.byref(compared))
        return compared.value

    def take_cuda_array(self, other: Any, expected: int = NEW) -> int:
        """Reads through __cuda_array_interface__."""
        says = other.__cuda_array_interface__
        released = []
        release = Release(lambda: released.append(other))
        stream = says.get("stream")
        compared = ctypes.c_int64()
        self._call(
            "TakeCudaArray",
            says["data"][0],
            says["shape"][0],
            says["typestr"].encode(),
            None if stream is None else ctypes.byref(ctypes.c_int64(stream)),
            release,
            expected,
            ctypes.byref(compared),
        )
        if len(released) != 1:
            raise PeerError(f"the owner was let go {len(released)} times, expected once")
        return compared.value


class Source:
    """New data behind a shut gate, over old data. Close it after all its tensors are gone.

    It is not closed after a failure, whose traceback references such a tensor, and then leaks.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.handle = ctypes.c_void_p()
        self._capsules: list[Any] = []
        self.call("SourceNew", ctypes.byref(self.handle))

    def call(self, name: str, *arguments: Any) -> None:
        self.library._call(name, *arguments)

    def open(self) -> None:
        self.library._library.FletchingGpuSourceOpen(self.handle)

    def finish(self) -> None:
        """Opens the gate and waits for the new data, for a library without ordering."""
        self.call("SourceFinish", self.handle)

    def close(self) -> None:
        """Raises PeerError if one of its objects was not released, or was released twice."""
        for capsule in self._capsules:
            for legacy, name in NAMES.items():
                if _API.PyCapsule_IsValid(capsule, name):
                    tensor = _API.PyCapsule_GetPointer(capsule, name)
                    _API.PyCapsule_SetName(capsule, USED[legacy])
                    self.library._library.FletchingGpuDropTensor(tensor, legacy)
        self._capsules.clear()
        self.call("SourceDelete", self.handle)

    def capsule(self, stream: int | None, legacy: bool) -> Any:
        tensor = ctypes.c_void_p()
        number = None if stream is None else ctypes.byref(ctypes.c_int64(stream))
        self.call("SourceToDlpack", self.handle, number, legacy, ctypes.byref(tensor))
        capsule = _API.PyCapsule_New(tensor, NAMES[legacy], None)
        self._capsules.append(capsule)
        return capsule

    @property
    def tensor(self) -> Tensor:
        return Tensor(self)

    @property
    def described(self) -> Described:
        pointer, stream = ctypes.c_uint64(), ctypes.c_int64()
        self.call("SourceToCudaArray", self.handle, ctypes.byref(pointer), ctypes.byref(stream))
        return Described(pointer.value, stream.value)


class Tensor:
    """An object for a library's from_dlpack."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        **others: Any,
    ) -> Any:
        wrong = [name for name, value in others.items() if value is not None]
        if wrong:
            raise BufferError(f"{wrong[0]} is not supported")
        return self._source.capsule(stream, legacy=max_version is None or max_version[0] < 1)


class Described:
    """An object with the CUDA Array Interface."""

    def __init__(self, pointer: int, stream: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (VALUES,),
            "typestr": "<i4",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
            "stream": stream,
        }


Check = Callable[[Library], int]
