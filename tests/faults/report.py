"""The outcome of the faults, as Markdown and JSON."""

from __future__ import annotations

import datetime
import platform
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faults import Row

NOT_CALLED = "no source of the kit calls it"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a failure that is not a single failed call."""

    title: str
    backend: str
    text: str
    problem: str  # "" if it was handled


@dataclass(frozen=True)
class Result:
    rows: list[Row]
    outcomes: list[Outcome]
    is_sample: bool

    @property
    def calls(self) -> int:
        return sum(row.calls for row in self.rows)

    @property
    def problems(self) -> list[str]:
        return [f"{r.backend}: {r.function}: {text}" for r in self.rows for text in r.problems] + [
            f"{o.backend}: {o.title}: {o.problem}" for o in self.outcomes if o.problem
        ]

    @property
    def is_fine(self) -> bool:
        return not self.problems and self.calls > 0

    @property
    def verdict(self) -> str:
        leaks = sum("alive" in text or "leaks" in text for text in self.problems)
        handled = "all handled" if self.is_fine else f"{len(self.problems)} NOT HANDLED"
        sample = " (a sample)" if self.is_sample else ""
        return f"faults: {self.calls} calls{sample}, {handled}, {leaks} leaks{self._not_called}"

    @property
    def _not_called(self) -> str:
        if self.is_sample:
            return ""
        uncalled = [
            rows
            for rows in _functions(self).values()
            if not any(row.calls or row.cannot_fail for row in rows)
        ]
        return f"; {len(uncalled)} of {len(_functions(self))} functions are not called"


def _functions(result: Result) -> dict[tuple[str, str], list[Row]]:
    functions: dict[tuple[str, str], list[Row]] = {}
    for row in result.rows:
        functions.setdefault((row.runtime, row.function), []).append(row)
    return functions


def _cells(rows: list[Row], is_sample: bool = False) -> tuple[str, str, str, str]:
    """Counts of failed, reported and silent calls, and the outcome as text."""
    silent: Counter[str] = Counter()
    for row in rows:
        silent += row.silent
    reported = sum(row.reported for row in rows)
    total = reported + silent.total()
    if any(row.problems for row in rows):
        words = "NOT HANDLED"
    elif all(row.cannot_fail for row in rows):
        words = "cannot fail: returns nothing"
    elif total == 0:
        words = f"not called: {NOT_CALLED}" if not is_sample else "not called"
    else:
        words = "handled"
    return str(total), str(reported), str(silent.total()), words


def as_json(result: Result) -> dict[str, object]:
    return {
        "date": datetime.date.today().isoformat(),
        "verdict": result.verdict,
        "calls": [
            {
                "runtime": row.runtime,
                "backend": row.backend,
                "function": row.function,
                "failed": row.calls,
                "reported": row.reported,
                "silent": dict(row.silent),
                "cannot_fail": row.cannot_fail,
                "problems": row.problems,
            }
            for row in result.rows
        ],
        "special": [vars(outcome) for outcome in result.outcomes],
    }


def as_text(result: Result) -> str:
    lines = [f"{'runtime':8}{'function':34}{'failed':>7}{'reported':>10}{'silent':>8}  outcome"]
    for (runtime, function), rows in _functions(result).items():
        total, reported, silent, words = _cells(rows, result.is_sample)
        lines.append(f"{runtime:8}{function:34}{total:>7}{reported:>10}{silent:>8}  {words}")
    lines.append("")
    for outcome in result.outcomes:
        words = "NOT HANDLED" if outcome.problem else "handled"
        lines.append(f"{outcome.title:26}{outcome.backend:14}{words}: {outcome.text}")
    lines += ["", *result.problems, result.verdict]
    return "\n".join(lines) + "\n"


def as_page(result: Result) -> str:
    compiler = subprocess.run(
        ["c++", "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]
    lines = [
        "# Faults: every call of a vendor's library fails once",
        "",
        f"Printed by `make faults`; [tests/faults](../../tests/faults/README.md) says how. "
        f"{datetime.date.today().isoformat()}, {platform.machine()}, {compiler}.",
        "",
        result.verdict,
    ]
    runtimes = list(dict.fromkeys(row.runtime for row in result.rows))
    for runtime in runtimes:
        backends = dict.fromkeys(row.backend for row in result.rows if row.runtime == runtime)
        lines += ["", f"## {runtime}", "", f"Backends: {', '.join(backends)}.", ""]
        lines += ["| function | failed | reported | silent | outcome |", "|---|---|---|---|---|"]
        for (of, function), rows in _functions(result).items():
            if of == runtime:
                lines.append(f"| {function} | {' | '.join(_cells(rows))} |")
    lines += ["", "## What is not one call", "", "| what | backend | outcome |", "|---|---|---|"]
    for outcome in result.outcomes:
        words = outcome.problem or "handled"
        lines.append(f"| {outcome.title} | {outcome.backend} | {words} |")
    return "\n".join(lines) + "\n"
