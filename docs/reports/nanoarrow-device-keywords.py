"""The device method has no keyword arguments, which the protocol reserves."""

import nanoarrow as na
from nanoarrow.device import c_device_array

array = c_device_array(na.c_array([1.5], na.float64()))
array.__arrow_c_device_array__(future_keyword=None)
