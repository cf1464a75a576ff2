"""A CUDA array of another library as an Arrow array, and back: streams wait, the host does not.

Prints: read by the stream of the consumer: 7
"""

import cuda
import fletching
from export_event import Memory


class TheirArray:
    """What CuPy, Numba and others have: memory, and the stream that works on it."""

    def __init__(self, length: int) -> None:
        self.stream = cuda.stream()
        self.memory = Memory(length, self.stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        data = (self.memory.address.value, False)
        shape = (self.memory.size,)
        described = {"shape": shape, "typestr": "|i1", "data": data, "version": 3}
        return {**described, "stream": self.stream}


def main() -> None:
    cuda.use_device(0)
    array = fletching.from_cuda_array_interface(TheirArray(1000))  # keeps the object
    again = array.__cuda_array_interface__  # what cupy.asarray(array) reads
    print(again["shape"], again["typestr"])

    ours = cuda.stream()
    array.wait_on(ours)
    values = cuda.copy_to_host(again["data"][0], 1000, ours)
    cuda.synchronize(ours)
    print(f"read by the stream of the consumer: {values[999]}")


if __name__ == "__main__":
    main()
