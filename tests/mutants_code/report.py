"""Writes the results to the terminal and to docs/measured/mutants-code.md."""

from __future__ import annotations

import datetime
import platform
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutant import Mutant
from results import KILLED, NO_BUILD, SURVIVED
from sample import STRATA, stratum_of

EQUIVALENT = "equivalent"  # survived, with a reason in equivalents.yaml
LIMIT = 0.95  # share of killed mutants among those that are not equivalent


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    result: str
    text: str  # the test that detected it, the reason, or a note about a survivor


def problems(verdicts: Sequence[Verdict]) -> list[str]:
    """The reasons why the run fails; empty if it passes."""
    counts = Counter(verdict.result for verdict in verdicts)
    tried = counts[KILLED] + counts[SURVIVED]
    found = [
        f"{v.mutant.place}: survived: expected killed in stratum '{stratum_of(v.mutant).name}'"
        for v in verdicts
        if v.result == SURVIVED and not stratum_of(v.mutant).may_survive
    ]
    if tried and counts[KILLED] < LIMIT * tried:
        share = f"{counts[KILLED]} of {tried}"
        found.append(f"killed: too few: expected at least {LIMIT:.0%}, got {share}")
    return found


def as_text(verdicts: Sequence[Verdict]) -> str:
    lines = [
        f"{v.result}: {line(v.mutant)}\n    {v.text}" for v in verdicts if v.result == SURVIVED
    ]
    width = max(len(row[0]) for row in _rows(verdicts))
    lines += [
        "  ".join((row[0].ljust(width), *(c.rjust(10) for c in row[1:]))) for row in _rows(verdicts)
    ]
    return "\n".join(lines)


def line(mutant: Mutant) -> str:
    return f"{mutant.place}: {mutant.kind} in {mutant.function}: {mutant.before} -> {mutant.after}"


def _rows(verdicts: Sequence[Verdict]) -> list[list[str]]:
    columns = (KILLED, SURVIVED, EQUIVALENT, NO_BUILD)
    rows = [["part", *columns]]
    for stratum in (*STRATA, None):
        own = [v for v in verdicts if stratum is None or stratum_of(v.mutant) is stratum]
        if own:
            counts = Counter(v.result for v in own)
            name = "all" if stratum is None else stratum.name
            rows.append([name, *(str(counts[column]) for column in columns)])
    return rows


def write_docs(root: Path, verdicts: Sequence[Verdict], found: int) -> None:
    page = root / "docs" / "measured" / "mutants-code.md"
    page.write_text(as_page(root, verdicts, found), encoding="utf-8")


def as_page(root: Path, verdicts: Sequence[Verdict], found: int) -> str:
    counts = Counter(verdict.result for verdict in verdicts)
    tried = counts[KILLED] + counts[SURVIVED]
    compiler = subprocess.run(
        ["clang++-19", "--version"], capture_output=True, text=True, check=False
    ).stdout.splitlines()[:1]
    strict = ", ".join(stratum.name for stratum in STRATA if not stratum.may_survive)
    parts = [
        "# Mutants of the code: the tests of the library and of the generator can fail",
        "Printed by `make mutants-code`; [tests/mutants_code](../../tests/mutants_code/README.md) "
        f"says how. {datetime.date.today().isoformat()}, {platform.machine()}, "
        f"{''.join(compiler)}, Python {platform.python_version()}. A seeded sample of "
        f"{len(verdicts)} from {found} mutants.",
        f"{counts[KILLED]} of {tried} that are not equivalent are killed "
        f"({counts[KILLED] / max(tried, 1):.1%}, limit {LIMIT:.0%}). No mutant of the sample may "
        f"survive in {strict}.",
        table(_rows(verdicts)),
        "## Equivalent, with the reason",
        table(_listed(verdicts, EQUIVALENT, "reason")),
        "## Survived",
        table(_listed(verdicts, SURVIVED, "tests")),
        "## Killed, by the first test that noticed",
        table(_listed(verdicts, KILLED, "test")),
    ]
    return "\n\n".join(parts) + "\n"


def _listed(verdicts: Sequence[Verdict], result: str, title: str) -> list[list[str]]:
    own = [verdict for verdict in verdicts if verdict.result == result]
    as_code = result == KILLED
    return [
        ["mutant", title],
        *([code(line(v.mutant)), code(v.text) if as_code else v.text] for v in own),
    ]


def table(rows: Sequence[Sequence[str]]) -> str:
    if len(rows) == 1:
        return "None."
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "| " + " | ".join("---" for _ in rows[0]) + " |", *body])


def code(text: str) -> str:
    """Formats as code. A long text is cut, because the location identifies the place."""
    short = text if len(text) <= 160 else text[:157] + "..."
    mark = "``" if "`" in short else "`"
    return mark + short.replace("|", "\\|") + mark
