# SPDX-License-Identifier: Apache-2.0
"""Fletching for Python: the device-data binding kit for Apache Arrow.

`Schema`, `Array`, `DeviceArray`, `ArrayStream` and `DeviceArrayStream` own what the Arrow C
interfaces exchange, and produce and consume the Arrow PyCapsule protocols. `from_arrow` takes what
an object has, `from_dlpack` its tensor, `from_cuda_array_interface` its array on a GPU,
`from_buffer` its memory. `AsyncDeviceArrayStream` is an async iterator of what an async producer
sends, and `send_async` sends one.

`fletching.abi` declares the structs of the Arrow C interfaces for ctypes.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._version import __version__ as __version__

if _TYPE_CHECKING:
    from ._async import AsyncDeviceArrayStream as AsyncDeviceArrayStream
    from ._async import AsyncHandler as AsyncHandler
    from ._async import send_async as send_async
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
    from ._core import from_cuda_array_interface as from_cuda_array_interface
    from ._core import from_dlpack as from_dlpack
    from ._core import pending_releases as pending_releases
    from ._core import register_waiter as register_waiter
    from ._error import Error as Error
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
    "VulkanContext",
    "__version__",
    "check_cuda_array_interface",
    "from_arrow",
    "from_buffer",
    "from_cuda_array_interface",
    "from_dlpack",
    "pending_releases",
    "register_waiter",
    "send_async",
]

# The modules of the names, where it is not the extension.
_MODULES = {
    "AsyncDeviceArrayStream": "_async",
    "AsyncHandler": "_async",
    "DeviceType": "abi",
    "send_async": "_async",
}

# Type checkers know the names from above, and report others.
if not _TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Loads the extension when it is first used: `fletching.abi` does without."""
        if name not in __all__:
            raise AttributeError(f"module 'fletching' has no attribute '{name}'")
        module = _import_module(f"fletching.{_MODULES.get(name, '_core')}")
        return globals().setdefault(name, getattr(module, name))


def __dir__() -> list[str]:
    return sorted({"abi", *__all__, *(name for name in globals() if name.startswith("__"))})
