"""The verdicts as a table: a row per struct, case, backend or group of the suite, and a column per
language.

The letter of a backend or a group is the worst of its cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from summary import groups, place
from verdicts import ABSENT, LEGEND, PASSED, UNSUPPORTED, WORST_FIRST, Verdict

_MARGIN = 2


def matrix(languages: Sequence[str], verdicts: Sequence[Verdict]) -> Iterator[Text]:
    """The lines of the table and of its legend."""
    letters: dict[tuple[str, str, str, str], str] = {}
    for v in verdicts:
        position = (v.cell.key.language, *place(v.cell.key))
        letters[position] = min(letters.get(position, "."), v.letter, key=WORST_FIRST.index)
    places = list(dict.fromkeys(place(v.cell.key) for v in verdicts))
    first = _MARGIN + max((len(row) for _, row, _ in places), default=0)
    yield Text(_line("", languages, languages, first))
    for group in groups(verdicts):
        directions = _unique(d for g, _, d in places if g == group)
        yield Text(f"{group} ({', '.join(directions)})")
        for row in _unique(r for g, r, _ in places if g == group):
            texts = [
                "".join(letters.get((language, group, row, d), " ") for d in directions)
                for language in languages
            ]
            yield _paint(_line(" " * _MARGIN + row, texts, languages, first), first)
    passed = [_passed(language, verdicts) for language in languages]
    yield Text(_line("passed", passed, languages, first))
    used = [letter for letter in LEGEND if letter in letters.values()]
    yield from map(Text, _device_lines(verdicts))
    yield Text("one letter per direction: " + ", ".join(f"{c} {LEGEND[c]}" for c in used))


def _device_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """One line per backend with its device, or the reason why it did not run."""
    cells = [v.cell for v in verdicts if v.cell.key.is_device and v.letter != "_"]
    for backend in dict.fromkeys(cell.key.backend for cell in cells):
        own = [cell for cell in cells if cell.key.backend == backend]
        statuses = Counter(cell.status for cell in own)
        count = ", ".join(f"{number} {status}" for status, number in statuses.items())
        why = dict.fromkeys(cell.reason for cell in own if cell.status == "absent")
        reasons = f" ({'; '.join(why)})" if why else ""
        yield f"device {backend}: {count}, {sum(cell.asserted for cell in own)} asserted{reasons}"


def _unique(items: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _line(head: str, texts: Sequence[str], languages: Sequence[str], first: int) -> str:
    columns = (text.ljust(max(len(n), 7)) for text, n in zip(texts, languages, strict=True))
    return f"{head:<{first}}  {'  '.join(columns)}".rstrip()


def _passed(language: str, verdicts: Sequence[Verdict]) -> str:
    own = [v for v in verdicts if v.cell.key.language == language]
    return f"{sum(v.passed for v in own)}/{len(own)}"


def _paint(line: str, first: int) -> Text:
    text = Text(line[:first])
    for letter in line[first:]:
        text.append(letter, _style(letter))
    return text


def _style(letter: str) -> str:
    if letter in " " + ABSENT + UNSUPPORTED:
        return ""
    return "green" if letter in PASSED else "red"
