"""One module per language: which files it has, and how it spells a type.

Each module offers `outputs(spec)`, the list of its files, and `FILTERS`, what its templates call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..model import Spec
from ..render import Output
from . import c, cpp


class Language(Protocol):
    @property
    def FILTERS(self) -> Mapping[str, Callable[..., Any]]: ...  # noqa: N802

    def outputs(self, spec: Spec) -> list[Output]: ...


LANGUAGES: tuple[Language, ...] = (c, cpp)
