# SPDX-License-Identifier: Apache-2.0
"""A violation in a dictionary of the CUDA Array Interface."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A violated rule; docs/reference/cuda-array-interface.md lists all rules."""

    rule: str
    """The id of the rule, "cuda-array-interface.stream-zero"."""
    key: str
    """The key: "stream", or "mask.stream" for the mask's key."""
    severity: str
    """"error" or "warning"."""
    found: str
    hint: str

    def __str__(self) -> str:
        return f"{self.key or 'dictionary'}: {self.found}; {self.hint} [{self.rule}]"
