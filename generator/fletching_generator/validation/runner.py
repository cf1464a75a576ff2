"""Runs fletching-validate and reads its lines while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from ..errors import ProgramError
from ..installation import INSTALLED, find_program
from .findings import Line

PROGRAM = "fletching-validate"


def run_lines(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Line]:
    """Yields each line of a run. The standard output of the library goes to standard error. Raises
    ProgramError if the program is missing or cannot run on this machine."""
    program = find_program(PROGRAM)
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as lines:
        try:
            process = subprocess.Popen(
                [program, "--lines", f"/dev/fd/{writing}", *arguments],
                pass_fds=[writing],
                stdout=sys.stderr.fileno(),
                env={**os.environ, **_cases(), **environment},
            )
        except OSError as error:
            raise ProgramError(f"{program} cannot run: {error.strerror}") from None
        finally:
            os.close(writing)
        with process:
            yield from _read(lines, sys.stderr)
            if process.wait() not in (0, 1, 2):
                raise ProgramError(f"{program} cannot run: it ended with {process.returncode}")


def _cases() -> dict[str, str]:
    """Names the folder with the cases that a wheel has. A program of a clone knows its own."""
    folder = INSTALLED / "corpus"
    return {"FLETCHING_CASES": str(folder)} if folder.is_dir() else {}


def _read(lines: IO[str], terminal: IO[str]) -> Iterator[Line]:
    """Shows the number of cases on a terminal."""
    shows, played = terminal.isatty(), 0
    for text in lines:
        line: Line = json.loads(text)
        if "begin" in line and shows:
            played += 1
            terminal.write(f"\r\033[Kcase {played}: {line['begin']}")
            terminal.flush()
        yield line
    if shows:
        terminal.write("\r\033[K")
