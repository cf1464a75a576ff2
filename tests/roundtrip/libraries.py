"""Finds and loads the native libraries of the tests."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def library_path(name: str) -> Path:
    """The path of `name` in the folder $FLETCHING_LIB_DIR, or by default in build/lib."""
    folder = os.environ.get("FLETCHING_LIB_DIR")
    return Path(folder) / name if folder else ROOT / "build" / "lib" / name


def load(name: str) -> ctypes.CDLL:
    """Loads the library. Raises OSError with a hint if it is missing."""
    path = library_path(name)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        hint = "" if path.exists() else "; run `make`, or set FLETCHING_LIB_DIR to its folder"
        raise OSError(f"cannot load {path}{hint} ({error})") from error


def declare(
    library: ctypes.CDLL, name: str, result: type | None, *arguments: type
) -> ctypes._NamedFuncPointer:
    """The function `name` of the library with its C types."""
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments
    return function  # type: ignore[no-any-return]
