"""The package as two subjects of the conformance suite (tests/conformance): `python` reads schemas
and exports the imported objects, `python-others` uses the other imports and exports."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int32, c_int64, c_uint32, c_void_p
from typing import Any, Self, TypeVar

from capsules import GivenStructs, capsule_at, name_of, struct_in, take_tensor
from fletching import (
    Array,
    ArrayStream,
    AsyncDeviceArrayStream,
    AsyncHandler,
    DeviceArray,
    DeviceArrayStream,
    Error,
    Schema,
    VulkanContext,
    abi,
    from_dlpack,
    make_schema,
    register_waiter,
    send_async,
)
from fletching._errno import errno_of
from libraries import declare, load
from played_streams import ConsumerTable, Notify, PlayedConsumer, PlayedProducer, ProducerTable
from played_streams import hand_out as hand_out_table
from producer import Message

CPU = 1
CHECKS_SCHEMAS = 1
T = TypeVar("T")

# --- The table of C functions --------------------------------------------------------------------

_schema, _array = POINTER(abi.ArrowSchema), POINTER(abi.ArrowDeviceArray)
_stream, _device_stream = POINTER(abi.ArrowArrayStream), POINTER(abi.ArrowDeviceArrayStream)
_connect = CFUNCTYPE(c_int, c_void_p, c_void_p)
_event = (c_void_p, c_void_p, c_int64)


class _Waiter(ctypes.Structure):
    """The C struct FletchingWaiter."""

    _fields_ = (
        ("synchronize", CFUNCTYPE(c_int, *_event, POINTER(Message))),
        ("wait_on", CFUNCTYPE(c_int, *_event, c_void_p, POINTER(Message))),
        ("ready", CFUNCTYPE(c_int, *_event, POINTER(c_int), POINTER(Message))),
        ("context", c_void_p),
    )


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "schema": (_schema, _schema),
    "array": (_schema, _array, _schema, _array),
    "child": (_schema, _array, c_int64, _array),
    "stream": (_stream, _stream),
    "device_stream": (_device_stream, _device_stream),
    "tensor": (c_void_p, POINTER(c_void_p)),
    "legacy_tensor": (c_void_p, POINTER(c_void_p)),
    "receive": (_connect, c_void_p, _device_stream),
    "send": (_device_stream, c_void_p),
    "synchronize": (_array,),
    "is_ready": (_array, POINTER(c_int32)),
    "wait_on": (_array, c_void_p),
    "export_with_event": (_array, c_void_p),
    "release_after": (_array, c_void_p),
    "use_vulkan": (c_void_p, c_void_p, c_uint32, c_void_p),
    "register_waiter": (c_int32, POINTER(_Waiter)),
    "producer": (c_void_p, POINTER(ProducerTable)),
    "consumer": (Notify, c_void_p, POINTER(ConsumerTable)),
}
_TYPES = {
    name: CFUNCTYPE(c_int, c_void_p, *arguments, POINTER(Message))
    for name, arguments in ARGUMENTS.items()
}


class _Table(ctypes.Structure):
    """The C struct FletchingSubject."""

    _fields_ = (
        *(("size", ctypes.c_size_t), ("name", c_char_p), ("context", c_void_p)),
        ("promises", c_uint32),
        *_TYPES.items(),
    )


def _guarded(function: Callable[..., None]) -> Callable[..., int]:
    """Wraps a function for C: an exception becomes its errno value and its message."""

    def call(_: object, *arguments: Any) -> int:
        code, text = 0, ""
        try:
            function(*arguments[:-1])
        except BaseException as error:
            code = errno_of(error)
            text = error.strerror or "" if isinstance(error, Error) else str(error)
        cut = text.encode("utf-8", "backslashreplace")[: ctypes.sizeof(Message) - 1]
        arguments[-1].contents.text = cut.decode(errors="ignore").encode()
        return code

    return call


class Subject:
    """A subject whose table contains the methods of an object."""

    def __init__(self, name: str, methods: object, promises: int = 0) -> None:
        self.name = name
        self.table = _Table(ctypes.sizeof(_Table), name.encode(), None, promises)
        for function, kind in _TYPES.items():
            if method := getattr(methods, function, None):
                setattr(self.table, function, kind(_guarded(method)))


# --- The subjects --------------------------------------------------------------------------------


def read(schema: Schema) -> None:
    """Reads every property. The package does not check the meaning of a format."""
    _ = schema.format, schema.name, schema.flags, schema.nullable, schema.type, repr(schema)
    _ = dict(schema.metadata)
    for child in (*schema.children, *([schema.dictionary] if schema.dictionary else [])):
        read(child)


def copy_of(schema: Schema) -> Schema:
    return make_schema(
        *(schema.format, schema.name),
        nullable=schema.nullable,
        metadata=schema.metadata,
        children=map(copy_of, schema.children),
        dictionary=copy_of(schema.dictionary) if schema.dictionary else None,
    )


def hand_out(capsule: object, out: Any) -> None:
    abi.move(struct_in(type(out.contents), capsule), out.contents)


def hand_back(array: DeviceArray, out: Any) -> None:
    hand_out(array.__arrow_c_device_array__()[1], out)


class Views:
    """Exports the imported object. Streams pass through an iterator of the package."""

    window = 2

    def schema(self, given: Any, out: Any) -> None:
        schema = Schema.from_arrow(GivenStructs("schema", given.contents))
        read(schema)
        hand_out(schema.__arrow_c_schema__(), out)

    def array(self, schema: Any, array: Any, out_schema: Any, out: Any) -> None:
        given = GivenStructs("device_array", schema.contents, array.contents)
        schema_capsule, array_capsule = DeviceArray.from_arrow(given).__arrow_c_device_array__()
        hand_out(schema_capsule, out_schema)
        hand_out(array_capsule, out)

    def child(self, schema: Any, array: Any, index: int, out: Any) -> None:
        given = GivenStructs("device_array", schema.contents, array.contents)
        column = DeviceArray.from_arrow(given).column(_from_the_front(index))
        hand_out(column.__arrow_c_device_array__()[1], out)

    def stream(self, given: Any, out: Any) -> None:
        stream = ArrayStream.from_arrow(GivenStructs("stream", given.contents))
        through = ArrayStream.from_batches(stream.schema, stream)
        hand_out(through.__arrow_c_stream__(), out)

    def device_stream(self, given: Any, out: Any) -> None:
        stream = DeviceArrayStream.from_arrow(GivenStructs("device_stream", given.contents))
        through = DeviceArrayStream.from_batches(stream.schema, stream.device_type, stream)
        hand_out(through.__arrow_c_device_stream__(), out)

    def tensor(self, given: int, out: Any) -> None:
        with Tensor(given, versioned=True) as tensor:
            array = from_dlpack(tensor)
        out[0] = take_tensor(array.__dlpack__(max_version=(1, 3)))

    def legacy_tensor(self, given: int, out: Any) -> None:
        with Tensor(given, versioned=False) as tensor:
            array = from_dlpack(tensor)
        if array.device_type == CPU:  # a copy, because the memory is not known to be writable
            out[0] = take_tensor(array.__dlpack__())
        else:
            out[0] = _AsLegacy(take_tensor(array.__dlpack__(max_version=(1, 3)))).address

    def receive(self, connect: Any, context: int | None, out: Any) -> None:
        def start(handler: AsyncHandler) -> None:
            address = handler.take()
            if code := connect(context, address):
                abi.release(abi.ArrowAsyncDeviceStreamHandler.from_address(address))
                raise Error(code, "no producer has taken the handler")

        async def open_stream() -> AsyncDeviceArrayStream:
            return AsyncDeviceArrayStream.connect(start, self.window)

        stream = _consumers.run(open_stream())
        try:
            schema = _consumers.run(stream.schema())
            through = DeviceArrayStream.from_batches(schema, stream.device_type, _received(stream))
            hand_out(through.__arrow_c_device_stream__(), out)
        except BaseException:
            _close(stream)
            raise

    def send(self, given: Any, handler: int) -> None:
        stream = DeviceArrayStream.from_arrow(GivenStructs("device_stream", given.contents))
        schema = copy_of(stream.schema)  # a copy, because the producer outlives the handler
        _producers.run(_start_sending(schema, stream, handler))

    def imported(self, array: Any) -> DeviceArray:
        """Imports an array without a schema by adding one; the values are not read."""
        schema = make_schema("n").__arrow_c_schema__()
        given = GivenStructs("device_array", struct_in(abi.ArrowSchema, schema), array.contents)
        return DeviceArray.from_arrow(given)

    def synchronize(self, array: Any) -> None:
        imported = self.imported(array)
        self.waits_for(imported).synchronize(imported)
        hand_back(imported, array)

    def is_ready(self, array: Any, ready: Any) -> None:
        imported = self.imported(array)
        ready[0] = self.waits_for(imported).ready(imported)
        hand_back(imported, array)

    def wait_on(self, array: Any, stream: int | None) -> None:
        imported = self.imported(array)
        self.waits_for(imported).wait_on(imported, stream or 0)
        hand_back(imported, array)

    def export_with_event(self, array: Any, stream: int | None) -> None:
        hand_back(self.imported(array).export_with_event(stream or 0), array)

    def release_after(self, array: Any, stream: int | None) -> None:
        self.imported(array).release_after(stream or 0)

    def waits_for(self, array: DeviceArray) -> Any:
        """Returns the class or object whose wait functions take the array."""
        return self.vulkan if array.device_type == abi.ARROW_DEVICE_VULKAN else DeviceArray

    def use_vulkan(self, device: int, queue: int, set_stages: int, get_address: int) -> None:
        self.vulkan = VulkanContext(
            device=device,
            producer_queue=queue,
            queue=queue,
            set_stages=set_stages,
            get_device_proc_addr=get_address,
        )

    def register_waiter(self, device_type: int, waiter: Any) -> None:
        register_waiter(device_type, CWaiter(waiter.contents))

    def producer(self, handler: int, out: Any) -> None:
        hand_out_table(PlayedProducer(handler), out.contents)

    def consumer(self, notify: Any, context: int | None, out: Any) -> None:
        consumer = PlayedConsumer(notify, context)
        out.contents.handler = consumer.handler
        hand_out_table(consumer, out.contents)


class Others(Views):
    """Uses the other APIs: CPU structs, column names, generators."""

    window = 16

    def schema(self, given: Any, out: Any) -> None:
        hand_out(
            Schema.from_arrow(GivenStructs("schema", given.contents)).__arrow_c_schema__(), out
        )

    def array(self, schema: Any, array: Any, out_schema: Any, out: Any) -> None:
        given = array.contents
        if given.device_type != CPU or given.sync_event:
            return super().array(schema, array, out_schema, out)
        imported = Array.from_arrow(GivenStructs("array", schema.contents, given.array))
        schema_capsule, array_capsule = imported.__arrow_c_array__()
        hand_out(schema_capsule, out_schema)
        abi.move(struct_in(abi.ArrowArray, array_capsule), out.contents.array)
        out.contents.device_type, out.contents.device_id = CPU, given.device_id
        return None

    def child(self, schema: Any, array: Any, index: int, out: Any) -> None:
        given = GivenStructs("device_array", schema.contents, array.contents)
        imported = Array.from_arrow(given)
        column = imported.column(imported.schema[_from_the_front(index)].name)
        del imported
        hand_out(column.__arrow_c_device_array__()[1], out)

    def stream(self, given: Any, out: Any) -> None:
        stream = DeviceArrayStream.from_arrow(
            ArrayStream.from_arrow(GivenStructs("stream", given.contents))
        )
        batches = (batch for batch in stream)
        through = DeviceArrayStream.from_batches(stream.schema, CPU, batches)
        hand_out(through.__arrow_c_stream__(), out)

    def device_stream(self, given: Any, out: Any) -> None:
        if given.contents.device_type != CPU:
            return super().device_stream(given, out)
        stream = ArrayStream.from_arrow(GivenStructs("device_stream", given.contents))
        through = ArrayStream.from_batches(stream.schema, (batch for batch in stream))
        hand_out(through.__arrow_c_device_stream__(), out)
        return None

    def imported(self, array: Any) -> DeviceArray:
        return DeviceArray.from_arrow(super().imported(array))  # the export has the event


class CWaiter:
    """A C waiter for Python. It stays registered, and rejects the events of other tests."""

    is_playing = False

    def __init__(self, waiter: _Waiter) -> None:
        self._waiter: Any = waiter

    def _call(self, name: str, event: int, *more: Any) -> None:
        if not CWaiter.is_playing:
            raise OSError(errno.ENOTSUP, "ext_dev has no waiter outside of the suite")
        message = Message()
        code = getattr(self._waiter, name)(self._waiter.context, event, 0, *more, message)
        if code != 0:
            raise OSError(code, message.text.decode(errors="replace"))

    def synchronize(self, event: int) -> None:
        self._call("synchronize", event)

    def wait_on(self, event: int, stream: int) -> None:
        self._call("wait_on", event, stream)

    def ready(self, event: int) -> bool:
        ready = c_int()
        self._call("ready", event, ready)
        return bool(ready.value)


def _from_the_front(index: int) -> int:
    if index < 0:  # in Python a negative index counts from the end
        raise IndexError(f"child: expected an index from 0, got {index}")
    return index


class Tensor:
    """A DLPack exporter that deletes an unconsumed tensor on exit."""

    def __init__(self, address: int, *, versioned: bool) -> None:
        self._kind = abi.DLManagedTensorVersioned if versioned else abi.DLManagedTensor
        self._name = b"dltensor_versioned" if versioned else b"dltensor"
        self._struct: Any = self._kind.from_address(address)
        self._capsule = capsule_at(address, self._name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if name_of(self._capsule) == self._name:
            abi.release(self._struct)

    def __dlpack__(self, **_: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._struct.dl_tensor.device
        return device.device_type, device.device_id


class _AsLegacy:
    """A tensor from before DLPack 1.0, on top of a 1.3 tensor."""

    def __init__(self, address: int) -> None:
        self._inner: Any = abi.DLManagedTensorVersioned.from_address(address)
        self._struct = abi.DLManagedTensor(dl_tensor=self._inner.dl_tensor)
        self.address = ctypes.addressof(self._struct)
        abi.implement(self._struct, self)  # keeps this object alive

    def deleter(self, _: object) -> None:
        abi.release(self._inner)


# --- Async streams -------------------------------------------------------------------------------


class _Loop:
    """An event loop on a thread that lives as long as the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


