"""For all tests of Python."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from standin import Gpu


def pytest_collection_finish() -> None:
    """What pytest keeps is left out of the garbage collections of the tests."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Collects leftover objects at the end: nanobind reports the rest."""
    gc.unfreeze()


@pytest.fixture
def no_switches() -> Iterator[None]:
    """A thread that does not give up the GIL keeps it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    """Of the stand-in for CUDA, which is not built everywhere."""
    import standin  # noqa: PLC0415

    with standin.gpu() as device:
        yield device
        gc.collect()
