"""Common helpers of the languages for runtimes: names, and results of functions."""

from __future__ import annotations

import re

from ..reading.types import Constant
from .model import Runtime

BUILT_IN = ("size_t",)  # types of the table that exist in every language

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Vendors' words that are not split at their capitals.
_WHOLE = {"HtoD": "Htod", "DtoH": "Dtoh", "IDs": "Ids"}


def snake(name: str) -> str:
    """Returns cu_stream_wait_event for cuStreamWaitEvent: some of the vendors' names are macros."""
    for word, whole in _WHOLE.items():
        name = name.replace(word, whole)
    return _WORD.sub("_", name).lower()


def statuses(runtime: Runtime) -> list[Constant]:
    """Returns the status constants, one per number."""
    assert runtime.status is not None
    found: dict[int | str, Constant] = {}
    for constant in runtime.constants:
        if constant.type == runtime.status.name:
            found.setdefault(constant.value, constant)
    return list(found.values())
