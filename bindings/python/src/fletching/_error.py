# SPDX-License-Identifier: Apache-2.0
"""The exception of the package."""

from __future__ import annotations


class Error(OSError):
    """What a producer, a consumer or a device reports: `errno`, and `strerror` says why."""


Error.__module__ = "fletching"
