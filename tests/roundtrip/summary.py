"""The results of a run: a row per language, a column per group of cells, and the failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from cells import Key
from verdicts import ABSENT, UNSUPPORTED, Verdict

MOST_LINES = 40


@dataclass(frozen=True)
class Group:
    """The cells of one language in one column of the summary."""

    name: str
    right: int
    due: int  # excludes the next two
    not_due: int  # may be absent
    unsupported: int
    standin: int

    @staticmethod
    def of(verdicts: Sequence[Verdict], name: str) -> Group:
        own = [verdict for verdict in verdicts if place(verdict.cell.key)[0] == name]
        right = sum(verdict.passed for verdict in own)
        not_due = sum(verdict.letter in ABSENT for verdict in own)
        unsupported = sum(verdict.letter in UNSUPPORTED for verdict in own)
        standin = sum(verdict.letter == "s" for verdict in own)
        return Group(name, right, len(own) - not_due - unsupported, not_due, unsupported, standin)

    def __str__(self) -> str:
        return f"{self.right}/{self.due}" if self.due else ""


def place(key: Key) -> tuple[str, str, str]:
    """The group, row and direction of a cell in the matrix."""
    if key.is_device:
        return "devices", key.backend, key.direction
    if key.is_corpus:
        return "corpus", key.direction, "case"
    group = "structs" if key.struct else key.peer or "cases"
    return group, key.struct or key.case, key.direction


def groups(verdicts: Sequence[Verdict]) -> list[str]:
    return list(dict.fromkeys(place(verdict.cell.key)[0] for verdict in verdicts))


def table(languages: Sequence[str], verdicts: Sequence[Verdict]) -> Table:
    names = groups(verdicts)
    last_names = ("on a stand-in", "not supported", "not yet")
    result = Table("language", *names, *last_names, box=box.SIMPLE, pad_edge=False)
    for language in languages:
        own = [verdict for verdict in verdicts if verdict.cell.key.language == language]
        found = [Group.of(own, name) for name in names]
        counts = (f"[{'green' if g.right == g.due else 'red'}]{g}[/]" for g in found)
        counted = [(g.standin, g.unsupported, g.not_due) for g in found]
        last = [sum(column) for column in zip(*counted, strict=True)]
        result.add_row(language, *counts, *(str(count) if count else "" for count in last))
    return result


def headline(verdicts: Sequence[Verdict]) -> str:
    """Counts the corpus cells separately."""
    corpus = [verdict for verdict in verdicts if verdict.cell.key.is_corpus]
    others = [verdict for verdict in verdicts if not verdict.cell.key.is_corpus]
    limits = f", {_count(others, '-')} limits of peers" if _count(others, "-") else ""
    text = (
        f"{_passed(others):,} of {len(others):,} cells are right: {_count(others, '.'):,} real, "
        f"{_count(others, 's'):,} on a stand-in{limits}; {_count(others, ABSENT):,} absent"
    )
    if not corpus:
        return text
    not_yet = f", {_count(corpus, ABSENT):,} not yet" if _count(corpus, ABSENT) else ""
    return (
        f"{text}; corpus: {_passed(corpus):,} of {len(corpus):,} right, "
        f"{_count(corpus, UNSUPPORTED):,} not supported{not_yet}"
    )


def _passed(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.passed for verdict in verdicts)


def _count(verdicts: Sequence[Verdict], letters: str) -> int:
    return sum(verdict.letter in letters for verdict in verdicts)


def failures(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One line per failed cell, grouped by language and reason."""
    reasons: dict[tuple[str, str], list[Key]] = {}
    for verdict in verdicts:
        if verdict.failed:
            cell = verdict.cell
            reasons.setdefault((cell.key.language, cell.reason), []).append(cell.key)
    for (_, reason), keys in reasons.items():
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{keys[0]}{more}: {' '.join(reason.split())}"
