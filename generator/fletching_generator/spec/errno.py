"""The error numbers of spec/errno.yaml, and the exceptions of each language mapped to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import Mistake, SpecError
from ..reading.documents import Document

System: TypeAlias = Literal["linux", "darwin", "windows"]
SYSTEMS: tuple[System, ...] = ("linux", "darwin", "windows")


@dataclass(frozen=True)
class ErrorNumber:
    name: str  # "ENOSYS"
    linux: int  # 38
    darwin: int  # 78
    windows: int  # 40: of the UCRT
    doc: str  # "The function is not implemented."

    @property
    def values(self) -> tuple[int, ...]:
        """The values in the order of SYSTEMS."""
        return self.linux, self.darwin, self.windows

    @property
    def same_everywhere(self) -> bool:
        return len(set(self.values)) == 1


@dataclass(frozen=True)
class ErrorClass:
    error: str  # "ENOSYS"
    doc: str  # "Not implemented"
    exceptions: dict[str, tuple[str, ...]]  # {"go": ("errors.ErrUnsupported",), ...}


@dataclass(frozen=True)
class ErrorTable:
    errors: tuple[ErrorNumber, ...]
    classes: tuple[ErrorClass, ...]
    other: str  # "EIO": for exceptions in no class

    def of(self, language: str) -> dict[str, tuple[str, ...]]:
        """Returns the exceptions of a language by error number, omitting numbers without any."""
        found = {entry.error: entry.exceptions.get(language, ()) for entry in self.classes}
        return {error: names for error, names in found.items() if names}


def read_errors(document: Document) -> ErrorTable:
    """Returns the table. Raises SpecError with all mistakes, in the order of the lines."""
    content = document.content
    table = ErrorTable(
        tuple(ErrorNumber(**entry) for entry in content["errors"]),
        tuple(_class(entry) for entry in content["classes"]),
        content["other"],
    )
    mistakes: list[Mistake] = []
    report = document.reporter(mistakes)
    for key in ("name", *SYSTEMS):
        owners: dict[str | int, str] = {}
        for index, error in enumerate(table.errors):
            if (value := getattr(error, key)) in owners:
                problem = f"{value} is already {owners[value]}'s"
                report(["errors", index, key], problem, "every error has its own")
            owners[value] = error.name
    names = {error.name for error in table.errors}
    named: list[tuple[list[str | int], str]] = [
        (["classes", index, "error"], entry.error) for index, entry in enumerate(table.classes)
    ]
    named.append((["other"], table.other))
    for keys, name in named:
        if name not in names:
            report(keys, f"'{name}' is not defined", "name one of 'errors'")
    _check_exceptions(table, mistakes, document)
    if mistakes:
        raise SpecError(*sorted(mistakes, key=lambda mistake: mistake.line))
    return table


def _class(entry: dict) -> ErrorClass:  # type: ignore[type-arg]
    exceptions = {language: tuple(names) for language, names in entry["exceptions"].items()}
    return ErrorClass(entry["error"], entry["doc"], exceptions)


def _check_exceptions(table: ErrorTable, mistakes: list[Mistake], document: Document) -> None:
    """Checks that every class covers every language, and that no exception is in two classes."""
    report = document.reporter(mistakes)
    languages = {language for entry in table.classes for language in entry.exceptions}
    seen: dict[tuple[str, str], str] = {}
    for index, entry in enumerate(table.classes):
        keys: list[str | int] = ["classes", index, "exceptions"]
        for language in sorted(languages - {*entry.exceptions}):
            report(keys, f"'{language}' is missing", f"add '{language}: []' if it has none")
        for language, names in entry.exceptions.items():
            for name in names:
                if (language, name) in seen:
                    problem = f"'{name}' is already {seen[language, name]}"
                    report([*keys, language], problem, "remove one")
                seen[language, name] = entry.error
