# SPDX-License-Identifier: Apache-2.0
"""The shared part of the callbacks of `fletching.abi`: NULL, exceptions and lifetime."""

from __future__ import annotations

import ctypes
import errno
import itertools
import logging
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from ._errno import errno_of
from ._structs import Struct

if TYPE_CHECKING:
    from _ctypes import CFuncPtr as _Function
else:
    _Function = ctypes.CFUNCTYPE(None).__base__

# The calling modes of ctypes: most callbacks run without the GIL. DLPack callbacks that use Python
# objects, or raise, run with it.
WITHOUT_GIL = ctypes.CFUNCTYPE(None)._flags_
WITH_GIL = ctypes.PYFUNCTYPE(None)._flags_

_log = logging.getLogger("fletching.abi")


class Callback(_Function):
    """A C callback: False if it is NULL, otherwise callable like a function.

    `ArrowSchemaRelease(function)` creates a callback that calls a Python function. It lives as long
    as the process, because C code may call it at any time, so create one per module function, not
    one per struct (`implement` does that). Exceptions never leave the callback: they are logged to
    "fletching.abi", and the caller gets the callback's specified failure value: an errno value, -1
    or NULL. The result None means success or NULL.

    `ArrowSchemaRelease()` is NULL. Calling it raises ValueError.
    """

    __slots__ = ()
    _flags_ = WITHOUT_GIL
    # For example, "ArrowSchema.release".
    name = ""
    # The caller's result if the function raises: an errno value, -1, NULL or none.
    failure = cast("Literal['errno', -1, 'NULL'] | None", None)

    def __new__(cls, function: Callable[..., object] | int | None = None) -> Self:
        if function is None:
            return super().__new__(cls)
        if not callable(function):
            return super().__new__(cls, function)
        callback = super().__new__(cls, _guarded(cls, function))
        _immortal.append(callback)
        # Never freed, because the interpreter's last collection may release structs.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(callback))
        return callback

    def __call__(self, *arguments: Any) -> Any:
        if not self:
            raise ValueError(f"{self.name}: NULL callback: expected a function, got NULL")
        return super().__call__(*arguments)


_immortal: list[Callback] = []


def _guarded(kind: type[Callback], function: Callable[..., object]) -> Callable[..., int | None]:
    """Wraps the function so that it never raises and returns a result that C can read."""

    def call(*arguments: Any) -> int | None:
        try:
            return _result(kind, function(*arguments))
        except BaseException as error:
            _report(kind, error)
            return _failure(kind, error)

    return call


def _result(kind: type[Callback], value: Any) -> int | None:
    if kind.failure is None:
        return None
    return operator.index(value) if value is not None else 0


def _failure(kind: type[Callback], error: BaseException) -> int | None:
    if kind.failure == "errno":
        return errno_of(error)
    return 0 if kind.failure == "NULL" else kind.failure


def _report(kind: type[Callback], error: BaseException) -> None:
    _log.error("%s: exception in a callback: %s", kind.name, describe(error), exc_info=error)


