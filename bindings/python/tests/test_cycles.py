"""Python's collector and streams whose iterator refers to what keeps the stream."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from capsules import Produced
from fletching import Array, ArrayStream, DeviceArrayStream, Schema, from_buffer

each_kind = pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])


class Reader:
    """A stream of its own batches."""

    def __init__(self, kind: Any) -> None:
        self.is_closed: list[bool] = []
        self.sources = [Produced(), Produced()]
        schema = Schema.from_arrow(Produced())
        iterator = self.batches(self.is_closed)
        device_type = () if kind is ArrayStream else (1,)
        self.stream = kind.from_batches(schema, *device_type, iterator)

    def batches(self, is_closed: list[bool]) -> Iterator[Produced]:
        try:
            yield from self.sources
        finally:
            is_closed.append(True)


@each_kind
@pytest.mark.parametrize("read", [0, 1, 2, 3])
def test_a_stream_of_its_owner_is_collected(kind: Any, read: int) -> None:
    reader = Reader(kind)
    found, is_closed, sources = weakref.ref(reader), reader.is_closed, reader.sources
    for _ in range(read):
        next(reader.stream, None)
    del reader
    gc.collect()
    assert found() is None
    assert is_closed == ([True] if read else [])
    assert [len(source.releases) for source in sources] == [2] * min(read, 2) + [0] * (2 - read)


@each_kind
@pytest.mark.parametrize("read", [0, 1])
def test_an_export_keeps_the_iterator(kind: Any, read: int) -> None:
    reader = Reader(kind)
    for _ in range(read):
        next(reader.stream)
    found, again = weakref.ref(reader), kind.from_arrow(reader.stream)
    del reader
    gc.collect()
    assert found() is not None
    assert len(list(again)) == 2 - read
    del again
    gc.collect()
    assert found() is None


@each_kind
def test_a_closed_stream_has_no_iterator(kind: Any) -> None:
    reader = Reader(kind)
    reader.stream.close()
    found = weakref.ref(reader)
    del reader
    assert found() is None  # without the collector


@each_kind
def test_a_stream_that_is_being_read_is_not_collected(kind: Any) -> None:
    """By this thread, whose producer collects, and by another one."""
    inside, go = threading.Event(), threading.Event()

    def batches() -> Iterator[Produced]:
        gc.collect()
        yield Produced()
        inside.set()
        go.wait()
        yield Produced()

    class Owner:
        pass

    owner: Any = Owner()
    owner.iterator, device_type = batches(), () if kind is ArrayStream else (1,)
    owner.stream = kind.from_batches(Schema.from_arrow(Produced()), *device_type, owner.iterator)
    owner.again = owner
    lengths = [len(next(owner.stream))]

    def read(stream: Any) -> None:
        lengths.extend(map(len, stream))

    thread = threading.Thread(target=read, args=[owner.stream])
    thread.start()
    inside.wait()
    del owner
    gc.collect()
    go.set()
    thread.join()
    assert lengths == [3, 3]


def test_the_owner_of_a_buffer_is_not_seen() -> None:
    """The README says so: an export that outlives the array may hold the buffer."""

    class Owner(bytearray):
        array: Array

    owner = Owner(b"abc")
    owner.array = from_buffer(owner)
    found = weakref.ref(owner)
    del owner
    gc.collect()
    kept = found()
    assert kept is not None
    del kept.array, kept
    assert found() is None
