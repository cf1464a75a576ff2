"""Writes the results as a table, to the terminal and to docs/measured/mutants.md."""

from __future__ import annotations

import datetime
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import verdicts
from builds import BUILDS, HOMES, LANGUAGES
from mutations import Mutant
from verdicts import Verdict

_MARKS = {
    verdicts.KILLED: "killed",
    verdicts.EQUIVALENT: "same ABI",
    verdicts.SURVIVED: "SURVIVED",
    verdicts.NO_LINE: "NO LINE",
    verdicts.CRASH: "CRASH",
    verdicts.COMPILE_ERROR: "NO BUILD",
    "": "-",
}
# Title, command, and the folder where it runs.
_VERSIONS = (
    *((home.title, home.toolchain.version, home.folder) for home in HOMES.values()),
    ("pyarrow", ".venv/bin/python -c 'import pyarrow; print(pyarrow.__version__)'", "."),
)


def in_order(results: Sequence[Verdict], mutants: Sequence[str]) -> list[Verdict]:
    """Sorts by the order of these mutants, then by language."""
    place = {name: number for number, name in enumerate(mutants)}
    return sorted(results, key=lambda v: (place[v.mutant], LANGUAGES.index(v.language)))


def as_text(results: Sequence[Verdict]) -> str:
    rows = _rows(results)
    width = max((len(row[0]) for row in rows), default=0)
    lines = [
        row[0].ljust(width) + "".join("  " + cell.ljust(9) for cell in row[1:]) for row in rows
    ]
    return "\n".join([*lines, "", *(" ".join(row) for row in _summary(results))])


def _rows(results: Sequence[Verdict]) -> list[list[str]]:
    found = {(v.mutant, v.language): v.result for v in results}
    rows = [["mutant", *LANGUAGES]]
    for mutant in dict.fromkeys(v.mutant for v in results):
        rows.append([mutant, *(_MARKS[found.get((mutant, name), "")] for name in LANGUAGES)])
    return rows


def _summary(results: Sequence[Verdict]) -> list[list[str]]:
    rows = []
    for language in LANGUAGES:
        own = [v.result for v in results if v.language == language]
        if own:
            counts = (f"{own.count(name)} {name}" for name in verdicts.ALL if name in own)
            rows.append([f"{language}:", f"{len(own)} mutants:", ", ".join(counts)])
    return rows


def write_docs(
    root: Path, results: Sequence[Verdict], derived: Sequence[Mutant], minutes: float | None
) -> None:
    """Writes the report of a run, with its date and tool versions."""
    tried = len({v.mutant for v in results})
    kinds = [build.kind for build in BUILDS for _ in build.runs]
    cells = sum(kinds.count(mutant.kind) for mutant in derived)
    extent = (
        "Every mutant in every language that has a test for it; - has none."
        if len(results) == cells
        else f"Not a full run: {len(results)} of {cells} cells."
    )
    lasted = ", in several runs" if minutes is None else f" in {minutes:.0f} minutes"
    lines = [
        "# Mutants: the tests of the tables can fail",
        "",
        "Printed by `make mutants`; [tests/mutants](../../tests/mutants/README.md) says how. "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {platform.machine()}, "
        f"{len(derived)} mutants derived from the spec, {tried} tried{lasted}. {extent}",
        "",
        *(f"- {name}: {_version(root / at, command)}" for name, command, at in _VERSIONS),
        "",
        "The good spec: no failure in any language that was run.",
        "",
        *(f"- {' '.join(row)}" for row in _summary(results)),
        "",
        "*killed*: the test failed with a line of the oracle that names the struct and the field, "
        "or the macro; of *event*, *runtime* and *query*, with a line of the test that asked the "
        "vendor's own library (for CUDA and HIP a stand-in) about an event. *same ABI*: no "
        "test of the ABI can tell; "
        "[equivalents.yaml](../../tests/mutants/equivalents.yaml) says why.",
        "",
    ]
    header, *rows = _rows(results)
    lines.append(_markdown(header))
    lines.append(_markdown(["---"] * len(header)))
    lines += [_markdown([f"`{row[0]}`", *row[1:]]) for row in rows]
    path = root / "docs" / "measured" / "mutants.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _markdown(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _version(folder: Path, command: str) -> str:
    result = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()[0]
