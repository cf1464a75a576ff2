# SPDX-License-Identifier: Apache-2.0
"""Fletching for Python: the device-data binding kit for Apache Arrow.

`fletching.abi` declares the structs of the Arrow C interfaces for ctypes.
`fletching.cuda_array_interface` checks the dictionaries of the CUDA Array Interface.
"""

from ._version import __version__ as __version__
