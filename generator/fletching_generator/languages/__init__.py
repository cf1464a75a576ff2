"""One module per language: which files it has, and how it spells a type.

Each module offers `outputs(spec)`, the list of its files, and `FILTERS`, what its templates call.
"""

from __future__ import annotations

from ..render import Module
from . import c, cpp, go, java, python, rust
from .cpp import runtimes as cpp_runtimes

LANGUAGES: tuple[Module, ...] = (c, cpp, cpp_runtimes, go, java, python, rust)
