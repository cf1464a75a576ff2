"""Callbacks: NULL, raising, moved, with the GIL and without it."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reflection
from fletching import abi
from fletching._callbacks import _implemented
from fletching.abi import ArrowArrayStream, ArrowArrayStreamGetNext, ArrowSchema, ArrowSchemaRelease
from test_buffers import run

STRUCTS = reflection.structs()
CALLBACKS = [(s, name) for s, struct in STRUCTS.items() for name in reflection.callbacks(struct)]
WITH_GIL = {
    "DLPackExchangeAPIManagedTensorFromPyObjectNoSync",
    "DLPackExchangeAPIManagedTensorToPyObjectNoSync",
    "DLPackExchangeAPIDltensorFromPyObjectNoSync",
    "DLPackExchangeAPICurrentWorkStream",
}
PYTHON_API = ctypes.PYFUNCTYPE(None)._flags_

each_callback = pytest.mark.parametrize(("struct", "name"), CALLBACKS)


def callback_type(struct: str, name: str) -> Any:
    return reflection.callbacks(STRUCTS[struct])[name]


def arguments_of(ctype: Any) -> list[Any]:
    """Returns default arguments: NULL and 0."""
    return [argument() for argument in ctype._argtypes_]


def called_by_c(ctype: Any, callback: Any) -> Any:
    """Calls the callback as C does, by its address alone, and returns the result."""
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    plain = ctypes.PYFUNCTYPE(ctype._restype_, *ctype._argtypes_)
    return plain(address)(*arguments_of(ctype))


def raises(*_: object) -> None:
    raise RuntimeError("a bug")


def install(schema: ArrowSchema, callback: ArrowSchemaRelease) -> ArrowSchemaRelease:
    """mypy accepts the types of callbacks as annotations."""
    schema.release = callback
    return schema.release


def test_callback_types_are_annotations() -> None:
    hints = typing.get_type_hints(install)
    assert hints["callback"] is ArrowSchemaRelease
    assert type(install(ArrowSchema(), ArrowSchemaRelease())) is ArrowSchemaRelease


@pytest.mark.parametrize("name", STRUCTS)
def test_every_struct_has_type_hints(name: str) -> None:
    hints = typing.get_type_hints(STRUCTS[name])
    assert set(hints) == {field for field, _ in reflection.fields(STRUCTS[name])}
    for callback, ctype in reflection.callbacks(STRUCTS[name]).items():
        assert hints[callback] is ctype


def test_type_hints_of_pointers_are_pointer_types() -> None:
    hints = typing.get_type_hints(abi.ArrowArray)
    assert hints["dictionary"] is ctypes.POINTER(abi.ArrowArray)
    assert hints["children"] is ctypes.POINTER(ctypes.POINTER(abi.ArrowArray))


@each_callback
def test_only_dlpack_callbacks_keep_gil(struct: str, name: str) -> None:
    ctype = callback_type(struct, name)
    assert (ctype._flags_ == PYTHON_API) == (ctype.__name__ in WITH_GIL)


@pytest.mark.parametrize("name", sorted(WITH_GIL))
def test_exception_passes_through_gil_keeping_callback(name: str) -> None:
    """In a separate process: without the GIL this is a segmentation fault."""
    program = f"""
import ctypes
from fletching import abi
set_type_error = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, abi.{name})
try:
    set_type_error(*[argument() for argument in abi.{name}._argtypes_])
except TypeError as error:
    print(error)
