"""The way through each language: what `transit.h` describes, from Python."""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Protocol

import languages
from libraries import declare, load


class Transit(Protocol):
    """Arguments are addresses; send returns the text of an error."""

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str: ...
    def exported(self) -> int: ...
    def released(self) -> int: ...


class NativeTransit:
    """libfletching_transit_LANGUAGE."""

    def __init__(self, language: str) -> None:
        library = load(f"libfletching_transit_{language}.so")
        pointers = [ctypes.c_void_p] * 4
        self._message = ctypes.create_string_buffer(1024)
        self._send = declare(
            library,
            "FletchingTransitArray",
            ctypes.c_int,
            *pointers,
            ctypes.c_char_p,
            ctypes.c_size_t,
        )
        self._exported = declare(library, "FletchingTransitExported", ctypes.c_int64)
        self._released = declare(library, "FletchingTransitReleased", ctypes.c_int64)

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        capacity = len(self._message)
        code = self._send(schema, array, out_schema, out_array, self._message, capacity)
        text = self._message.value.decode("utf-8", "backslashreplace")
        return f"errno {code}: {text}" if code != 0 else ""

    def exported(self) -> int:
        return int(self._exported())

    def released(self) -> int:
        return int(self._released())


def load_transit(column: str) -> Transit:
    """The transit of the library, or of the Python file in language.toml: its `load(column)`.

    Raises OSError when something is not there.
    """
    home, found = languages.columns(languages.load())[column]
    if found.transit == languages.NATIVE:
        return NativeTransit(column)
    path = languages.ROOT / home.folder / found.transit
    sys.path.insert(0, str(path.parent))  # it may import modules of its folder
    transit: Transit = importlib.import_module(path.stem).load(column)
    return transit
