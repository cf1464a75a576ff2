"""The one exception of the generator: something a person has to mend, said in one line."""

from __future__ import annotations


class SpecError(Exception):
    """A mistake in the input: file, line, key, what is wrong and how to mend it."""

    def __init__(self, file: str, line: int, key: str, problem: str, mend: str) -> None:
        self.file = file
        self.line = line
        self.key = key
        self.problem = problem
        self.mend = mend
        super().__init__(f"{file}:{line}: {key}: {problem}; {mend}")


class SpecErrors(Exception):
    """Several mistakes found in one reading, in the order of their lines."""

    def __init__(self, errors: list[SpecError]) -> None:
        self.errors = errors
        super().__init__("\n".join(str(error) for error in errors))
