"""Prints how Python names device types: each number goes through a device array."""

import sys

from fletching.abi import ArrowDeviceArray, DeviceType

for number in sys.argv[1:]:
    array = ArrowDeviceArray()
    array.device_type = DeviceType(int(number))
    print(DeviceType(array.device_type))
