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

import importlib
from typing import TYPE_CHECKING

from ._error import Error as Error
from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._async import AsyncDeviceArrayStream as AsyncDeviceArrayStream
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
    from ._core import register_waiter as register_waiter

_NATIVE = (
    *("Array", "ArrayStream", "DeviceArray", "DeviceArrayStream", "OnCapture", "Schema"),
    *("VulkanContext", "check_cuda_array_interface", "from_arrow", "from_buffer"),
    *("from_cuda_array_interface", "from_dlpack", "register_waiter"),
)
_ASYNC = ("AsyncDeviceArrayStream", "send_async")
__all__ = ["Error", "__version__", *_NATIVE, *_ASYNC]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    """Loads the extension when it is first used: `fletching.abi` does without."""
    if name not in (*_NATIVE, *_ASYNC):
        raise AttributeError(f"module 'fletching' has no attribute '{name}'")
    names: tuple[str, ...] = _NATIVE if name in _NATIVE else _ASYNC
    module = importlib.import_module(f"fletching.{'_core' if name in _NATIVE else '_async'}")
    globals().update({each: getattr(module, each) for each in names})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_NATIVE, *_ASYNC})
