# SPDX-License-Identifier: Apache-2.0
"""Fletching for Python: the device-data binding kit for Apache Arrow.

`Schema`, `Array`, `DeviceArray`, `ArrayStream` and `DeviceArrayStream` own the structs that the
Arrow C interfaces exchange, and produce and consume the Arrow PyCapsule protocols. `from_arrow`
imports an object's Arrow data, `from_dlpack` its tensor, `from_cuda_array_interface` its GPU array,
`from_buffer` its memory. `array` and `record_batch` build arrays from values, `from_buffers` from
memory. `AsyncDeviceArrayStream` is an async iterator over the batches of an async producer, and
`send_async` sends such batches.

`fletching.abi` declares the structs of the Arrow C interfaces for ctypes.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._async import AsyncDeviceArrayStream as AsyncDeviceArrayStream
    from ._async import AsyncHandler as AsyncHandler
    from ._async import send_async as send_async
    from ._build import array as array
    from ._build import record_batch as record_batch
    from ._capsules import from_capsule as from_capsule
    from ._capsules import to_capsule as to_capsule
    from ._core import Array as Array
    from ._core import ArrayStream as ArrayStream
    from ._core import DeviceArray as DeviceArray
    from ._core import DeviceArrayStream as DeviceArrayStream
    from ._core import OnCapture as OnCapture
    from ._core import Schema as Schema
    from ._core import VulkanContext as VulkanContext
    from ._core import check_cuda_array_interface as check_cuda_array_interface
    from ._core import from_arrow as from_arrow
    from ._core import from_buffer as from_buffer
    from ._core import from_buffers as from_buffers
    from ._core import from_cuda_array_interface as from_cuda_array_interface
    from ._core import from_dlpack as from_dlpack
    from ._core import make_schema as make_schema
    from ._core import pending_releases as pending_releases
    from ._core import register_waiter as register_waiter
    from ._error import Error as Error
    from ._validate import Stress as Stress
    from ._validate import report_live as report_live
    from ._validate import validate as validate
    from ._validate import validate_handler as validate_handler
    from .abi import DeviceType as DeviceType

__all__ = [
    "Array",
    "ArrayStream",
    "AsyncDeviceArrayStream",
    "AsyncHandler",
    "DeviceArray",
    "DeviceArrayStream",
    "DeviceType",
    "Error",
    "OnCapture",
    "Schema",
    "Stress",
    "VulkanContext",
    "__version__",
    "array",
    "check_cuda_array_interface",
    "from_arrow",
    "from_buffer",
    "from_buffers",
    "from_capsule",
    "from_cuda_array_interface",
    "from_dlpack",
    "make_schema",
    "pending_releases",
    "record_batch",
    "register_waiter",
    "report_live",
    "send_async",
    "to_capsule",
    "validate",
    "validate_handler",
]

# The modules of the names that are not in the extension.
_MODULES = {
    "AsyncDeviceArrayStream": "_async",
    "AsyncHandler": "_async",
    "DeviceType": "abi",
    "Stress": "_validate",
    "array": "_build",
    "from_capsule": "_capsules",
    "record_batch": "_build",
    "report_live": "_validate",
    "send_async": "_async",
    "to_capsule": "_capsules",
    "validate": "_validate",
    "validate_handler": "_validate",
}

# Type checkers know the names from the imports above, and report unknown names.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Loads the extension on first use: `fletching.abi` does not need it."""
        if name not in __all__:
            raise AttributeError(f"module 'fletching' has no attribute '{name}'")
        module = _import_module(f"fletching.{_MODULES.get(name, '_core')}")
        return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted({"abi", *__all__, *(name for name in globals() if name.startswith("__"))})
