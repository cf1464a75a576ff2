# SPDX-License-Identifier: Apache-2.0
"""A finding of `check` and of `validate`."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """A violated rule; docs/reference/rules lists all rules."""

    rule: str
    """The id of the rule, "array.n-buffers-of-type"; "limit.depth" and "limit.structs" for arrays
    beyond the limits of Fletching."""
    path: str
    """The struct, "array.children[2].dictionary"."""
    message: str
    """The expected and the actual value."""
    severity: str = "error"
    """One of "error", "warning" and "note"."""
    party: str = "producer"
    """The violator: "producer" or "consumer"; "both" if unknown."""
    history: str = ""
    """The last calls on a stream with their results, one per line."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message} (rule {self.rule})"
