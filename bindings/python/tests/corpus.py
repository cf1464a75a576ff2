"""The cases of the corpus (tests/corpus/corpus.h), through ctypes."""

from __future__ import annotations

import json
from ctypes import POINTER, c_char_p, c_int, c_int32, c_void_p
from typing import Any, NamedTuple

import pytest

from capsules import capsule_at
from fletching import abi
from libraries import declare, load
from producer import Message

ARRAY, TENSOR, LEGACY_TENSOR = 2, 4, 5
ACCEPT = 1

_library = load("libfletching_corpus.so")
_message = POINTER(Message)


def _of_case(name: str, result: Any, *arguments: Any) -> Any:
    return declare(_library, f"FletchingCorpus{name}", result, c_int32, *arguments)


_count = declare(_library, "FletchingCorpusCount", c_int32)
_name, _kind = _of_case("Name", c_char_p), _of_case("Kind", c_int32)
_verdict = _of_case("Verdict", c_int32)
_text, _exception = _of_case("Text", c_char_p, c_char_p), _of_case("Exception", c_char_p, c_char_p)


class Case(NamedTuple):
    name: str
    number: int
    kind: int

    @property
    def accepted(self) -> bool:
        return bool(_verdict(self.number) == ACCEPT)

    @property
    def rule(self) -> str:
        """The rule that a rejected case breaks; empty if the case names none."""
        return str((_text(self.number, b"rule") or b"").decode())

    @property
    def values(self) -> Any:
        """The expected values, or None."""
        text = _text(self.number, b"values")
        return None if text is None else json.loads(text)

    def exception(self, library: str) -> str | None:
        """Returns why the library's answer differs from the verdict."""
        reason = _exception(self.number, library.encode())
        return None if reason is None else str(reason.decode())


def each(*kinds: int) -> pytest.MarkDecorator:
    """Parametrizes a test with each case of the kinds."""
    found = [Case(_name(i).decode(), i, _kind(i)) for i in range(_count()) if _kind(i) in kinds]
    assert found
    return pytest.mark.parametrize("case", found, ids=lambda case: case.name)


def _run(function: str, *arguments: Any) -> None:
    kinds = [POINTER(type(each)) if not isinstance(each, bytes) else c_char_p for each in arguments]
    declared = declare(_library, f"FletchingCorpus{function}", c_int, *kinds, _message)
    message = Message()
    code = declared(*arguments, message)
    assert code == 0, message.text.decode("utf-8", "backslashreplace")


def schema_of(case: Case) -> abi.ArrowSchema:
    schema = abi.ArrowSchema()
    _run("ExportSchema", case.name.encode(), schema)
    return schema


def array_of(case: Case) -> abi.ArrowDeviceArray:
    array = abi.ArrowDeviceArray()
    _run("ExportArray", case.name.encode(), array)
    return array


def tensor_of(case: Case) -> Any:
    """Returns a capsule without a destructor."""
    out = c_void_p()
    if case.kind == TENSOR:
        _run("ExportTensor", case.name.encode(), out)
        return capsule_at(out.value or 0, b"dltensor_versioned")
    _run("ExportLegacyTensor", case.name.encode(), out)
    return capsule_at(out.value or 0, b"dltensor")


def finish() -> None:
    """Checks that each export was released once."""
    _run("Finish")
