"""The hostile peer (tests/hostile/hostile.h), through ctypes."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_void_p
from typing import Any, NamedTuple, Self

import pytest

from capsules import capsule_of
from fletching import Error, abi
from libraries import declare, load
from producer import Message

SCHEMA, ARRAY, STREAM, DEVICE_STREAM, PRODUCER = 1, 2, 3, 4, 5
ARRAY_CONSUMER, STREAM_CONSUMER, HANDLER, TENSOR, VERSIONED_TENSOR = 6, 7, 8, 9, 10
ACCEPTED, REFUSED, REPORTED, TOLERATED, STALLED = 1, 2, 3, 4, 5

_library = load("libfletching_hostile.so")
_message = POINTER(Message)


def _catalogue(name: str, result: Any) -> Any:
    return declare(_library, f"FletchingHostileCase{name}", result, c_int32)


_count = declare(_library, "FletchingHostileCaseCount", c_int32)
_name, _party = _catalogue("Name", c_char_p), _catalogue("Party", c_int32)
_outcome, _code = _catalogue("Outcome", c_int32), _catalogue("Code", c_int32)


class Case(NamedTuple):
    name: str
    outcome: int
    code: int

    def check(self, error: BaseException | None) -> None:
        """Compares the result with the catalogue."""
        if self.outcome in (ACCEPTED, REFUSED, REPORTED):
            assert (error is None) == (self.outcome == ACCEPTED), repr(error)
        if error is None:
            return
        if self.outcome == REPORTED:
            code = errno.ENOMEM if isinstance(error, MemoryError) else getattr(error, "errno", 0)
            assert code == self.code
            if self.code == errno.ENOMEM:
                return
        assert isinstance(error, (Error, BufferError, TypeError)), repr(error)
        shown = str(error)
        assert 0 < len(shown) <= 64 * 1024
        assert not any((c < " " and c not in "\n\t") or c == "\x7f" for c in shown)


def cases(*parties: int) -> list[Case]:
    found = [
        Case(_name(i).decode(), _outcome(i), _code(i))
        for i in range(_count())
        if _party(i) in parties
    ]
    assert found
    return found


def each(*parties: int) -> pytest.MarkDecorator:
    """The test gets each case of the parties."""
    return pytest.mark.parametrize("case", cases(*parties), ids=lambda case: case.name)


def _run(function: Any, *arguments: Any) -> None:
    message = Message()
    code = function(*arguments, message)
    assert code == 0, message.text.decode("utf-8", "backslashreplace")


def _function(name: str, *arguments: Any) -> Callable[..., None]:
    function = declare(_library, f"FletchingHostile{name}", c_int, *arguments, _message)
    return lambda *given: _run(function, *given)


_schema, _device_array = POINTER(abi.ArrowSchema), POINTER(abi.ArrowDeviceArray)
_stream, _device_stream = POINTER(abi.ArrowArrayStream), POINTER(abi.ArrowDeviceArrayStream)
_export_schema = _function("ExportSchema", c_char_p, _schema)
_export_array = _function("ExportArray", c_char_p, _schema, _device_array)
_export_stream = _function("ExportStream", c_char_p, _stream)
_export_device_stream = _function("ExportDeviceStream", c_char_p, _device_stream)
_export_tensor = _function("ExportTensor", c_char_p, POINTER(c_void_p))
_export_legacy_tensor = _function("ExportLegacyTensor", c_char_p, POINTER(c_void_p))
_start_producer = _function("StartProducer", c_char_p, c_void_p)
_consume_array = _function("ConsumeArray", c_char_p, _device_array)
_consume_stream = _function("ConsumeStream", c_char_p, c_int64, _stream)
_consume_device_stream = _function("ConsumeDeviceStream", c_char_p, c_int64, _device_stream)
_open_handler = _function("OpenHandler", c_char_p, c_int64, POINTER(c_void_p))
finish = _function("Finish")


class Given:
    """An object with one protocol. At the end of a block it releases what was not consumed."""

    def __init__(self, method: str, *structs: Any) -> None:
        self._structs = structs
        capsules = tuple(capsule_of(struct) for struct in structs)
        result = capsules if len(capsules) > 1 else capsules[0]
        setattr(self, f"__arrow_c_{method}__", lambda *_, **__: result)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for struct in self._structs:
            abi.release(struct)


def schema_of(case: Case | str) -> abi.ArrowSchema:
    schema = abi.ArrowSchema()
    _export_schema((case if isinstance(case, str) else case.name).encode(), schema)
    return schema


def array_of(case: Case) -> tuple[abi.ArrowSchema, abi.ArrowDeviceArray]:
    schema, array = abi.ArrowSchema(), abi.ArrowDeviceArray()
    _export_array(case.name.encode(), schema, array)
    return schema, array


def stream_of(case: Case) -> abi.ArrowArrayStream:
    stream = abi.ArrowArrayStream()
    _export_stream(case.name.encode(), stream)
    return stream


def device_stream_of(case: Case) -> abi.ArrowDeviceArrayStream:
    stream = abi.ArrowDeviceArrayStream()
    _export_device_stream(case.name.encode(), stream)
    return stream


def tensor_of(case: Case, *, versioned: bool) -> int:
    out = c_void_p()
    (_export_tensor if versioned else _export_legacy_tensor)(case.name.encode(), byref(out))
    assert out.value
    return out.value


def start_producer(case: Case, handler: int) -> None:
    _start_producer(case.name.encode(), handler)


def open_handler(case: Case, batches: int) -> int:
    out = c_void_p()
    _open_handler(case.name.encode(), batches, byref(out))
    assert out.value
    return out.value


def consume_array(case: Case, array: abi.ArrowDeviceArray) -> None:
    _consume_array(case.name.encode(), array)


def consume_stream(case: Case, batches: int, stream: Any) -> None:
    is_device = isinstance(stream, abi.ArrowDeviceArrayStream)
    function = _consume_device_stream if is_device else _consume_stream
    function(case.name.encode(), batches, stream)


def raised_by(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except (Error, BufferError, TypeError, MemoryError) as error:
        return error.with_traceback(None)  # which would keep the objects of the call
    return None


@pytest.fixture
def account() -> Iterator[None]:
    """After a case nothing of the peer is left, and nothing was called that must not be."""
    yield
    finish()
