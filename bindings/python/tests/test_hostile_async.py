"""Every case of the hostile peer (tests/hostile) about async device streams, in asyncio."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

import hostile
from capsules import ProducedOnDevice
from fletching import AsyncDeviceArrayStream, Schema, abi, send_async
from hostile import Case, account, each

__all__ = ["account"]

pytestmark = pytest.mark.usefixtures("account")

COUNTS = {"producer.empty": 0, "producer.release-with-tasks": 2}


def connect(case: Case, window: int) -> AsyncDeviceArrayStream:
    return AsyncDeviceArrayStream.connect(
        lambda handler: hostile.start_producer(case, handler.take()), window
    )


async def read(stream: AsyncDeviceArrayStream) -> tuple[int, BaseException | None]:
    """How many batches, and what ended them."""
    count = 0
    try:
        async for _ in stream:
            count += 1
    except (OSError, MemoryError) as error:
        return count, error.with_traceback(None)
    return count, None


@each(hostile.PRODUCER)
@pytest.mark.parametrize("window", [1, 3, 16])
def test_producers(case: Case, window: int) -> None:
    async def run() -> None:
        stream = connect(case, window)
        if case.outcome == hostile.STALLED:
            await stream.schema()
            await stream.aclose()
            return
        count, error = await read(stream)
        case.check(error)
        assert await anext(stream, None) is None
        if case.outcome == hostile.ACCEPTED:
            assert count == COUNTS.get(case.name, 3)

    asyncio.run(run())


@each(hostile.PRODUCER)
@pytest.mark.parametrize("reads", [False, True])
def test_producers_and_a_consumer_that_is_gone(case: Case, reads: bool) -> None:
    """Closed at whatever point the peer is, and while another task reads; then the loop closes."""

    async def run() -> None:
        stream = connect(case, 2)
        reader = asyncio.ensure_future(read(stream)) if reads else None
        await asyncio.sleep(0)
        stream.cancel()
        await stream.aclose()
        if reader is not None:
            await reader

    asyncio.run(run())
    gc.collect()


@each(hostile.PRODUCER)
def test_producers_and_a_loop_that_is_closed(case: Case) -> None:
    loop = asyncio.new_event_loop()

    async def run() -> AsyncDeviceArrayStream:
        return connect(case, 2)

    stream = loop.run_until_complete(run())
    loop.close()
    stream.cancel()


BATCHES = 5
NULLS = [f"handler.{name}-null" for name in ("on-schema", "on-next-task", "on-error", "release")]


@each(hostile.HANDLER)
@pytest.mark.parametrize("first", ["iterator", "schema"])
def test_consumers(case: Case, first: str) -> None:
    sources = [ProducedOnDevice() for _ in range(BATCHES)]
    schema = Schema.from_arrow(ProducedOnDevice())

    async def batches() -> AsyncIterator[Any]:
        for source in sources:
            if first == "iterator":
                await asyncio.sleep(0)
            yield source

    async def run() -> BaseException | None:
        handler = hostile.open_handler(case, BATCHES)
        sending = asyncio.ensure_future(send_async(schema, 1, batches(), handler))
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # the producer has started, or released the handler
        await loop.run_in_executor(None, hostile.finish)  # which ends a consumer that has stalled
        (result,) = await asyncio.gather(sending, return_exceptions=True)
        return result

    error = asyncio.run(run())
    # That a request was refused, the consumer learns, and the peer checks it.
    if case.name in NULLS:
        assert ": NULL: expected a " in str(error)
    else:
        assert error is None
    gc.collect()
    for source in sources:
        assert source.releases.count("array") == abi.is_released(source.array)
        abi.release(source.array)
