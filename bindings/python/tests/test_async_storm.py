"""Many concurrent async streams in asyncio, with random ends.

FLETCHING_ASYNC_STREAMS sets their number, 1,000 by default."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from capsules import ProducedOnDevice
from fletching import AsyncDeviceArrayStream, Error
from live_objects import alive, leaked
from producer import Producer
from test_async import batch_of, connected, received

STREAMS = int(os.environ.get("FLETCHING_ASYNC_STREAMS", "1000"))
AT_ONCE = 50


@pytest.fixture
def check_no_leaks() -> Iterator[None]:
    """Checks that the reference producer's counters, Python's objects and the implementations of
    structs are the same afterwards."""
    producer = Producer()
    producer.reset_counters()
    before = alive()
    yield
    producer.await_async()
    counters = producer.counters()
    assert counters["exported"] == counters["released"] > 0
    assert counters["live_streams"] == counters["live_arrays"] == counters["double_released"] == 0
    assert not leaked(before)


class Storm:
    def __init__(self) -> None:
        self.chance = random.Random(22)
        self.sources: list[ProducedOnDevice] = []

    async def batches(self, count: int, fails: bool) -> AsyncIterator[object]:
        for length in range(1, count + 1):
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)
            self.sources.append(batch_of(length))
            yield self.sources[-1]
        if fails:
            raise Error(errno.EIO, "on purpose")

    async def consume(self, stream: AsyncDeviceArrayStream, stop: int) -> int:
        count = 0
        with suppress(Error):
            async for _ in stream:
                count += 1
                if count == stop:
                    break
        await stream.aclose()
        return count

    async def one(self, number: int) -> bool:
        """Runs one stream to its end, a failure, or a cancel by either side."""
        count, fails = self.chance.randrange(6), self.chance.random() < 0.3
        stop, window = self.chance.randrange(1, 8), self.chance.randrange(1, 4)
        if number % 2:
            stream = received(count + 1, count if fails else -1, window)
            return await self.consume(stream, stop) <= count + 1
        stream, sender = connected(self.batches(count, fails), window)
        is_cancelled = self.chance.random() < 0.2
        if is_cancelled:
            asyncio.get_running_loop().call_soon(sender.cancel)
        found = await self.consume(stream, stop)
        with suppress(Error, asyncio.CancelledError):
            await sender
        # A failure may overtake batches that were not sent yet.
        expected = min(stop, count)
        return found == expected or ((is_cancelled or fails) and found < expected)

    async def run(self) -> None:
        for start in range(0, STREAMS, AT_ONCE):
            results = await asyncio.gather(*(self.one(start + i) for i in range(AT_ONCE)))
            assert results == [True] * AT_ONCE
            assert asyncio.all_tasks() == {asyncio.current_task()}
            gc.collect()
            assert all(source.releases.count("array") <= 1 for source in self.sources)
            for source in self.sources:  # a late batch is still the source's
                source.end()
            self.sources.clear()


@pytest.mark.usefixtures("check_no_leaks")
def test_many_streams_with_random_endings() -> None:
    asyncio.run(Storm().run())
