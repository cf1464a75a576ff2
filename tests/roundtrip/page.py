"""The matrix as a page without a server or network access: build/roundtrip.html."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from provenance import Provenance
from summary import Group, failures, groups, headline, place
from verdicts import ABSENT, LEGEND, PASSED, UNSUPPORTED, Verdict

# The choices of the filter with their letters.
STATES = {
    "wrong": "".join(letter for letter in LEGEND if letter not in PASSED + ABSENT + UNSUPPORTED),
    "right": ".",
    "stand-in": "s",
    "limit": "-",
    "absent": ABSENT,
    "not-supported": UNSUPPORTED,
}


def write_page(
    path: Path,
    languages: Sequence[str],
    verdicts: Sequence[Verdict],
    problems: Sequence[str],
    made: Provenance,
) -> None:
    """Replaces the file atomically."""
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.policies["json.dumps_kwargs"] = {}  # in the order of the matrix
    text = environment.get_template("page.html").render(
        languages=languages,
        groups=groups(verdicts),
        summary=_summary(languages, verdicts),
        headline=headline(verdicts),
        made=made,
        failures=[*failures(verdicts), *problems],
        states=STATES,
        data=_data(languages, verdicts),
    )
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _summary(
    languages: Sequence[str], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, list[Group]]]:
    for language in languages:
        own = [verdict for verdict in verdicts if verdict.cell.key.language == language]
        yield language, [Group.of(own, name) for name in groups(verdicts)]


def _data(languages: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The data for the page's script. A cell is a list in the field order of `Cell`."""
    reasons: dict[str, int] = {}
    found: dict[str, dict[str, Any]] = {}
    for verdict in verdicts:
        cell = verdict.cell
        group, row, direction = place(cell.key)
        if cell.key.is_device or cell.key.is_corpus:
            row = f"{row} {cell.key.case}"
        table = found.setdefault(group, {"name": group, "directions": [], "rows": {}})
        if direction not in table["directions"]:
            table["directions"].append(direction)
        table["rows"].setdefault(row, []).append(
            [
                languages.index(cell.key.language),
                table["directions"].index(direction),
                verdict.letter,
                cell.status,
                reasons.setdefault(cell.reason, len(reasons)),
                cell.asserted,
                cell.releases,
            ]
        )
    return {
        "languages": languages,
        "legend": LEGEND,
        "states": {letter: state for state, letters in STATES.items() for letter in letters},
        "reasons": list(reasons),
        "groups": list(found.values()),
    }
