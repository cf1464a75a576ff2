"""Errors in the input, one line each."""

from __future__ import annotations

from dataclasses import dataclass

# The exit codes of every command: success, found mistakes, could not run.
FINE, FOUND, CANNOT_RUN = 0, 1, 2


@dataclass(frozen=True)
class Mistake:
    """One mistake in the input."""

    file: str  # "spec/devices.yaml"
    line: int  # 12
    key: str  # "devices[3].value"
    problem: str  # "3 is already the value of 'cuda_host'"
    hint: str  # "use another number"

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}: {self.key}: {self.problem}; hint: {self.hint}"
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)  # always one line


class SpecError(Exception):
    """The mistakes found in one run, at least one, in the order of their lines."""

    def __init__(self, *mistakes: Mistake) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))


class TemplateError(Exception):
    """A mistake in a template or in a filter called by it."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")


class UsageError(Exception):
    """The command line names something unknown; the message lists the known values."""


class ProgramError(UsageError):
    """A C++ program is missing or cannot run on this machine."""
