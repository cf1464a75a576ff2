"""Exports an array that a CUDA stream is still writing: its event completes after the write.

Prints: length 1000, cuda:0, event
"""

from ctypes import byref, c_size_t, c_ubyte, c_uint64, c_void_p

import cuda
import fletching


class Memory:
    """Memory that a stream fills. It is freed when the array is released, on any thread."""

    def __init__(self, size: int, stream: int) -> None:
        self.address, self.size = c_uint64(), size
        cuda.call("cuMemAlloc_v2", byref(self.address), c_size_t(size))
        arguments = (self.address, c_ubyte(7), c_size_t(size), c_void_p(stream))
        cuda.call("cuMemsetD8Async", *arguments)  # your kernels go here

    def __del__(self) -> None:
        cuda.call("cuCtxSetCurrent", cuda.context)
        cuda.call("cuMemFree_v2", self.address)


def produce(length: int, stream: int) -> fletching.DeviceArray:
    memory = Memory(length, stream)
    data = (memory.address.value, False)
    interface = {"shape": (length,), "typestr": "|i1", "data": data, "version": 3}
    array = fletching.from_cuda_array_interface(interface, owner=memory)
    return array.export_with_event(stream)


def main() -> None:
    cuda.use_device(0)
    print(produce(1000, cuda.stream()))


if __name__ == "__main__":
    main()
