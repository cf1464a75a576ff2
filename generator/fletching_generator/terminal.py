"""Colors for text on a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO

# Returns the text in a color: "red", "green", "yellow", "cyan".
Paint = Callable[[str, str], str]

CHOICES = ("auto", "always", "never")
_CODES = {"red": 31, "green": 32, "yellow": 33, "cyan": 36}


def painter(choice: str, stream: TextIO) -> Paint:
    """Returns the function that colors text for the stream, or leaves it as it is."""
    return _colored if _wants_color(choice, stream) else plain


def plain(text: str, _color: str) -> str:
    return text


def _colored(text: str, color: str) -> str:
    return f"\033[{_CODES[color]}m{text}\033[0m"


def _wants_color(choice: str, stream: TextIO) -> bool:
    """The option comes first, then NO_COLOR, then FORCE_COLOR; an empty variable counts as unset
    (https://no-color.org, https://force-color.org)."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
