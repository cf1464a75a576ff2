"""Fixtures and hooks of all Python tests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from standin import Gpu


def pytest_collection_finish() -> None:
    """Excludes pytest's own objects from the tests' garbage collections."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Collects leftover objects at the end; nanobind reports the rest as leaks."""
    gc.unfreeze()


@pytest.fixture
def no_switches() -> Iterator[None]:
    """Prevents thread switches: a thread keeps the GIL until it releases it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    """The GPU of the CUDA stand-in, which is not built everywhere."""
    import standin  # noqa: PLC0415

    with standin.gpu() as device:
        yield device
        gc.collect()
