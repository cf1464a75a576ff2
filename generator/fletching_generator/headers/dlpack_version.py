"""DLPack versions: as strings in the spec, as the spec's own version, and as macros of dlpack.h."""

from __future__ import annotations

from ..spec.model import Declarations
from .facts import Run

Version = tuple[int, int]  # (1, 3): major and minor

_MACROS = ("DLPACK_MAJOR_VERSION", "DLPACK_MINOR_VERSION")


def parse_version(text: str) -> Version:
    """Returns (1, 3) for "1.3", the spelling of `since` in the DLPack spec."""
    major, minor = map(int, text.split("."))
    return major, minor


def spec_version(spec: Declarations) -> Version:
    known = {constant.name: constant.value for constant in spec.constants}
    major, minor = (int(known[name]) for name in _MACROS)
    return major, minor


def header_version(run: Run) -> Version:
    """Returns (0, 0) before 1.0, when dlpack.h lacked the macros or named one differently."""
    major, minor = (run.macros[name].value if name in run.macros else None for name in _MACROS)
    return (0, 0) if major is None or minor is None else (major, minor)
