"""The hostile peer's async producers (tests/hostile) with consumers that leave early; the
conformance suite (test_conformance.py) reads them to the end."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress

import pytest

import hostile
from fletching import AsyncDeviceArrayStream
from hostile import Case, account, each

__all__ = ["account"]

pytestmark = pytest.mark.usefixtures("account")


def connect(case: Case, window: int) -> AsyncDeviceArrayStream:
    return AsyncDeviceArrayStream.connect(
        lambda handler: hostile.start_producer(case.name, handler.take()), window
    )


async def read(stream: AsyncDeviceArrayStream) -> None:
    with suppress(OSError, MemoryError):
        async for _ in stream:
            pass


@each(hostile.PRODUCER)
@pytest.mark.parametrize("reads", [False, True])
def test_hostile_producer_after_stream_close(case: Case, reads: bool) -> None:
    """The stream is closed at any state of the peer, also while another task reads; then the loop
    closes.
    """

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
def test_hostile_producer_after_loop_close(case: Case) -> None:
    loop = asyncio.new_event_loop()

    async def run() -> AsyncDeviceArrayStream:
        return connect(case, 2)

    stream = loop.run_until_complete(run())
    loop.close()
    stream.cancel()