"""
    command = [sys.executable, "-c", program]
    folder = str(Path(abi.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": folder}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "bad argument type for built-in operation\n"


@each_callback
def test_null_callback_raises(struct: str, name: str) -> None:
    callback = getattr(STRUCTS[struct](), name)
    assert not callback
    expected = rf"^{struct}\.{name}: NULL callback: expected a function, got NULL"
    with pytest.raises(ValueError, match=expected):
        callback(*arguments_of(callback_type(struct, name)))


@each_callback
def test_raising_callback_returns_failure(
    struct: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    ctype = callback_type(struct, name)
    result = called_by_c(ctype, ctype(raises))
    assert result == {"errno": errno.EIO, "-1": -1}.get(str(ctype.failure))
    (record,) = caplog.records
    assert record.getMessage() == f"{struct}.{name}: exception in a callback: RuntimeError: a bug"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), errno.ENOMEM),
        (OSError(errno.EPIPE, "broken"), errno.EPIPE),
        (OSError("no number"), errno.EIO),
        (OSError(-3, "negative"), errno.EIO),
        (ValueError(), errno.EINVAL),
        (NotImplementedError(), errno.ENOSYS),
        (SystemExit(), errno.EIO),
        (KeyboardInterrupt(), errno.EINTR),
    ],
)
def test_exception_determines_errno(error: BaseException, code: int) -> None:
    def fail(*_: object) -> int:
        raise error

    assert called_by_c(ArrowArrayStreamGetNext, ArrowArrayStreamGetNext(fail)) == code


@pytest.mark.parametrize(
    ("given", "seen"), [(None, 0), (0, 0), (errno.EAGAIN, errno.EAGAIN), ("text", errno.EIO)]
)
def test_callback_result_is_converted_to_number(given: object, seen: int) -> None:
    callback = ArrowArrayStreamGetNext(lambda *_: given)
    assert called_by_c(ArrowArrayStreamGetNext, callback) == seen


def test_callback_text_is_address_or_null() -> None:
    ctype = abi.ArrowArrayStreamGetLastError
    text = ctypes.create_string_buffer(b"words")
    assert called_by_c(ctype, ctype(lambda _: ctypes.addressof(text))) == ctypes.addressof(text)
    assert called_by_c(ctype, ctype(lambda _: None)) is None
    assert called_by_c(ctype, ctype(lambda _: "words")) is None


def test_callback_survives_move() -> None:
    """The callback still runs after its Python object and the source struct are deleted."""
    seen = []

    target = ArrowSchema()

    def produce() -> None:
        def released(pointer: Any) -> None:
            seen.append(ctypes.addressof(pointer.contents))
            pointer.contents.release = ArrowSchemaRelease()

        source = ArrowSchema()
        source.release = ArrowSchemaRelease(released)
        abi.move(source, target)
        assert abi.is_released(source)

    produce()
    gc.collect()
    keep = [ArrowSchemaRelease(lambda _: None) for _ in range(200)]  # would reuse freed memory
    target.release(target)
    assert len(keep) == 200
    assert seen == [ctypes.addressof(target)]
    assert abi.is_released(target)


def test_callback_rejects_misspelled_field() -> None:
    with pytest.raises(AttributeError):
        ArrowSchemaRelease().relese = 1  # type: ignore[attr-defined]


# --- Implementations -----------------------------------------------------------------------------


class Numbers:
    """Three batches, then an error."""

    def __init__(self) -> None:
        self.given = 0
        self.released = 0

    def get_schema(self, stream: ArrowArrayStream, out: Any) -> None:
        raise OSError(errno.ENOTSUP, "no schema")

    def get_next(self, stream: ArrowArrayStream, out: Any) -> None:
        self.given += 1
        if self.given > 3:
            raise LookupError("no batch")

    def release(self, stream: ArrowArrayStream) -> None:
        self.released += 1


@pytest.fixture
def numbers() -> Iterator[tuple[Numbers, ArrowArrayStream]]:
    stream, implementation = ArrowArrayStream(), Numbers()
    abi.implement(stream, implementation)
    yield implementation, stream
    abi.release(stream)
    assert implementation.released == 1


def last_error(stream: ArrowArrayStream) -> bytes | None:
    return abi.text(stream.get_last_error(stream))


def test_private_data_identifies_implementation(
    numbers: tuple[Numbers, ArrowArrayStream],
) -> None:
    implementation, stream = numbers
    other, moved = ArrowArrayStream(), ArrowArrayStream()
    abi.implement(other, Numbers())
    abi.move(stream, moved)
    abi.move(moved, stream)
    out = abi.ArrowArray()
    assert [stream.get_next(stream, out) for _ in range(4)] == [0, 0, 0, errno.EIO]
    assert last_error(stream) == b"LookupError: no batch"
    assert stream.get_schema(stream, ArrowSchema()) == errno.ENOTSUP
    assert last_error(stream) == b"OSError: [Errno 95] no schema"
    assert last_error(other) is None
    implementation.given = 0
    assert stream.get_next(stream, out) == 0
    assert last_error(stream) is None
    abi.release(other)


def test_implement_shares_trampolines() -> None:
    streams = [ArrowArrayStream() for _ in range(3)]
    for stream in streams:
        abi.implement(stream, Numbers())
    addresses = {ctypes.cast(stream.get_next, ctypes.c_void_p).value for stream in streams}
    assert len(addresses) == 1
    assert len({stream.private_data for stream in streams}) == 3
    for stream in streams:
        abi.release(stream)


def test_release_drops_implementation() -> None:
    stream, implementation = ArrowArrayStream(), Numbers()
    abi.implement(stream, implementation)
    before = sys.getrefcount(implementation)
    stream.release(stream)
    assert abi.is_released(stream)
    assert implementation.released == 1
    assert sys.getrefcount(implementation) == before - 1


def test_second_release_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    stream, implementation = ArrowArrayStream(), Numbers()
    abi.implement(stream, implementation)
    again = abi.ArrowArrayStreamRelease.from_buffer_copy(stream.release)
    number = stream.private_data
    abi.release(stream)
    stream.private_data = number
    again(stream)
    assert implementation.released == 1
    assert "ArrowArrayStream.release: no implementation for number" in caplog.text


def test_unknown_private_data_returns_einval() -> None:
    stream = ArrowArrayStream()
    abi.implement(stream, Numbers())
    number, stream.private_data = stream.private_data, 12345678
    assert stream.get_next(stream, abi.ArrowArray()) == errno.EINVAL
    assert last_error(stream) is None
    stream.private_data = number
    abi.release(stream)


def test_withdraw_struct_without_release() -> None:
    class Demand:
        requested = 0

        def request(self, producer: abi.ArrowAsyncProducer, n: int) -> None:
            self.requested += n

        def cancel(self, producer: abi.ArrowAsyncProducer) -> None: ...

    producer, demand = abi.ArrowAsyncProducer(), Demand()
    abi.implement(producer, demand)
    producer.request(producer, 2**33 + 1)
    assert demand.requested == 2**33 + 1
    abi.withdraw(producer)
    producer.request(producer, 1)
    assert demand.requested == 2**33 + 1
    assert sys.getrefcount(demand) == 2


def test_implement_rejects_missing_method() -> None:
    stream, before = ArrowArrayStream(), set(_implemented)
    with pytest.raises(TypeError, match="ArrowArrayStream: no method get_schema"):
        abi.implement(stream, object())
    assert abi.is_released(stream)
    assert set(_implemented) <= before  # threads of earlier tests may end meanwhile


def test_implement_rejects_function_table() -> None:
    with pytest.raises(TypeError, match="DLPackExchangeAPI: no private_data"):
        abi.implement(abi.DLPackExchangeAPI(), object())


def test_deleter_may_free_struct() -> None:
    class Tensor:
        deleted = 0

        def deleter(self, tensor: abi.DLManagedTensor) -> None:
            self.deleted += 1
            ctypes.memset(ctypes.byref(tensor), 0xFF, ctypes.sizeof(tensor))

    struct, tensor = abi.DLManagedTensor(), Tensor()
    abi.implement(struct, tensor)
    abi.release(struct)
    assert tensor.deleted == 1
    assert struct.manager_ctx == ctypes.c_size_t(-1).value  # not written after the release


def test_immortal_callback_objects_are_not_reported_as_leaks() -> None:
    done = run(
        """
    from fletching import abi, from_buffer

    def function_of(array):
        return lambda pointer: len(array)

    abi.ArrowArrayRelease(function_of(from_buffer(b"abc")))
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
