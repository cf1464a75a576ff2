"""Imports an array that is still being written, and makes your stream wait for it. The host waits
only when it needs the result.

Prints: 1000 values, the last is 7
"""

import cuda
from export_event import produce
from fletching import DeviceArray


def main() -> None:
    cuda.use_device(0)
    theirs, ours = cuda.stream(), cuda.stream()

    # Any object with __arrow_c_device_array__ works.
    array = DeviceArray.from_arrow(produce(1000, theirs))
    array.wait_on(ours)
    values = cuda.copy_to_host(array.buffers[1], len(array), ours)
    array.release_after(ours)  # frees the memory after the copy
    del array

    cuda.synchronize(ours)
    print(f"{len(values)} values, the last is {values[-1]}")


if __name__ == "__main__":
    main()
