"""Imports another library's CUDA array and exports it again: streams wait, the host does not.

Prints: read by the stream of the consumer: 7
"""

import cuda
import fletching
from export_event import Memory


class TheirArray:
    """An array of CuPy, Numba and others: memory, and the stream that works on it."""

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
    array = fletching.from_cuda_array_interface(TheirArray(1000))  # keeps the object alive
    again = array.__cuda_array_interface__  # cupy.asarray(array) reads this
    print(again["shape"], again["typestr"])

    ours = cuda.stream()
    array.wait_on(ours)
    values = cuda.copy_to_host(again["data"][0], 1000, ours)
    cuda.synchronize(ours)
    print(f"read by the stream of the consumer: {values[999]}")


if __name__ == "__main__":
    main()
