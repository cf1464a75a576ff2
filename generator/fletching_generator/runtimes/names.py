"""The common parts of the languages about runtimes: names, and results of functions."""

from __future__ import annotations

import re

from ..reading.types import Constant
from .model import Runtime

BUILT_IN = ("size_t",)  # types of the table that a language has already

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Words of the vendors' that are not split at their capitals.
_WHOLE = {"HtoD": "Htod", "DtoH": "Dtoh", "IDs": "Ids"}


def snake(name: str) -> str:
    """cuStreamWaitEvent as cu_stream_wait_event: some of the vendors' own names are macros."""
    for word, whole in _WHOLE.items():
        name = name.replace(word, whole)
    return _WORD.sub("_", name).lower()


def statuses(runtime: Runtime) -> list[Constant]:
    """The constants that a function returns, one for each number."""
    assert runtime.status is not None
    found: dict[int | str, Constant] = {}
    for constant in runtime.constants:
        if constant.type == runtime.status.type.name:
            found.setdefault(constant.value, constant)
    return list(found.values())
