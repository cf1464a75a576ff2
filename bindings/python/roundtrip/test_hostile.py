"""Structs that no well-behaved producer gives: each is a clear error, and nothing crashes."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import transit
from describe import describe
from fletching import abi
from fletching.abi import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
    move,
    release,
)
from foreign import ForeignError
from producer import Producer, ProducerError

NOT_UTF8 = b"\xff\xfe text"


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Producer]:
    """The reference producer; afterwards nothing of it may be alive."""
    monkeypatch.setattr(transit, "counts", transit.Counts())
    producer = Producer()
    producer.reset_counters()
    yield producer
    counters = producer.counters()
    assert counters["exported"] == counters["released"]
    assert counters["double_released"] == 0
    assert transit.counts.problems == []
    assert transit.counts.exported == transit.counts.released


def exported(producer: Producer, case: str = "struct") -> tuple[ArrowSchema, ArrowDeviceArray]:
    schema, array = ArrowSchema(), ArrowDeviceArray()
    producer.export_array(case, schema, array)
    return schema, array


# --- Arrays --------------------------------------------------------------------------------------

Spoil = Callable[[ArrowSchema, ArrowArray], None]


def released_schema(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.release(schema)


def released_array(schema: ArrowSchema, array: ArrowArray) -> None:
    array.release(array)


def released_child(schema: ArrowSchema, array: ArrowArray) -> None:
    array.children[1].contents.release(array.children[1])


def no_format(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.format = None


def odd_format(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.format = ctypes.cast(ctypes.c_char_p(NOT_UTF8), ctypes.c_void_p).value


def no_children(schema: ArrowSchema, array: ArrowArray) -> None:
    array.children = type(array.children)()


def null_child(schema: ArrowSchema, array: ArrowArray) -> None:
    pointers = (ctypes.POINTER(ArrowSchema) * 3)()
    schema.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(ArrowSchema)))


def fewer_children(schema: ArrowSchema, array: ArrowArray) -> None:
    array.n_children = 1


def negative_children(schema: ArrowSchema, array: ArrowArray) -> None:
    array.n_children = -1


def negative_length(schema: ArrowSchema, array: ArrowArray) -> None:
    array.length = -3


def negative_nulls(schema: ArrowSchema, array: ArrowArray) -> None:
    array.null_count = -2


def no_buffers(schema: ArrowSchema, array: ArrowArray) -> None:
    array.buffers = type(array.buffers)()


def own_child(schema: ArrowSchema, array: ArrowArray) -> None:
    """Both trees go round in circles."""
    schema.children[0] = ctypes.pointer(schema)
    array.children[0] = ctypes.pointer(array)


def one_dictionary(schema: ArrowSchema, array: ArrowArray) -> None:
    schema.dictionary = schema.children[0]


SPOILED: list[tuple[Spoil, str]] = [
    (released_schema, "/: the schema is released"),
    (released_array, "/: the array is released"),
    (released_child, "/1: the array is released"),
    (no_format, "/: format is NULL"),
    (odd_format, r"/: format '\xff\xfe text' is not UTF-8"),
    (no_children, "/: children of the array is NULL, and n_children is not 0"),
    (null_child, "/: child 0 of the schema is NULL"),
    (fewer_children, "/: n_children is 3 in the schema and 1 in the array"),
    (negative_children, "/: n_children is -1, and may not be negative"),
    (negative_length, "/: length is -3, and may not be negative"),
    (negative_nulls, "/: null_count is -2, and may not be below -1"),
    (no_buffers, "/: buffers is NULL, and n_buffers is 1"),
    (own_child, "more than 64 levels"),
    (one_dictionary, "/: only one of schema and array has a dictionary"),
]


@pytest.mark.parametrize(("spoil", "text"), SPOILED)
def test_a_spoiled_array_is_refused(producer: Producer, spoil: Spoil, text: str) -> None:
    schema, array = exported(producer)
    saved_children = (schema.children[0], array.array.children[0])
    saved_pointers = (schema.children, array.array.children)
    spoil(schema, array.array)
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    with pytest.raises(ForeignError) as error:
        transit.pass_array_on(schema, array, out_schema, out_array)
    assert text in str(error.value)
    assert error.value.code == errno.EINVAL
    with pytest.raises(ForeignError):
        describe(schema, array.array)
    assert not out_schema.release
    assert not out_array.array.release
    if spoil is own_child:
        saved_pointers[0][0], saved_pointers[1][0] = saved_children
    release(schema)
    release(array.array)


def test_a_zeroed_array_is_refused(producer: Producer) -> None:
    with pytest.raises(ForeignError, match="the schema is released"):
        transit.pass_array_on(ArrowSchema(), ArrowDeviceArray(), ArrowSchema(), ArrowDeviceArray())


def test_an_unknown_device_type_passes(producer: Producer) -> None:
    schema, array = exported(producer)
    array.device_type, array.device_id, array.sync_event = 21, 7, 0xDEAD
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    transit.pass_array_on(schema, array, out_schema, out_array)
    assert (out_array.device_type, out_array.device_id, out_array.sync_event) == (21, 7, 0xDEAD)
    release(out_schema)
    release(out_array.array)


def test_a_child_moved_out_outlives_its_parent(producer: Producer) -> None:
    schema, array = exported(producer, "record_batch")
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    transit.pass_array_on(schema, array, out_schema, out_array)
    child_schema, child = ArrowSchema(), ArrowArray()
    move(out_schema.children[0].contents, child_schema)
    move(out_array.array.children[0].contents, child)
    release(out_array.array)
    release(out_schema)
    assert describe(child_schema, child).endswith("20:0a0000000b0000000c0000000d0000000e000000\n")
    release(child)
    release(child_schema)


def test_a_second_release_is_counted(producer: Producer) -> None:
    schema, array = exported(producer)
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    transit.pass_array_on(schema, array, out_schema, out_array)
    release_again = type(out_array.array.release).from_buffer_copy(out_array.array.release)
    release(out_schema)
    release(out_array.array)
    release_again(out_array.array)
    assert transit.counts.unknown == 1


def test_the_producer_says_what_is_wrong(producer: Producer) -> None:
    with pytest.raises(ProducerError, match="FletchingProducerExportArray: failed with 22"):
        producer.export_array("no such case", ArrowSchema(), ArrowDeviceArray())
    with pytest.raises(ProducerError, match="unknown case 'no such case'"):
        producer.describe("no such case")


def test_unknown_formats_and_buffers_are_not_described(producer: Producer) -> None:
    schema, array = exported(producer, "int32")
    buffers = array.array.n_buffers
    array.array.n_buffers = 1
    with pytest.raises(ForeignError, match="/: format i has 2 buffers, and n_buffers is 1"):
        describe(schema, array.array)
    array.array.n_buffers = buffers
    for form in ("", "vx", "i ", "b:", "tsx:", "tss", "w:", "w:-1", "w:x", "d:1", "d:1,2,x"):
        text = ctypes.create_string_buffer(form.encode())
        schema.format = ctypes.addressof(text)
        with pytest.raises(ForeignError, match=f"/: format {form} is none of the catalogue's"):
            describe(schema, array.array)
    release(schema)
    release(array.array)


def test_bad_sizes_of_data_buffers_are_not_described(producer: Producer) -> None:
    schema, array = exported(producer, "utf8_view")
    sizes = array.array.buffers[array.array.n_buffers - 1]
    assert sizes is not None
    ctypes.c_int64.from_address(sizes + 8).value = -8
    with pytest.raises(ForeignError, match="/: the size of data buffer 1 is -8"):
        describe(schema, array.array)
    array.array.buffers[array.array.n_buffers - 1] = None
    with pytest.raises(ForeignError, match="/: the sizes of the data buffers are NULL"):
        describe(schema, array.array)
    array.array.n_buffers = 2
    with pytest.raises(ForeignError, match="/: format vu has 3 or more buffers, and n_buffers is"):
        describe(schema, array.array)
    release(schema)
    release(array.array)


# --- Streams -------------------------------------------------------------------------------------


class FakeStream:
    """A stream whose callbacks a test chooses; `text` is what get_last_error gives."""

    def __init__(self, code: int = 0, text: bytes | None = None, **callbacks: Any) -> None:
        self.text = None if text is None else ctypes.create_string_buffer(text)
        self.released = 0
        self._callbacks = {
            "get_schema": abi.ArrowDeviceArrayStreamGetSchema(self._get_schema),
            "get_next": abi.ArrowDeviceArrayStreamGetNext(lambda *_: code),
            "get_last_error": abi.ArrowDeviceArrayStreamGetLastError(self._get_last_error),
            "release": abi.ArrowDeviceArrayStreamRelease(self._release),
            **callbacks,
        }
        self.struct = ArrowDeviceArrayStream()
        for name, callback in self._callbacks.items():
            setattr(self.struct, name, callback)
        self._release_schema = abi.ArrowSchemaRelease(self._release_one)
        self._format = ctypes.create_string_buffer(b"i")

    def _get_schema(self, _: Any, out: Any) -> int:
        out.contents.format = ctypes.addressof(self._format)
        out.contents.release = self._release_schema
        return 0

    def _get_last_error(self, _: Any) -> int | None:
        return None if self.text is None else ctypes.addressof(self.text)

    def _release_one(self, schema: Any) -> None:
        schema.contents.release = abi.ArrowSchemaRelease()

    def _release(self, stream: Any) -> None:
        self.released += 1
        stream.contents.release = abi.ArrowDeviceArrayStreamRelease()


def passed_on(fake: FakeStream) -> ArrowDeviceArrayStream:
    out = ArrowDeviceArrayStream()
    transit.pass_stream_on(fake.struct, out, lambda *_: None)
    return out


def next_error(out: ArrowDeviceArrayStream) -> tuple[int, bytes | None]:
    """What get_next of the passed-on stream gives, and the text after it."""
    array = ArrowDeviceArray()
    code = out.get_next(out, array)
    assert not array.array.release
    address = out.get_last_error(out)
    return code, None if address is None else ctypes.string_at(address)


@pytest.mark.parametrize("text", [None, b"", b"broken pipe", NOT_UTF8, b"\xc3\xbcber"])
def test_errno_and_text_pass_unchanged(producer: Producer, text: bytes | None) -> None:
    fake = FakeStream(errno.EPIPE, text)
    out = passed_on(fake)
    assert next_error(out) == (errno.EPIPE, text)
    assert next_error(out) == (errno.EPIPE, text)
    release(out)
    assert fake.released == 1


@pytest.mark.parametrize("code", [-1, 2**31 - 1, -(2**31)])
def test_odd_error_codes_pass_unchanged(producer: Producer, code: int) -> None:
    out = passed_on(FakeStream(code, b"odd"))
    assert next_error(out) == (code, b"odd")
    release(out)


def test_a_stream_without_get_next(producer: Producer) -> None:
    out = passed_on(FakeStream(get_next=abi.ArrowDeviceArrayStreamGetNext()))
    assert next_error(out) == (errno.EINVAL, b"get_next is NULL")
    release(out)


def test_a_stream_without_get_last_error(producer: Producer) -> None:
    none = abi.ArrowDeviceArrayStreamGetLastError()
    out = passed_on(FakeStream(errno.EIO, b"unseen", get_last_error=none))
    assert next_error(out) == (errno.EIO, None)
    release(out)


def test_a_stream_without_get_schema(producer: Producer) -> None:
    fake = FakeStream(get_schema=abi.ArrowDeviceArrayStreamGetSchema())
    with pytest.raises(ForeignError, match="get_schema is NULL"):
        passed_on(fake)
    assert fake.struct.release
    assert fake.released == 0


def test_a_released_stream(producer: Producer) -> None:
    with pytest.raises(ForeignError, match="the stream is released"):
        transit.pass_stream_on(ArrowDeviceArrayStream(), ArrowDeviceArrayStream(), lambda *_: None)


def test_a_batch_that_is_not_the_schema_s(producer: Producer) -> None:
    """The stream says int32 and gives structs: the batch is refused and released."""
    producer.reset_counters()

    def give_structs(_: Any, out: Any) -> int:
        schema, array = exported(producer)
        release(schema)
        ctypes.memmove(out, ctypes.byref(array), ctypes.sizeof(array))
        return 0

    out = passed_on(FakeStream(get_next=abi.ArrowDeviceArrayStreamGetNext(give_structs)))
    code, text = next_error(out)
    assert (code, text) == (
        errno.EINVAL,
        b"/: n_children is 0 in the schema and 3 in the array",
    )
    assert producer.counters()["live_arrays"] == 0
    release(out)


def test_an_exception_becomes_an_errno(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transit, "counts", transit.Counts())

    def look(*_: object) -> None:
        raise RuntimeError("a bug")

    producer = Producer()
    stream, out = ArrowDeviceArrayStream(), ArrowDeviceArrayStream()
    producer.export_stream("int32", 1, -1, stream)
    transit.pass_stream_on(stream, out, look)
    array = ArrowDeviceArray()
    assert out.get_next(out, array) == errno.EINVAL
    assert not array.array.release
    release(out)
    assert transit.counts.problems == ["_get_next: RuntimeError: a bug"]
    assert producer.counters()["live_arrays"] == 0