# Two, because a consumer starts its producer inside a call.
_consumers, _producers = _Loop(), _Loop()
_tasks: set[asyncio.Task[None]] = set()
_Release = CFUNCTYPE(None, c_void_p)
_kept: list[Any] = []


def _received(stream: AsyncDeviceArrayStream) -> Iterator[DeviceArray]:
    try:
        while (batch := _consumers.run(_next(stream))) is not None:
            yield batch
    finally:
        _close(stream)


async def _next(stream: AsyncDeviceArrayStream) -> DeviceArray | None:
    return await anext(stream, None)


def _close(stream: AsyncDeviceArrayStream) -> None:
    stream.cancel()
    _producers.run(_finish_sending())


class _Batches:
    """The stream as an async iterator. `hold` delays the handler's release until the stream is
    closed.
    """

    def __init__(self, stream: DeviceArrayStream) -> None:
        self._stream = stream
        self._closed = threading.Event()
        self._has_begun = False

    def hold(self, handler: abi.ArrowAsyncDeviceStreamHandler) -> None:
        if not handler.release:
            return
        kind = type(handler.release)
        release = kind(ctypes.cast(handler.release, c_void_p).value)
        thread = threading.get_ident()

        def held(address: int) -> None:
            if threading.get_ident() != thread:  # otherwise the producer has not started
                self._closed.wait()
            release(abi.ArrowAsyncDeviceStreamHandler.from_address(address))

        _kept.append(_Release(held))
        handler.release = kind(ctypes.cast(_kept[-1], c_void_p).value)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> DeviceArray:
        if not self._has_begun:  # so that the first step only starts the producer
            self._has_begun = True
            await asyncio.sleep(0)
        try:
            return next(self._stream)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._stream.close()
        del self._stream  # the stream keeps the schema
        self._closed.set()


