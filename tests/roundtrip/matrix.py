"""Prints the verdicts as a table: a row per struct, case or backend, a column per language.

A letter of a backend stands for all its cases: for the worst of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cells import Key
from verdicts import ABSENT, LEGEND, PASSED, WORST_FIRST, Verdict

_GREEN, _RED, _PLAIN = "\033[32m", "\033[31m", "\033[0m"
_MARGIN = 2


def matrix(languages: Sequence[str], verdicts: Sequence[Verdict], color: bool) -> Iterator[str]:
    """The lines of the table and of its legend."""
    letters: dict[tuple[str, str, str, str], str] = {}
    for v in verdicts:
        place = (v.cell.key.language, *_place(v.cell.key))
        letters[place] = min(letters.get(place, "."), v.letter, key=WORST_FIRST.index)
    places = list(dict.fromkeys(_place(v.cell.key) for v in verdicts))
    first = _MARGIN + max((len(row) for _, row, _ in places), default=0)
    yield _line("", languages, languages, first)
    for group in dict.fromkeys(group for group, _, _ in places):
        directions = _unique(d for g, _, d in places if g == group)
        yield f"{group} ({', '.join(directions)})"
        for row in _unique(r for g, r, _ in places if g == group):
            texts = [
                "".join(letters.get((language, group, row, d), " ") for d in directions)
                for language in languages
            ]
            yield _paint(_line(" " * _MARGIN + row, texts, languages, first), first, color)
    passed = [_passed(language, verdicts) for language in languages]
    yield _line("passed", passed, languages, first)
    used = [letter for letter in LEGEND if letter in letters.values()]
    yield from _device_lines(verdicts)
    yield "one letter per direction: " + ", ".join(f"{c} {LEGEND[c]}" for c in used)


def _device_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One line per backend: what it ran on, or why it did not."""
    cells = [v.cell for v in verdicts if v.cell.key.is_device and v.letter != "_"]
    for backend in dict.fromkeys(cell.key.backend for cell in cells):
        own = [cell for cell in cells if cell.key.backend == backend]
        statuses = Counter(cell.status for cell in own)
        count = ", ".join(f"{number} {status}" for status, number in statuses.items())
        why = dict.fromkeys(cell.reason for cell in own if cell.status == "absent")
        reasons = f" ({'; '.join(why)})" if why else ""
        yield f"device {backend}: {count}, {sum(cell.asserted for cell in own)} asserted{reasons}"


def failures(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One line per cell that did not pass, those of one language and one reason together."""
    reasons: dict[tuple[str, str], list[Key]] = {}
    for verdict in verdicts:
        if verdict.failed:
            cell = verdict.cell
            reasons.setdefault((cell.key.language, cell.reason), []).append(cell.key)
    for (_, reason), keys in reasons.items():
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        yield f"{keys[0]}{more}: {reason}"


def _place(key: Key) -> tuple[str, str, str]:
    """Group, row and direction."""
    if key.is_device:
        return "devices", key.backend, key.direction
    group = "structs" if key.struct else key.peer or "cases"
    return group, key.struct or key.case, key.direction


def _unique(items: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _line(head: str, texts: Sequence[str], languages: Sequence[str], first: int) -> str:
    columns = (text.ljust(max(len(n), 7)) for text, n in zip(texts, languages, strict=True))
    return f"{head:<{first}}  {'  '.join(columns)}".rstrip()


def _passed(language: str, verdicts: Sequence[Verdict]) -> str:
    own = [v for v in verdicts if v.cell.key.language == language]
    return f"{sum(v.passed for v in own)}/{len(own)}"


def _paint(line: str, first: int, color: bool) -> str:
    if not color:
        return line
    painted = "".join(
        c if c in " " + ABSENT else f"{_GREEN if c in PASSED else _RED}{c}{_PLAIN}"
        for c in line[first:]
    )
    return line[:first] + painted
