"""Runs the checks of peers.py through the Python package `fletching`: every tensor and every CUDA
array passes through its objects in both directions."""

from __future__ import annotations

import importlib
from typing import Any

from peer_library import NEW, Library, Source


def import_package() -> Any:
    """Imports the installed package, or the one on PYTHONPATH. Raises ImportError."""
    return importlib.import_module("fletching._core")


class Package(Library):
    """A Library that goes through the package."""

    package: Any = None

    def source(self) -> PackageSource:
        return PackageSource(self)

    def take_dlpack(self, other: Any, expected: int = NEW) -> int:
        array = self.package.from_dlpack(other, stream=self.stream())
        return super().take_dlpack(array, expected)

    def take_cuda_array(self, other: Any, expected: int = NEW) -> int:
        array = self.package.from_cuda_array_interface(other)
        return super().take_cuda_array(array, expected)


class PackageSource(Source):
    """A Source with objects of the package, whose events are behind the gate."""

    library: Package

    @property
    def tensor(self) -> Any:
        return self.library.package.from_dlpack(super().tensor, stream=self.library.stream())

    @property
    def described(self) -> Any:
        return self.library.package.from_cuda_array_interface(super().described)
