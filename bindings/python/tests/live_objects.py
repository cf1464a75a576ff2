"""Objects that async streams leave behind in Python."""

from __future__ import annotations

import gc
import time

from fletching import AsyncDeviceArrayStream, _callbacks
from fletching._async import _Sender, _Wake

_A_HANG = 60.0  # seconds


def alive() -> set[object]:
    """The objects of async streams, and the numbers of the implemented structs."""
    gc.collect()
    kinds = (_Wake, _Sender, AsyncDeviceArrayStream)
    objects = {each for each in gc.get_objects() if isinstance(each, kinds)}
    return objects | {*_callbacks._implemented}


def leaked(before: set[object]) -> set[object]:
    """Returns the objects that are alive and were not `before`.

    Waits for the thread of the streams: it drops its references to a stream after the loop has
    learned of the end.
    """
    end = time.monotonic() + _A_HANG
    while (found := alive() - before) and time.monotonic() < end:
        time.sleep(0)
    return found
