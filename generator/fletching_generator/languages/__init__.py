"""One module per language: which files it has, and how it spells a type.

Each module offers `outputs(spec)`, the list of its files, and `FILTERS`, what its templates call.
"""

from __future__ import annotations

from typing import Protocol

from ..model import Spec
from ..render import Filters, Output
from . import (
    async_diagram,
    async_docs,
    c,
    cpp,
    cpp_runtimes,
    cuda_array_interface,
    docs,
    go,
    java,
    maps,
    python,
    runtimes,
    rust,
    traces,
)


class Language(Protocol):
    @property
    def FILTERS(self) -> Filters: ...  # noqa: N802

    def outputs(self, spec: Spec) -> list[Output]: ...


LANGUAGES: tuple[Language, ...] = (
    async_diagram,
    async_docs,
    c,
    cpp,
    cpp_runtimes,
    cuda_array_interface,
    docs,
    maps,
    go,
    java,
    python,
    runtimes,
    rust,
    traces,
)
