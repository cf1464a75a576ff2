# SPDX-License-Identifier: Apache-2.0
"""The exception of the package."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class Error(OSError):
    """An error of a producer, a consumer or a device; `errno` is its code, `strerror` its message.

    `metadata` contains the metadata that an async producer sent with its error; otherwise it is
    empty. `send_async` sends the metadata that you set there with the error. Arrow C device data
    interface, "Async Device Stream Interface".
    """

    metadata: Mapping[bytes | str, bytes | str] = MappingProxyType({})


Error.__module__ = "fletching"
