"""Prints Python's names for device types and data-type codes, each read from a struct."""

import sys

from fletching.abi import ArrowDeviceArray, DataTypeCode, DeviceType, DLDataType

for argument in sys.argv[1:]:
    kind, _, number = argument.partition(":")
    if kind == "code":
        data_type = DLDataType(code=DataTypeCode(int(number)), bits=8, lanes=1)
        print(DataTypeCode(data_type.code))
        continue
    array = ArrowDeviceArray()
    array.device_type = DeviceType(int(number))
    print(DeviceType(array.device_type))
