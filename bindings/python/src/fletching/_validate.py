# SPDX-License-Identifier: Apache-2.0
"""The validation layer of libfletching. The first call loads the library."""

from __future__ import annotations

import ctypes
import enum
import errno
import functools
import os
import sys
from collections.abc import Callable
from ctypes import c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Literal

from . import abi
from ._async import AsyncHandler
from ._capsules import from_capsule, to_capsule
from ._core import ArrayStream, DeviceArrayStream, finding_report, from_arrow, layout
from ._error import Error
from ._finding import Finding
from ._structs import Struct

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

_Level = Literal["protocol", "shape", "data"]
_LEVELS = ("protocol", "shape", "data")
_MESSAGE = 1024  # bytes in a FletchingMessage


class Stress(enum.Flag):
    """Unusual behavior that the rules allow.

    Reveals bugs in a peer that relies on the usual behavior; a peer that breaks a rule can crash.
    """

    NONE = 0
    POISON = 1
    """Overwrites released structs, and strings and metadata after their lifetime."""
    MOVE = 2
    """Moves structs to other addresses. A later write to the old one is a finding."""
    PRIVATE_DATA = 4
    """Sets private_data to a value that is not an address."""
    THREAD = 8
    """Runs the producer's release callbacks on another thread."""
    DELAY = 16
    """Runs them after the next call on the stream."""


class _Options(ctypes.Structure):
    """The C struct FletchingValidateOptions."""

    _fields_ = (
        *(("size", c_size_t), ("level", c_int32), ("report", c_void_p)),
        *(("context", c_void_p), ("stress", c_uint32)),
    )


def validate(
    stream: Any,
    report: Callable[[Finding], object],
    level: _Level = "shape",
    stress: Stress = Stress.NONE,
) -> ArrayStream | DeviceArrayStream:
    """Wraps a stream of any library in the validation layer, which checks every call.

    `report` gets each finding, on the thread of the call that broke the rule; it must not use the
    stream. Schemas and batches report too, even after the stream's end, so `report` is kept until
    the process ends. 'protocol' checks the order of the calls, 'shape' also the structs, 'data'
    also the buffers, as `check` does. An exception from `report` goes to sys.unraisablehook.

    The first call loads libfletching: from the path in the environment variable FLETCHING_LIBRARY
    if it is set, otherwise by the library's name. Raises Error: ENOENT if the library is not found,
    ENOSYS if it lacks a function, EINVAL if its struct layouts differ or the level is unknown.
    """
    options = _options(level, stress)
    given = stream
    if not isinstance(given, ArrayStream | DeviceArrayStream):
        given = from_arrow(stream)
    if isinstance(given, DeviceArrayStream):
        device = from_capsule(given.__arrow_c_device_stream__(), abi.ArrowDeviceArrayStream)
        return DeviceArrayStream.from_arrow(
            _Produced("FletchingValidateDeviceStream", device, options, report)
        )
    if isinstance(given, ArrayStream):
        raw = from_capsule(given.__arrow_c_stream__(), abi.ArrowArrayStream)
        return ArrayStream.from_arrow(_Produced("FletchingValidateStream", raw, options, report))
    raise TypeError(f"validate: expected a stream, got {type(given).__name__}")


def validate_handler(
    handler: AsyncHandler,
    report: Callable[[Finding], object],
    level: _Level = "shape",
    stress: Stress = Stress.NONE,
) -> AsyncHandler:
    """Wraps the handler for the producer of an async stream, and checks every call of both sides.

    Takes the consumer's handler; releasing the result releases that handler. After an error,
    `handler` is unchanged. Otherwise behaves like `validate`.
    """
    options = _options(level, stress)
    address = c_void_p(handler.take())
    try:
        _wrap("FletchingValidateAsyncHandler", address, options, report)
    finally:
        handler._addresses.append(address.value or 0)
    return AsyncHandler(handler.take())


def report_live() -> int:
    """Reports each schema, batch, handler and task of validated streams that is not released yet.

    Returns their number. Call it when the consumer is done. Raises the same Errors as `validate`.
    """
    function = _find(_load(), "FletchingValidateLive")
    function.restype = ctypes.c_int64
    live: int = function()
    if live < 0:
        raise MemoryError
    return live


class _Produced:
    """Provides the validated stream in a capsule."""

    def __init__(
        self,
        name: str,
        raw: Any,
        options: _Options,
        report: Callable[[Finding], object],
    ) -> None:
        try:
            _wrap(name, raw, options, report)
        finally:
            self._capsule = to_capsule(raw)  # the capsule releases the stream after an error

    def __arrow_c_stream__(self, requested_schema: object = None) -> CapsuleType:
        return self._capsule

    __arrow_c_device_stream__ = __arrow_c_stream__


def _options(level: str, stress: Stress) -> _Options:
    """Loads the library first, so that an error leaves the stream or handler unchanged."""
    _load()
    if level not in _LEVELS:
        expected = ", ".join(map(repr, _LEVELS))
        raise Error(errno.EINVAL, f"validate: level: expected one of {expected}, got {level!r}")
    number = _LEVELS.index(level)
    return _Options(ctypes.sizeof(_Options), number, finding_report(), None, stress.value)


def _wrap(
    name: str,
    raw: Struct | c_void_p,
    options: _Options,
    report: Callable[[Finding], object],
) -> None:
    def add(*texts: bytes) -> None:
        report(Finding(*(text.decode(errors="replace") for text in texts)))

    options.context = id(add)
    _call(_load(), name, ctypes.byref(raw), ctypes.byref(options))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(add))  # kept until the process ends


@functools.cache  # exceptions are not cached: the next call retries
def _load() -> ctypes.CDLL:
    path = os.environ.get("FLETCHING_LIBRARY")
    names = {
        "win32": ("fletching.dll",),
        "darwin": ("libfletching.0.1.dylib", "libfletching.dylib"),
    }.get(sys.platform, ("libfletching.so.0.1", "libfletching.so"))
    reasons = []
    for name in (path,) if path else names:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
            continue
        _call(library, "FletchingCheckLayout", c_uint64(layout()))
        return library
    raise Error(
        errno.ENOENT,
        f"validate: cannot load libfletching: {'; '.join(reasons)}; hint: install it, add its "
        "folder to the library search path, or set FLETCHING_LIBRARY to its path",
    )


def _find(library: ctypes.CDLL, name: str) -> ctypes._NamedFuncPointer:
    try:
        return getattr(library, name)  # type: ignore[no-any-return]
    except AttributeError:
        text = f"validate: libfletching has no {name}; hint: install a newer version"
        raise Error(errno.ENOSYS, text) from None


def _call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    message = ctypes.create_string_buffer(_MESSAGE)
    code = _find(library, name)(*arguments, message)
    if code != 0:
        raise Error(code, f"validate: {message.value.decode(errors='replace')}")