async def _start_sending(schema: Schema, stream: DeviceArrayStream, handler: int) -> None:
    """Starts sending, and raises the error of the producer's first step."""
    batches = _Batches(stream)
    batches.hold(abi.ArrowAsyncDeviceStreamHandler.from_address(handler))
    task = asyncio.ensure_future(send_async(schema, stream.device_type, batches, handler))
    _tasks.add(task)
    task.add_done_callback(_forget)
    await asyncio.sleep(0)
    if task.done():
        await batches.aclose()
        try:
            task.result()
        finally:
            del task  # its exception keeps this frame


def _forget(task: asyncio.Task[None]) -> None:
    _tasks.discard(task)
    task.exception()  # the consumer reports it


async def _finish_sending() -> None:
    while _tasks:
        await asyncio.wait(_tasks)


SUBJECTS = [Subject("python", Views(), CHECKS_SCHEMAS), Subject("python-others", Others())]

# --- The run -------------------------------------------------------------------------------------


_FIELDS = ("group", "name", "verdict", "answer", "rule", "message")


class _Result(ctypes.Structure):
    """The C struct FletchingConformanceResult."""

    _fields_ = tuple((name, c_char_p) for name in _FIELDS)


_Report = CFUNCTYPE(None, c_void_p, POINTER(_Result))
_Begin = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)


