"""Reference cycles: streams whose iterator, and arrays whose owner, refers to their keeper."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from capsules import Produced
from fletching import (
    ArrayStream,
    DeviceArray,
    DeviceArrayStream,
    Schema,
    from_buffer,
    from_buffers,
    from_cuda_array_interface,
    make_schema,
)
from test_buffers import run

each_kind = pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])


class Reader:
    """A stream that owns its batches."""

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
def test_cycle_of_stream_and_owner_is_collected(kind: Any, read: int) -> None:
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
def test_export_keeps_iterator(kind: Any, read: int) -> None:
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
def test_closed_stream_drops_iterator(kind: Any) -> None:
    reader = Reader(kind)
    reader.stream.close()
    found = weakref.ref(reader)
    del reader
    assert found() is None  # without the collector


@each_kind
def test_stream_in_use_is_not_collected(kind: Any) -> None:
    """Read by this thread, whose producer runs the collector, and by another thread."""
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


class Owner(bytearray):
    """The owner of an array's memory that also keeps the array alive."""

    array: Any


def array_of_buffer(owner: Owner) -> Any:
    return from_buffer(owner)


def array_of_buffers(owner: Owner) -> Any:
    return from_buffers(make_schema("C"), 3, [b"\x07", owner])


each_builder = pytest.mark.parametrize("build", [array_of_buffer, array_of_buffers])


@each_builder
def test_cycle_of_array_and_owner_is_collected(build: Any) -> None:
    owner = Owner(b"abc")
    owner.array = build(owner)
    found = weakref.ref(owner)
    gc.collect()
    assert found() is owner
    del owner
    gc.collect()
    assert found() is None


def test_cycle_of_cuda_array_and_owner_is_collected() -> None:
    owner = Owner(b"abc")
    interface = {"shape": (0,), "typestr": "|u1", "data": (0, False), "version": 3}
    owner.array = from_cuda_array_interface(interface, owner=owner)
    found = weakref.ref(owner)
    del owner
    gc.collect()
    assert found() is None


@each_builder
@pytest.mark.parametrize(
    "export",
    [
        lambda array: array.__arrow_c_array__(),
        DeviceArray.from_arrow,
        lambda array: array.__dlpack__(max_version=(1, 0)),
        lambda array: array.to_numpy(),
    ],
)
def test_owner_in_use_by_export_is_kept(build: Any, export: Any) -> None:
    """As the README says, the export may outlive the array."""
    owner = Owner(b"abc")
    owner.array = build(owner)
    found, exported = weakref.ref(owner), [export(owner.array)]
    del owner
    gc.collect()
    kept = found()
    assert kept is not None
    exported.clear()
    del kept.array, kept  # also frees the cached tensor of __dlpack__
    assert found() is None


def test_module_level_array_of_local_class_does_not_leak() -> None:
    """Its methods refer to the module, which contains the array."""
    done = run(
        """
    from fletching import from_buffer

    class Owner(bytearray):
        def method(self):
            pass

        def __del__(self):
            print("released", flush=True)

    array = from_buffer(Owner(b"abc"))
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "released\n", "")


@pytest.mark.parametrize(
    "keep",
    [
        "callback = type(struct.release)(release)",
        "abi.implement(struct, Methods())",
    ],
)
def test_module_level_array_with_callback_reports_no_leak(keep: str) -> None:
    """A callback lives as long as the process, and its function refers to the module."""
    done = run(
        f"""
    from fletching import abi, from_buffer

    def release(struct):
        pass

    class Methods:
        release = release

    struct = abi.ArrowArray()
    array = from_buffer(b"abc")
    {keep}
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
