"""For all tests of Python."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """What pytest keeps is left out of the garbage collections of the tests."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """What is left at the end is collected then: nanobind reports the rest."""
    gc.unfreeze()
