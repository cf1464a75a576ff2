"""Sends batches from an async iterator, and receives them with back-pressure.

Prints: a batch of 3
"""

import asyncio
from array import array
from collections.abc import AsyncIterator

from fletching import Array, AsyncDeviceArrayStream, from_buffer, send_async

CPU = 1


async def batches() -> AsyncIterator[Array]:
    for length in range(1, 4):
        yield from_buffer(array("q", range(length)), name="key")


async def main() -> None:
    schema = from_buffer(array("q"), name="key").schema
    senders: list[asyncio.Task[None]] = []

    def produce(handler: int) -> None:
        """What a producer does with the handler of a consumer."""
        senders.append(asyncio.create_task(send_async(schema, CPU, batches(), handler)))

    # At most two batches are on their way.
    stream = AsyncDeviceArrayStream.connect(produce, window=2)
    print(await stream.schema())
    async for batch in stream:
        print(f"a batch of {len(batch)}")
    await senders[0]


if __name__ == "__main__":
    asyncio.run(main())
