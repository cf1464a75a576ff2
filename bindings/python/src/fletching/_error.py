# SPDX-License-Identifier: Apache-2.0
"""The exception of the package."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class Error(OSError):
    """The error of a producer, a consumer or a device: `errno`, and `strerror` says why.

    `metadata` is what an async producer has sent with its error, and empty otherwise. What you set
    there is sent with the error by `send_async`. Arrow C device data interface, "Async Device
    Stream Interface".
    """

    metadata: Mapping[bytes | str, bytes | str] = MappingProxyType({})


Error.__module__ = "fletching"
