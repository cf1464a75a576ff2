"""Exceptions whose message, errno or name cannot be read, on their way to C."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pyarrow
import pytest

from capsules import ProducedOnDevice, struct_in
from fletching import (
    Array,
    ArrayStream,
    AsyncDeviceArrayStream,
    DeviceArray,
    Error,
    Schema,
    abi,
    from_arrow,
    from_cuda_array_interface,
    from_dlpack,
    register_waiter,
    send_async,
)
from fletching.abi import ArrowArrayStreamGetNext
from test_callbacks import called_by_c

BATCH = pyarrow.record_batch({"n": [1]})
SCHEMA = Schema.from_arrow(BATCH.schema)
DEVICE = 22  # no runtime supports it


PROTOCOLS: dict[str, Callable[[Any], object]] = {
    "__arrow_c_array__": from_arrow,
    "__arrow_c_stream__": from_arrow,
    "__dlpack_device__": from_dlpack,
    "__cuda_array_interface__": from_cuda_array_interface,
    "__cuda_stream__": DeviceArray.from_arrow(BATCH).wait_on,
    "ptr": DeviceArray.from_arrow(BATCH).wait_on,
}


class TextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class NumberError(Error):
    @property
    def errno(self) -> int:  # type: ignore[override]
        raise ValueError("no number")


ODD = [
    (ValueError("\udcff"), errno.EINVAL, r"^ValueError: \\udcff$"),
    (Error(errno.EPIPE, "\udcff"), errno.EPIPE, r"^\\udcff$"),
    (Error(errno.EPERM, "the smallest"), errno.EPERM, "^the smallest$"),
    (Error("no number", "text"), errno.EIO, "^text$"),
    (NotImplementedError("not here"), errno.ENOSYS, "^NotImplementedError: not here$"),
    (TextError(), errno.EIO, "^TextError$"),
    (OSError(0, "no failure"), errno.EIO, "no failure$"),
    (OSError(2**32, "large"), errno.EIO, "large$"),
    (OSError("no number", "text"), errno.EIO, "text$"),
    (NumberError(1, "text"), errno.EIO, ""),
]


@pytest.fixture(autouse=True)
def without_frames() -> Iterator[None]:
    """Removes the frames from this module's exceptions: they keep the tests' objects alive."""
    yield
    for error, *_ in ODD:
        error.__traceback__ = error.__context__ = None


each_odd = pytest.mark.parametrize(("error", "code", "text"), ODD)


def check(error: Error, code: int, text: str) -> None:
    assert error.errno == code
    assert re.search(text, error.strerror or "")


def raised_in_c(batches: Iterator[Any], expected: str) -> tuple[int, bool]:
    """Returns the errno value that C sees, and whether the message is as expected."""
    stream, array = abi.ArrowArrayStream(), abi.ArrowArray()
    capsule = ArrayStream.from_batches(SCHEMA, batches).__arrow_c_stream__()
    abi.move(struct_in(abi.ArrowArrayStream, capsule), stream)
    code = stream.get_next(stream, array)
    text = abi.text(stream.get_last_error(stream)) or b""
    abi.release(stream)
    return code, re.search(expected, text.decode()) is not None


@each_odd
def test_exception_in_batches(error: Exception, code: int, text: str) -> None:
    def batches() -> Iterator[Any]:
        raise error
        yield

    assert raised_in_c(batches(), text) == (code, True)
    with pytest.raises(type(error)) as raised:
        next(ArrayStream.from_batches(SCHEMA, batches()))
    assert raised.value is error


@each_odd
def test_exception_in_waiter(error: Exception, code: int, text: str) -> None:
    class Failing:
        def synchronize(self, event: int) -> None:
            raise error

        wait_on = ready = synchronize

    register_waiter(DEVICE, Failing())
    with pytest.raises(Error) as raised:
        DeviceArray.from_arrow(ProducedOnDevice(device_type=DEVICE, sync_event=1)).synchronize()
    assert raised.value.errno == code


@each_odd
def test_exception_in_async_iterable(error: Exception, code: int, text: str) -> None:
    async def batches() -> AsyncIterator[Any]:
        raise error
        yield

    async def receive() -> None:
        tasks: list[asyncio.Task[None]] = []
        stream = AsyncDeviceArrayStream.connect(
            lambda handler: tasks.append(
                asyncio.create_task(send_async(SCHEMA, 1, batches(), handler))
            )
        )
        with pytest.raises(Error) as raised:
            await anext(stream)
        check(raised.value, code, text)
        with pytest.raises(type(error)):
            await tasks[0]

    asyncio.run(asyncio.wait_for(receive(), 60))


@each_odd
def test_exception_in_callback(error: Exception, code: int, text: str) -> None:
    def fail(*_: object) -> int:
        raise error

    assert called_by_c(ArrowArrayStreamGetNext, ArrowArrayStreamGetNext(fail)) == code


def test_export_rejects_keyword_with_surrogates() -> None:
    method: Any = Array.from_arrow(BATCH).__arrow_c_device_array__
    with pytest.raises(NotImplementedError, match=r"expected None, got \\udcff"):
        method(**{"\udcff": 1})


def test_error_names_type_despite_metaclass() -> None:
    class WrongName(type):
        @property
        def __name__(cls) -> Any:  # type: ignore[override]
            return 5

    class Odd(metaclass=WrongName):
        pass

    class Producer:
        def __arrow_c_array__(self) -> object:
            return Odd()

    with pytest.raises(TypeError, match="expected a tuple of two, got Odd"):
        Array.from_arrow(Producer())


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_exception_in_property_is_passed_on(name: str, error: type[BaseException]) -> None:
    """The error must not be read as a missing attribute."""

    class Raising:
        def __getattr__(self, found: str) -> Any:
            if found == name:
                raise error
            raise AttributeError(found)

    with pytest.raises(error):
        PROTOCOLS[name](Raising())
