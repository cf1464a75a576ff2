"""The hostile peer (tests/hostile/hostile.h), through ctypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_int, c_int32, c_void_p
from typing import Any, NamedTuple

import pytest

from fletching import Error, abi
from libraries import declare, load
from producer import Message

SCHEMA, ARRAY, PRODUCER = 1, 2, 5
REFUSED = 2

_library = load("libfletching_hostile.so")
_message = POINTER(Message)


def _catalogue(name: str, result: Any) -> Any:
    return declare(_library, f"FletchingHostileCase{name}", result, c_int32)


_count = declare(_library, "FletchingHostileCaseCount", c_int32)
_name, _party = _catalogue("Name", c_char_p), _catalogue("Party", c_int32)
_outcome = _catalogue("Outcome", c_int32)


class Case(NamedTuple):
    name: str
    outcome: int


def cases(*parties: int) -> list[Case]:
    found = [Case(_name(i).decode(), _outcome(i)) for i in range(_count()) if _party(i) in parties]
    assert found
    return found


def each(*parties: int) -> pytest.MarkDecorator:
    """Parametrizes a test with each case of the parties."""
    return pytest.mark.parametrize("case", cases(*parties), ids=lambda case: case.name)


def _run(function: Any, *arguments: Any) -> None:
    message = Message()
    code = function(*arguments, message)
    assert code == 0, message.text.decode("utf-8", "backslashreplace")


def _function(name: str, *arguments: Any) -> Callable[..., None]:
    function = declare(_library, f"FletchingHostile{name}", c_int, *arguments, _message)
    return lambda *given: _run(function, *given)


_schema, _device_array = POINTER(abi.ArrowSchema), POINTER(abi.ArrowDeviceArray)
_export_schema = _function("ExportSchema", c_char_p, _schema)
_export_array = _function("ExportArray", c_char_p, _schema, _device_array)
_start_producer = _function("StartProducer", c_char_p, c_void_p)
finish = _function("Finish")


def schema_of(name: str) -> abi.ArrowSchema:
    schema = abi.ArrowSchema()
    _export_schema(name.encode(), schema)
    return schema


def array_of(name: str) -> tuple[abi.ArrowSchema, abi.ArrowDeviceArray]:
    schema, array = abi.ArrowSchema(), abi.ArrowDeviceArray()
    _export_array(name.encode(), schema, array)
    return schema, array


def start_producer(name: str, handler: int) -> None:
    _start_producer(name.encode(), handler)


def raised_by(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except (Error, BufferError, TypeError, MemoryError) as error:
        return error.with_traceback(None)  # which keeps the call's objects alive
    return None


@pytest.fixture
def account() -> Iterator[None]:
    """Checks after a case that all of the peer's structs are released, without a forbidden call."""
    yield
    finish()
