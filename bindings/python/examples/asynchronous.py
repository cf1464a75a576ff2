"""Sends batches from an async iterator, and receives them with back-pressure.

Prints: a batch of 3
"""

import asyncio
from array import array
from collections.abc import AsyncIterator

import fletching
from fletching import Array, AsyncDeviceArrayStream, AsyncHandler, from_buffer

CPU = fletching.DeviceType.CPU


async def batches() -> AsyncIterator[Array]:
    for length in range(1, 4):
        yield from_buffer(array("q", range(length)), name="key")


async def main() -> None:
    schema = from_buffer(array("q"), name="key").schema
    senders: list[asyncio.Task[None]] = []

    def produce(handler: AsyncHandler) -> None:
        """Starts a producer for a consumer's handler."""
        senders.append(asyncio.create_task(fletching.send_async(schema, CPU, batches(), handler)))

    # At most two batches are in flight.
    stream = AsyncDeviceArrayStream.connect(produce, window=2)
    print(await stream.schema())
    async for batch in stream:
        print(f"a batch of {len(batch)}")
    await senders[0]


if __name__ == "__main__":
    asyncio.run(main())
