# SPDX-License-Identifier: Apache-2.0
"""Counts of pending releases."""

from __future__ import annotations

from typing import NamedTuple


class PendingReleases(NamedTuple):
    """Counts of arrays in this process whose release waits for a stream."""

    pending: int
    """Arrays whose stream has not finished the work yet."""
    refused: int
    """Of these, arrays for which the last driver query failed."""
    running: int
    """Arrays whose release is due or has not returned."""
    leaked: int
    """Arrays that could neither be deferred nor waited for."""
    last_refusal: str
    """The driver's latest error about an event; empty if there was none."""
    inherited_events: int
    """Events not destroyed by a release in a child of fork."""
