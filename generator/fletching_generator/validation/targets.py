"""The target of `fletching validate`: a function, the subjects of a library, or a Python object."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import ProgramError, UsageError
from ..installation import find_program
from .runner import PROGRAM

_KINDS = ("array", "device-array", "stream", "device-stream", "async", "tensor")
ROLES = (
    *(f"{kind}-{party}" for party in ("producer", "consumer") for kind in _KINDS),
    "legacy-tensor-consumer",
)
_PYTHON_KINDS = ("array", "device-array", "stream", "device-stream", "tensor", "legacy-tensor")
_LIBRARY = "libfletching_validate.so"  # beside the program
_HOST = Path(__file__).with_name("host_main.py")
_MOST_HANGS = 3  # each takes --timeout seconds
LEVELS = ("protocol", "shape", "data")


@dataclass(frozen=True)
class Target:
    name: str  # "count_stream in libcount.so as stream-producer"
    file: str  # "libcount.so": for reports that name files
    arguments: tuple[str, ...]  # of fletching-validate
    environment: tuple[tuple[str, str], ...] = ()


def refuse_unused(options: argparse.Namespace) -> None:
    """Raises UsageError unless there is one target, and for an option that it does not use."""
    function, python = options.target, options.python
    targets = [each for each in (function, options.subject, python, options.replay) if each]
    if not targets:
        raise UsageError(
            "validate: no target: expected LIBRARY:FUNCTION --as ROLE, --subject LIBRARY, "
            "--python MODULE:EXPRESSION, or --replay FILE"
        )
    if len(targets) > 1:
        known = "LIBRARY:FUNCTION, --subject, --python and --replay"
        raise UsageError(f"validate: two targets: expected one of {known}")
    plays = not options.replay
    library = "LIBRARY:FUNCTION or --python"
    for name, value, is_used, needed in (
        ("--as", options.role, function or (python and options.consumes), f"{library} --consumes"),
        ("--level", options.level, function or python, library),
        ("--group", options.group, options.subject, "--subject"),
        ("--consumes", options.consumes, python, "--python"),
        ("--interpreter", options.interpreter, python, "--python"),
        ("--case", options.case, plays, f"{library}, or --subject"),
        ("--skip", options.skip, plays, f"{library}, or --subject"),
        ("--record", options.record, plays, f"{library}, or --subject"),
    ):
        if value and not is_used:
            raise UsageError(f"validate: {name}: expected it with {needed}")


def target_of(options: argparse.Namespace) -> Target:
    """Returns the target that the options name. Raises UsageError."""
    if options.subject:
        return _subject(options)
    if options.python:
        return _python(options)
    return _function(options)


def _common(options: argparse.Namespace) -> tuple[str, ...]:
    case = ("--case", options.case) if options.case else ()
    return "--seconds", str(options.timeout), "--most-hangs", str(_MOST_HANGS), *case


def _skipped(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(part for name in options.skip for part in ("--skip", name))


def _level(options: argparse.Namespace) -> int:
    return LEVELS.index(options.level or LEVELS[-1])


def _subject(options: argparse.Namespace) -> Target:
    groups = [part for group in options.group for part in ("--group", group)]
    library = _library(options.subject)
    played = (*_common(options), *_skipped(options))
    return Target(options.subject, options.subject, (*played, *groups, library))


def _function(options: argparse.Namespace) -> Target:
    library, _, function = options.target.rpartition(":")
    if not library or not function:
        raise UsageError(f"validate: target: expected LIBRARY:FUNCTION, got '{options.target}'")
    if options.role is None:
        raise UsageError(f"validate: no role: expected --as with one of {', '.join(ROLES)}")
    level = str(_level(options))
    call = ("--function", function, "--as", options.role, "--level", level)
    name = f"{function} in {library} as {options.role}"
    played = (*_common(options), *_skipped(options))
    return Target(name, library, (*played, *call, _library(library)))


def _python(options: argparse.Namespace) -> Target:
    """A consumer has the role of --as, by default that of a stream."""
    module, _, expression = options.python.partition(":")
    if not module or not expression:
        text = f"expected MODULE:EXPRESSION, got '{options.python}'"
        raise UsageError(f"validate: --python: {text}")
    kind = ""
    if options.consumes:
        kind, _, party = (options.role or "stream-consumer").rpartition("-")
        if party != "consumer" or kind not in _PYTHON_KINDS:
            known = ", ".join(f"{each}-consumer" for each in _PYTHON_KINDS)
            raise UsageError(f"validate: --as {options.role}: expected one of {known}")
    library = Path(find_program(PROGRAM)).with_name(_LIBRARY)
    if not library.is_file():
        raise ProgramError(f"{library} is not there: expected it beside {PROGRAM}")
    target = {
        "python": options.python,
        "consumes": kind,
        "skip": options.skip,
        "level": _level(options),
        "library": str(library),
    }
    interpreter = options.interpreter or sys.executable
    arguments = (*_common(options), "--host", interpreter, str(_HOST))
    environment = (("FLETCHING_VALIDATE_TARGET", json.dumps(target)),)
    role = f" as {kind}-consumer" if kind else ""
    return Target(f"{options.python}{role}", module, arguments, environment)


def _library(name: str) -> str:
    """Returns the name for the loader: the path of a file, or a name that the loader looks up."""
    path = Path(name)
    if path.is_file():
        return str(path.resolve())
    if path.name != name:
        raise UsageError(f"validate: {name}: no such file: expected a shared library")
    return name
