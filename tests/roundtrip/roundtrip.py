"""Passes data through every language and back: runs the programs and reports their cells.

    roundtrip.py [--language L ...] [--list] [--matrix] [--output FILE]

Prints a summary. Writes all cells to build/roundtrip.json (README.md), and a page that shows them
to build/roundtrip.html; each file is replaced atomically at the end. The output of the programs
goes to build/logs/roundtrip-LANGUAGE-STEP.log.
Exit codes: 0 all is right, 1 a cell or a program failed, 2 it could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path

from cells import Cell, CellError, Key, parse_cell
from devices import NOT_YET, environment, excused
from expected import expected_cells, limited_cells
from libraries import ROOT, library_path
from matrix import matrix
from page import write_page
from programs import LANGUAGES, Command, Language
from progress import Progress, console, showing
from provenance import Provenance, provenance
from summary import MOST_LINES, failures, headline, table
from verdicts import Verdict, absent, judge

LOGS = ROOT / "build" / "logs"
OUTPUT = ROOT / "build" / "roundtrip.json"
# Only a hanging program reaches this limit.
LIMIT_SECONDS = 900
SHOWN_LINES = 15


@dataclass
class Run:
    """The result of one command."""

    cells: list[Cell] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ended: str = "the program ended well"  # explains missing cells


def main(
    arguments: Sequence[str] | None = None, languages: Mapping[str, Language] = LANGUAGES
) -> int:
    options = _parse(arguments, languages)
    chosen = {name: languages[name] for name in languages if name in options.language}
    try:
        expected = {name: expected_cells(name) for name in chosen}
        environment()
    except (OSError, ValueError) as error:
        print(f"roundtrip: {error}", file=sys.stderr)
        return 2
    if options.list:
        for keys in expected.values():
            print(*keys, sep="\n")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    verdicts: list[Verdict] = []
    problems: list[str] = []
    with showing("roundtrip") as progress:
        for found, wrong in run_all(progress, chosen, expected):
            verdicts += found
            problems += wrong
    made = provenance()
    write(options.output, [verdict.cell for verdict in verdicts], made)
    write_page(options.output.with_suffix(".html"), list(chosen), verdicts, problems, made)
    return report(list(chosen), verdicts, problems, options)


def _parse(
    arguments: Sequence[str] | None, languages: Mapping[str, Language]
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Sends data through every language and back, and prints a summary."
    )
    parser.add_argument(
        "--language",
        action="append",
        choices=list(languages),
        help="only this language; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="print the expected cells, run nothing")
    parser.add_argument("--matrix", action="store_true", help="print every cell, too")
    parser.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        help="the file for the cells; the page is written next to it",
    )
    options = parser.parse_args(arguments)
    options.language = options.language or list(languages)
    return options


# --- Running -------------------------------------------------------------------------------------


def run_all(
    progress: Progress, languages: Mapping[str, Language], expected: Mapping[str, Sequence[Key]]
) -> Iterator[tuple[list[Verdict], list[str]]]:
    """In the order of the languages. Homes run in parallel; columns of one home share a build."""
    homes = groupby(languages.items(), lambda column: column[1].folder)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(
            lambda columns: [run_language(progress, n, each, expected[n]) for n, each in columns],
            [list(columns) for _, columns in homes],
        )
        yield from chain.from_iterable(results)


def run_language(
    progress: Progress, name: str, language: Language, expected: Sequence[Key]
) -> tuple[list[Verdict], list[str]]:
    """Runs the commands of a language. Returns its verdicts and other failures."""
    due = [key for key in expected if language.has(key)]
    not_due = [absent(key, NOT_YET, "_") for key in expected if key not in set(due)]
    missing = _what_is_missing(language)
    if missing:
        progress.line(f"roundtrip: {name} absent: {missing}")
        return [absent(key, missing) for key in due] + not_due, []
    steps = language.steps()
    if language.devices:
        on_devices = {**language.devices.environment, **environment()}
        steps["devices"] = replace(language.devices, environment=on_devices)
    began = time.monotonic()
    for step in steps:
        cells_path(name, step).unlink(missing_ok=True)
    with progress.task(name, lambda: (sum(arrived(name, step) for step in steps), len(due))):
        runs = {step: run(progress, name, step, command) for step, command in steps.items()}

    def why_missing(key: Key) -> str:
        step = "abi" if key.struct else "peers" if key.peer else "cases"
        if key.is_device:
            step = "devices"
        if key.is_corpus:
            step = "corpus"
        return f"{step}: {runs[step].ended}" if step in runs else f"{step}: no command"

    cells = [cell for one in runs.values() for cell in one.cells]
    unplayed = {key for key in due if key.direction in language.not_played}
    found = judge(cells, due, why_missing, limited_cells(name), excused(due) | unplayed)
    problems = [f"{name}: {step}: {text}" for step, one in runs.items() for text in one.problems]
    good = not problems and not any(verdict.failed for verdict in found)
    seconds = f"{len(cells)} cells, {time.monotonic() - began:.0f} s"
    progress.line(f"roundtrip: {name:8} {'ok' if good else 'FAILED'} ({seconds})")
    return found + not_due, problems


def _what_is_missing(language: Language) -> str:
    """Describes the missing toolchain; empty if the language can run."""
    probe = subprocess.run(
        ["bash", "-c", language.needs],
        cwd=ROOT / language.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode == 0:
        return ""
    lines = probe.stderr.strip().splitlines()
    return f"{language.hint} ({lines[-1]})" if lines else language.hint


def run(progress: Progress, language: str, step: str, command: Command) -> Run:
    """Runs one command with a separate cells file."""
    log = LOGS / f"roundtrip-{language}-{step}.log"
    path = cells_path(language, step)
    ended = _execute(command, log, path)
    result = read_cells(language, path)
    if ended:
        result.problems.append(ended)
        result.ended = ended
        progress.line(f"roundtrip: {language}: {step}: {ended}", *_end(log))
    return result


def cells_path(language: str, step: str) -> Path:
    return LOGS / f"roundtrip-{language}-{step}.cells"


def arrived(language: str, step: str) -> int:
    """The number of cells so far."""
    path = cells_path(language, step)
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _execute(command: Command, log: Path, cells: Path) -> str:
    """Runs the command. Returns how it failed, or an empty string."""
    reporting = {
        "FLETCHING_LIB_DIR": str(library_path("").absolute()),
        "FLETCHING_CELLS": str(cells),
    }
    with log.open("wb") as file:
        file.write(f"$ {command.line}\n".encode())
        file.flush()
        process = subprocess.Popen(
            ["bash", "-c", command.line],
            cwd=ROOT / command.folder,
            env={**os.environ, **command.environment, **reporting},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"hung, and was ended after {LIMIT_SECONDS} s; see {_shown(log)}"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return f"{_how_it_ended(code)}; see {_shown(log)}" if code != 0 else ""


def _how_it_ended(code: int) -> str:
    number = -code if code < 0 else code - 128  # bash reports a signal as 128 and its number
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"exit code {code}"


def read_cells(language: str, path: Path) -> Run:
    """The cells that a program wrote. Other lines become problems."""
    result = Run()
    text = path.read_bytes().decode("utf-8", "backslashreplace") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            cell = parse_cell(line)
            if cell.key.language != language:
                raise CellError(f"language is '{cell.key.language}'")
            result.cells.append(cell)
        except CellError as error:
            result.problems.append(f"line {number} of {_shown(path)} is not a cell: {error}")
    return result


def _end(log: Path) -> list[str]:
    lines = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
    return [f"    {line}" for line in lines[-SHOWN_LINES:]]


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


# --- Reporting -----------------------------------------------------------------------------------


def write(path: Path, cells: Sequence[Cell], made: Provenance) -> None:
    """Replaces the file atomically. Writes one cell per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    lines = ",\n".join(json.dumps(cell.as_json()) for cell in cells)
    head = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in vars(made).items()
    )
    temporary.write_text(f'{{\n{head}"cells": [\n{lines}\n]\n}}\n', encoding="utf-8")
    os.replace(temporary, path)


def report(
    languages: Sequence[str],
    verdicts: Sequence[Verdict],
    problems: Sequence[str],
    options: argparse.Namespace,
) -> int:
    """Prints the summary and at most MOST_LINES failures. Returns the exit code."""
    out = console()
    if options.matrix:
        out.print(*matrix(languages, verdicts), sep="\n", soft_wrap=True)
    out.print(table(languages, verdicts))
    failed = [*failures(verdicts), *problems]
    page = _shown(options.output.with_suffix(".html"))
    if failed:
        room = max(MOST_LINES - len(languages) - 8, 5)
        shown = failed[: room if len(failed) <= room else room - 1]
        if more := len(failed) - len(shown):
            shown.append(f"... and {more} more, in {page}")
        print("Failures:", *shown, "", sep="\n  ")
    print(headline(verdicts))
    print(f"open {page} to look at each; {_shown(options.output)} has them as data")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