class _Options(ctypes.Structure):
    """The C struct FletchingConformanceOptions."""

    _fields_ = (
        *(("size", ctypes.c_size_t), ("group", c_char_p), ("case_name", c_char_p)),
        *(("report", _Report), ("context", c_void_p), ("begin", _Begin)),
    )


_library = load("libfletching_conformance.so")
_group = declare(_library, "FletchingConformanceGroup", c_char_p, c_int32)
_run = declare(
    _library,
    "FletchingConformanceRun",
    c_int,
    *(POINTER(_Table), POINTER(_Options), POINTER(c_int64), POINTER(Message)),
)


def groups() -> list[str]:
    return [name.decode() for name in iter(map(_group, itertools.count()).__next__, None)]


def play(subject: Subject, group: str, case: str | None = None) -> list[tuple[str, str]]:
    """Returns the verdict of each case, with the message of a wrong one. `case` is a name, or a
    prefix followed by a star."""
    results: list[tuple[str, str]] = []

    def report(result: dict[str, str]) -> None:
        text = "{group} {name}: {answer}: {message} {rule}".format_map(result)
        results.append((result["verdict"], text))

    CWaiter.is_playing = True
    run(subject, group, case, report)
    CWaiter.is_playing = False
    return results


def run(
    subject: Subject,
    group: str | None,
    case: str | None,
    report: Callable[[dict[str, str]], None],
    begin: Callable[[bytes, bytes], bool] = lambda *_: True,
) -> None:
    """Reports each result. `begin` returns by group and name whether to run a case."""

    def reported(_: object, result: Any) -> None:
        report({name: getattr(result.contents, name).decode(errors="replace") for name in _FIELDS})

    options = _Options(
        *(ctypes.sizeof(_Options), group and group.encode(), case and case.encode()),
        *(_Report(reported), None, _Begin(lambda _, *of: not begin(*of))),
    )
    message = Message()
    code = _run(subject.table, options, None, message)
    assert code == 0, message.text.decode("utf-8", "backslashreplace")
