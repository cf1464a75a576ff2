"""The directions of the devices: data behind a gate is waited for, and arrives."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import reexport
from fletching import (
    AsyncDeviceArrayStream,
    AsyncHandler,
    DeviceArray,
    DeviceArrayStream,
    Error,
    Schema,
    abi,
)
from fletching.abi import ArrowDeviceArray, ArrowSchema
from gates import NEW, OLD, Gate, Queue, run_async
from main import BATCHES, FAIL_AT, verify_dump

if TYPE_CHECKING:
    from devices_main import Run


@dataclass
class Content:
    """What was received, and how a stream has ended: None when it did well."""

    schema: Schema
    device_type: int
    batches: list[DeviceArray] = field(default_factory=list)
    ended: Error | None = None


Structs = tuple[ArrowSchema, ArrowDeviceArray]


def pass_array(run: Run) -> None:
    with Gate(run.device.backend, run.case) as gate:
        try:
            verify_dump(run.producer, gate.schema, gate.array, run.checks)
            require_arrived(run, gate, [reexport.import_array(gate.schema, gate.array)])
        finally:  # what was not moved
            abi.release(gate.schema)
            abi.release(gate.array)


def pass_stream(run: Run) -> None:
    def observe(schema: ArrowSchema, array: ArrowDeviceArray) -> None:
        verify_dump(run.producer, schema, array, run.checks)

    with Gate(run.device.backend, run.case, export=False) as gate:
        source = gate.export_stream(BATCHES, _fail_at(run))
        require_content(run, gate, _read(reexport.import_stream(source, observe)))


def _read(stream: DeviceArrayStream) -> Content:
    content = Content(stream.schema, stream.device_type)
    try:
        for batch in stream:
            content.batches.append(batch)
    except Error as error:
        content.ended = error
    return content


def pass_async(run: Run) -> None:
    backend = run.device.backend
    gated = Gate(backend, run.case, export=False) if run.device.has_queues else nullcontext()
    with gated as gate:

        def start(handler: AsyncHandler) -> None:
            run_async(backend, gate, run.case, (BATCHES, _fail_at(run)), handler.take())

        require_content(run, gate, asyncio.run(_receive(start)))


async def _receive(start: Callable[[AsyncHandler], None]) -> Content:
    stream = AsyncDeviceArrayStream.connect(start, window=1)  # an error drops what is queued
    content = Content(await stream.schema(), stream.device_type)
    try:
        async for batch in stream:
            content.batches.append(reexport.import_array(*reexport.export_array(batch)))
    except Error as error:
        content.ended = error
    return content


def _fail_at(run: Run) -> int:
    return FAIL_AT if run.fails else -1


def require_content(run: Run, gate: Gate | None, content: Content) -> None:
    """What a stream has returned, and how it ended."""
    checks, ended = run.checks, content.ended
    checks.equal(len(content.batches), FAIL_AT if run.fails else BATCHES, "the number of batches")
    text = f"case {run.case}: the stream fails on purpose before batch {FAIL_AT}"
    end = (errno.EIO, text) if run.fails else None
    checks.equal(ended and (ended.errno, ended.strerror), end, "the end of the stream")
    require_arrived(run, gate, content.batches)
    if ended is None:
        return
    stream = DeviceArrayStream.from_batches(content.schema, content.device_type, _kept(content))
    out = reexport.export_stream(stream)
    run.producer.verify_stream(run.case, BATCHES, FAIL_AT, out, run.device.backend)
    checks.asserted += 1


def _kept(content: Content) -> Iterator[DeviceArray]:
    """The batches and the failure, for a stream of Python's own."""
    assert content.ended
    yield from content.batches
    raise content.ended


def require_arrived(run: Run, gate: Gate | None, arrays: Sequence[DeviceArray]) -> None:
    """Does the steps of the direction; then the producer verifies each array."""
    structs = [reexport.export_array(array) for array in arrays]
    try:
        if gate is None:
            _require_nothing_to_wait_for(run, arrays)
        elif run.control:
            _require_old_without_wait(run, gate, arrays, structs)
        else:
            _require_waits(run, gate, arrays, structs)
        for schema, array in structs:
            run.producer.verify_array(run.case, schema, array, run.device.backend)
            run.checks.asserted += 1
    finally:
        for pair in structs:
            for struct in pair:
                abi.release(struct)


def _require_waits(
    run: Run, gate: Gate, arrays: Sequence[DeviceArray], structs: Sequence[Structs]
) -> None:
    backend, checks, device = run.device.backend, run.checks, run.device
    with (
        Queue(backend, run.case) as careful,
        Queue(backend, run.case) as careless,
        gate.opened_at_the_end(),
    ):
        for array, (_, struct) in zip(arrays, structs, strict=True):
            checks.expect(array.sync_event != 0, "sync_event is NULL")
            checks.expect(not device.ready(array), "ready() is True behind a shut gate")
            device.wait_on(array, careful.handle)
            careful.read(struct)
        _require_old(run, careless, structs)  # completes: the other one would have
        checks.expect(not careful.is_idle(), "a queue that waits is idle behind a shut gate")
        gate.open()
        checks.expect(careful.verify(NEW) > 0, "the queue that has waited has read nothing")
        for array in arrays:
            device.synchronize(array)
            checks.expect(device.ready(array), "ready() is False after synchronize()")


def _require_old(run: Run, careless: Queue, structs: Sequence[Structs]) -> None:
    for _, struct in structs:
        careless.read(struct)
    run.checks.expect(careless.verify(OLD) > 0, "the queue that has not waited has read nothing")


def _require_old_without_wait(
    run: Run, gate: Gate, arrays: Sequence[DeviceArray], structs: Sequence[Structs]
) -> None:
    with ExitStack() as stack:
        careless = stack.enter_context(Queue(run.device.backend, run.case))
        stack.enter_context(gate.opened_at_the_end())
        _require_old(run, careless, structs)
        for array in arrays:
            run.checks.expect(not run.device.ready(array), "ready() is True behind a shut gate")


def _require_nothing_to_wait_for(run: Run, arrays: Sequence[DeviceArray]) -> None:
    for array in arrays:
        run.checks.equal(array.sync_event, 0, "the event on a device without queues")
        run.checks.expect(run.device.ready(array), "ready() is False without an event")
        run.device.wait_on(array, 0)
        run.device.synchronize(array)
