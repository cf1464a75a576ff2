"""Plays the conformance suite from Python, through libfletching_validate. Needs only the standard
library."""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

from .python_capsules import FindingError

RESULTS = 3  # file descriptor of the lines for fletching-validate

_FINDING = ("rule", "severity", "party", "path", "message", "history")
_RESULT = ("group", "name", "verdict", "answer", "rule", "message")


class _Finding(ctypes.Structure):
    _fields_ = [(name, c_char_p) for name in _FINDING]


class _Result(ctypes.Structure):
    _fields_ = [(name, c_char_p) for name in _RESULT]


_Report = CFUNCTYPE(None, c_void_p, POINTER(_Result))
_Begin = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)
_Find = CFUNCTYPE(None, c_void_p, POINTER(_Finding))
_Call = CFUNCTYPE(None, c_void_p, c_char_p)


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("group", c_char_p),
        ("case_name", c_char_p),
        ("report", _Report),
        ("context", c_void_p),
        ("begin", _Begin),
        ("finding", _Find),
        ("call", _Call),
    ]


def fields(struct: Any, names: Any) -> Any:
    return {name: (getattr(struct, name) or b"").decode(errors="replace") for name in names}


class Host:
    """Writes the lines, and leaves out the cases that an earlier process has played."""

    def __init__(self, target: Any, pattern: Any, skipped: Any) -> None:
        self.target: dict[str, Any] = target
        self.pattern: str = pattern
        self.skipped: int = skipped
        self.name = target["python"]
        self.suite = ctypes.CDLL(target["library"])

    def write(self, **line: Any) -> None:
        os.write(RESULTS, json.dumps(line).encode() + b"\n")

    def begins(self, group: Any, name: Any) -> bool:
        if name in self.target["skip"]:
            return False
        self.skipped -= 1
        if self.skipped >= 0:
            return False
        self.write(begin=f"{group}/{name}")
        return True

    def call(self, text: Any) -> None:
        self.write(call=text)

    def raised(self, method: str, error: BaseException, party: str) -> int:
        """Returns the errno value of an exception. `except Exception` does not catch a Rust panic,
        so that has a finding."""
        self.call(f"{method} raised {type(error).__name__}: {error}".lstrip())
        if not isinstance(error, Exception):
            text = f"{method} raised {type(error).__name__}: expected a subclass of Exception"
            found = FindingError("check.exception", text.lstrip(), "warning", party)
            self.write(finding=found.line)
        return errno_of(error)

    def is_selected(self, name: str) -> bool:
        if not self.pattern:
            return True
        if self.pattern.endswith("*"):
            return name.startswith(self.pattern[:-1])
        return name == self.pattern

    def play(self, group: Any, name: Any, body: Any) -> None:
        """Plays a case of this file. `body` raises FindingError."""
        if not self.is_selected(name) or not self.begins(group, name):
            return
        result = {"group": group, "name": name, "answer": "", "rule": "", "message": ""}
        try:
            body()
            verdict = "right"
        except FindingError as found:
            self.write(finding=found.line)
            verdict = "wrong" if found.line["severity"] != "note" else "right"
        except BaseException as error:
            text = f"expected no exception, got {type(error).__name__}: {error}"
            self.write(finding=FindingError("check.exception", text).line)
            verdict = "wrong"
        self.write(subject=self.name, verdict=verdict, **result)

    def play_role(self, role: Any, function: Any) -> None:
        """Plays a C function of the role."""
        options = _Options(
            ctypes.sizeof(_Options),
            None,
            self.pattern.encode() if self.pattern else None,
            _Report(lambda _, r: self.write(subject=self.name, **fields(r.contents, _RESULT))),
            None,
            _Begin(lambda _, group, name: not self.begins(group.decode(), name.decode())),
            _Find(lambda _, f: self.write(finding=fields(f.contents, _FINDING))),
            _Call(lambda _, text: self.call(text.decode(errors="replace"))),
        )
        message = ctypes.create_string_buffer(1024)
        code = self.suite.FletchingConformanceRunFunction(
            role.encode(), function, self.target["level"], ctypes.byref(options), None, message
        )
        # A pattern may select no case of this role.
        if code != 0 and not self.pattern:
            self.write(error=f"{self.name}: {message.value.decode(errors='replace')}")


class _Names(dict[str, Any]):
    """The names of a module, which may define some of them on first use (PEP 562)."""

    def __init__(self, module: Any) -> None:
        super().__init__(vars(module))
        self._module = module

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None


def evaluate(text: Any) -> Any:
    """Returns the value of `module:expression`, whose names are those of the module."""
    module, _, expression = text.partition(":")
    return eval(expression, _Names(importlib.import_module(module)))


def errno_of(error: Any) -> int:
    if isinstance(error, (NotImplementedError, TypeError, BufferError)):
        return errno.ENOTSUP
    return error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
