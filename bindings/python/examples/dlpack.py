"""Exports a column as a DLPack tensor and imports the tensor as an array, without a copy.

Prints: float32, [1.5, 2.5, 3.5]
"""

import ctypes
from array import array

from fletching import from_buffer, from_dlpack


def main() -> None:
    values = array("f", [1.5, 2.5, 3.5])
    column = from_buffer(values)
    print("device type and id:", column.__dlpack_device__())

    # Any object with __dlpack__ works; numpy, cupy and torch import `column` in the same way.
    tensor = from_dlpack(column)
    tensor.synchronize()
    address = tensor.buffers[1]
    assert address == values.buffer_info()[0]
    print(f"{tensor.type}, {list((ctypes.c_float * 3).from_address(address))}")


if __name__ == "__main__":
    main()
