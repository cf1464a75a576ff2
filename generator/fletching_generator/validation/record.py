"""A recorded run: its target and its lines, which can be judged again without the library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from ..files import replace_file
from .findings import Line
from .targets import Target

_FORMAT = 1


def write_record(path: Path, target: Target, lines: Sequence[Line]) -> None:
    record = {"format": _FORMAT, "target": target.name, "file": target.file, "lines": lines}
    replace_file(path, json.dumps(record, indent=1) + "\n")


def read_record(path: Path) -> tuple[Target, Sequence[Line]]:
    """Raises UsageError for a file that is no record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        found = record["format"]
        if found != _FORMAT:
            raise UsageError(f"validate: {path}: format: expected {_FORMAT}, got {found!r}")
        return Target(record["target"], record["file"], ()), record["lines"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"validate: {path}: expected a file of --record, got {error}") from None
