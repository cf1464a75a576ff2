# SPDX-License-Identifier: Apache-2.0
"""Counts of pending releases."""

from __future__ import annotations

from typing import NamedTuple


class PendingReleases(NamedTuple):
    """Counts of arrays in this process whose release waits for a stream."""

    pending: int
    """Arrays whose stream has not reached the point after which they are released."""
    refused: int
    """Of these, the arrays that the driver last refused to answer for."""
    running: int
    """Arrays whose release is due, or has not returned."""
    leaked: int
    """Arrays whose release can neither be deferred nor wait for the stream."""
    last_refusal: str
    """The driver's last error about an event; empty for none."""
    inherited_events: int
    """Events that a release in a child of fork has left alone."""
