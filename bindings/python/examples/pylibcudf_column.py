"""Reads a device stream into one column of pylibcudf 26.10.2. Needs an NVIDIA GPU.

Prints: 3000 values, the sum is 21000
"""

import pylibcudf
from rmm.pylibrmm.stream import Stream

import cuda
from export_event import produce
from fletching import DeviceArrayStream, DeviceType, make_schema


def write(theirs: int) -> DeviceArrayStream:
    batches = (produce(1000, theirs) for _ in range(3))  # `theirs` is still writing
    return DeviceArrayStream.from_batches(make_schema("c"), DeviceType.CUDA, batches)


def read(stream: DeviceArrayStream, ours: Stream) -> pylibcudf.Column:
    arrays = list(stream)
    # pylibcudf takes arrays, not device streams. It makes `ours` wait for the event of each.
    columns = [pylibcudf.Column.from_arrow(array, stream=ours) for array in arrays]
    whole: pylibcudf.Column = pylibcudf.concatenate.concatenate(columns, stream=ours)
    for array in arrays:
        array.release_after(ours)  # the concatenation may still read it
    return whole


def main() -> None:
    cuda.use_device(0)
    ours = Stream()
    whole = read(write(cuda.stream()), ours)
    print(f"{whole.size()} values, the sum is {sum(whole.to_arrow(stream=ours).to_pylist())}")


if __name__ == "__main__":
    main()
