"""The target of `fletching validate`: a function, the subjects of a library, or a Python object."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError

ROLES = tuple(
    f"{kind}-{party}"
    for party in ("producer", "consumer")
    for kind in ("array", "device-array", "stream", "device-stream", "async", "tensor")
)
_MOST_HANGS = 3  # each takes --timeout seconds
LEVELS = ("protocol", "shape", "data")


@dataclass(frozen=True)
class Target:
    name: str  # "count_stream in libcount.so as stream-producer"
    file: str  # "libcount.so": for reports that name files
    arguments: tuple[str, ...]  # of fletching-validate
    environment: tuple[tuple[str, str], ...] = ()


def target_of(options: argparse.Namespace) -> Target:
    """Returns the target that the options name. Raises UsageError."""
    if options.subject and options.target:
        raise UsageError("validate: two targets: expected TARGET or --subject, got both")
    if options.subject:
        return _subject(options)
    if options.target:
        return _function(options)
    raise UsageError(
        "validate: no target: expected LIBRARY:FUNCTION --as ROLE, or --subject LIBRARY"
    )


def _common(options: argparse.Namespace) -> tuple[str, ...]:
    case = ("--case", options.case) if options.case else ()
    return "--seconds", str(options.timeout), "--most-hangs", str(_MOST_HANGS), *case


def _subject(options: argparse.Namespace) -> Target:
    groups = [part for group in options.group for part in ("--group", group)]
    library = _library(options.subject)
    return Target(options.subject, options.subject, (*_common(options), *groups, library))


def _function(options: argparse.Namespace) -> Target:
    library, _, function = options.target.rpartition(":")
    if not library or not function:
        raise UsageError(f"validate: target: expected LIBRARY:FUNCTION, got '{options.target}'")
    if options.role is None:
        raise UsageError(f"validate: no role: expected --as with one of {', '.join(ROLES)}")
    level = str(LEVELS.index(options.level))
    call = ("--function", function, "--as", options.role, "--level", level)
    name = f"{function} in {library} as {options.role}"
    return Target(name, library, (*_common(options), *call, _library(library)))


def _library(name: str) -> str:
    """Returns the name for the loader: the path of a file, or a name that the loader looks up."""
    path = Path(name)
    if path.is_file():
        return str(path.resolve())
    if path.name != name:
        raise UsageError(f"validate: {name}: no such file: expected a shared library")
    return name