def describe(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__
    return as_utf8(text)


def as_utf8(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot encode, with text such as "\\udcff"."""
    return text.encode("utf-8", "backslashreplace").decode()


# --- Implementations -----------------------------------------------------------------------------

_RELEASES = ("release", "deleter")
_OPTIONAL = (*_RELEASES, "get_last_error")
_PRIVATE = ("private_data", "manager_ctx")


class _Implemented:
    """An implementing object, with its last error message."""

    __slots__ = ("error", "methods")

    def __init__(self, methods: object) -> None:
        self.methods = methods
        self.error: ctypes.Array[ctypes.c_char] | None = None


_implemented: dict[int, _Implemented] = {}
_numbers = itertools.count(1)
_trampolines: dict[type[Callback], Callback] = {}


def implement(struct: Struct, methods: object) -> None:
    """Fills the callbacks of a struct with the methods of an object.

    Each callback calls the method of its name with the struct and the other arguments. `methods` is
    found through a number in `private_data`, which moves with the struct. It lives until the struct
    is released, so keep data that the other fields point to in it. For a struct without a release
    callback, call `withdraw` at the end.

    `release` (or `deleter`) may be missing, and need not mark the struct as released. Without
    `get_last_error`, the struct returns the message of the exception that the last call raised.
    Exceptions become results as `Callback` describes.
    """
    kind = type(struct)
    callbacks = {name: type_ for name, type_ in _fields(kind) if issubclass(type_, Callback)}
    private = _private_field(kind)
    for name in callbacks:
        if name not in _OPTIONAL and not callable(getattr(methods, name, None)):
            got = type(methods).__name__
            raise TypeError(f"{kind.__name__}: no method {name}: expected one, got {got} without")
    number = next(_numbers)
    _implemented[number] = _Implemented(methods)
    setattr(struct, private, number)
    for name, type_ in callbacks.items():
        setattr(struct, name, _trampoline(type_, name, private))


def withdraw(struct: Struct) -> None:
    """Ends `implement` for a struct without a release callback. C must not call it afterwards."""
    _implemented.pop(getattr(struct, _private_field(type(struct))) or 0, None)


def _fields(kind: type[Struct]) -> list[tuple[str, type]]:
    return [(name, type_) for name, type_, *_ in kind._fields_]


def _private_field(kind: type[Struct]) -> str:
    for name, _ in _fields(kind):
        if name in _PRIVATE:
            return name
    raise TypeError(f"{kind.__name__}: no private_data: its callbacks are not of one object")


def _trampoline(kind: type[Callback], name: str, private: str) -> Callback:
    """Returns the shared callback of that type for all structs."""
    if kind not in _trampolines:
        make = {**dict.fromkeys(_RELEASES, _releasing), "get_last_error": _telling}
        _trampolines.setdefault(kind, kind(make.get(name, _calling)(kind, name, private)))
    return _trampolines[kind]


def _calling(kind: type[Callback], name: str, private: str) -> Callable[..., Any]:
    def call(pointer: Any, *arguments: Any) -> Any:
        implemented = _find(kind, getattr(pointer.contents, private))
        implemented.error = None
        try:
            return getattr(implemented.methods, name)(pointer.contents, *arguments)
        except Exception as error:
            implemented.error = _c_text(describe(error))
            if kind.failure == "errno" and hasattr(pointer.contents, "get_last_error"):
                return errno_of(error)  # the caller reads the text
            raise

    return call


def _telling(kind: type[Callback], name: str, private: str) -> Callable[..., Any]:
    def get_last_error(pointer: Any) -> int | None:
        implemented = _find(kind, getattr(pointer.contents, private))
        own = getattr(implemented.methods, name, None)
        if own is not None:
            return cast("int | None", own(pointer.contents))
        return None if implemented.error is None else ctypes.addressof(implemented.error)

    return get_last_error


def _releasing(kind: type[Callback], name: str, private: str) -> Callable[..., Any]:
    def release(pointer: Any) -> None:
        number = getattr(pointer.contents, private)
        implemented = _find(kind, number)
        del _implemented[number]
        if name == "release":  # a deleter may free the struct
            pointer.contents.release = kind()
        getattr(implemented.methods, name, lambda _: None)(pointer.contents)

    return release


def keeps_objects() -> bool:
    """Returns whether callbacks keep functions or methods of the user until the process ends."""
    return bool(_implemented) or len(_immortal) > len(_trampolines)


def _find(kind: type[Callback], number: int | None) -> _Implemented:
    found = _implemented.get(number or 0)
    if found is None:
        raise OSError(errno.EINVAL, f"{kind.name}: no implementation for number {number}")
    return found


def _c_text(text: str) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(text.encode("utf-8", "backslashreplace"))
