"""Exports an iterator of batches as a device stream, and reads it as a consumer does.

Prints: a batch of 3
"""

from array import array
from collections.abc import Iterator

from fletching import Array, DeviceArrayStream, from_buffer

CPU = 1


def batches() -> Iterator[Array]:
    for length in range(1, 4):
        yield from_buffer(array("q", range(length)), name="key")


def produce() -> DeviceArrayStream:
    schema = from_buffer(array("q"), name="key").schema
    return DeviceArrayStream.from_batches(schema, CPU, batches())


def main() -> None:
    # Any object with __arrow_c_device_stream__ or __arrow_c_stream__ works.
    stream = DeviceArrayStream.from_arrow(produce())
    print(stream.schema)
    for batch in stream:
        print(f"a batch of {len(batch)}")


if __name__ == "__main__":
    main()
