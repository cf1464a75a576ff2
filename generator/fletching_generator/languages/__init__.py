"""One folder per language: its module and its templates.

A language is a package in this folder with `outputs(spec)`, the list of its files, and `FILTERS`,
the functions for its templates. No other registration is needed. The files of language `x` are in
`bindings/x/`, except for C and C++.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ..errors import UsageError
from ..render import Module


@cache
def find_languages() -> dict[str, Module]:
    """Returns the languages by folder name, in alphabetical order."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    return {name: _load(name) for name in names}


def _load(name: str) -> Module:
    module = importlib.import_module(f"{__name__}.{name}")
    missing = [what for what in ("outputs", "FILTERS") if not hasattr(module, what)]
    if missing:
        folder = f"generator/fletching_generator/languages/{name}"
        raise UsageError(f"{folder}: the language has no {' and no '.join(missing)}")
    return module
