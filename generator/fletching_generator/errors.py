"""Errors in the input, one line each."""

from __future__ import annotations

from dataclasses import dataclass

# The exit codes of every command: fine or done, found something wrong, could not run.
FINE, FOUND, CANNOT_RUN = 0, 1, 2


@dataclass(frozen=True)
class Mistake:
    """One thing that a person has to fix."""

    file: str  # "spec/devices.yaml"
    line: int  # 12
    key: str  # "devices[3].value"
    problem: str  # "3 is already the value of 'cuda_host'"
    hint: str  # "use another number"

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}: {self.key}: {self.problem}; hint: {self.hint}"
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)  # one line, always


class SpecError(Exception):
    """The mistakes found in one reading, in the order of their lines; at least one."""

    def __init__(self, *mistakes: Mistake) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(str(mistake) for mistake in mistakes))


class TemplateError(Exception):
    """A template, or a filter that it calls, is wrong."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")


class UsageError(Exception):
    """The command line asks for something that does not exist; the text says what does."""
