"""Data through every language and back: runs the programs, prints the matrix, keeps the cells.

    roundtrip.py [--language L ...] [--list] [--output FILE]

Writes build/roundtrip.json: the list of all cells (README.md), replaced at once at the end. What
the programs print goes to build/logs/roundtrip-LANGUAGE-STEP.log.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cells import Cell, CellError, Key, parse_cell
from devices import NOT_YET, environment, excused
from expected import expected_cells, limited_cells
from libraries import ROOT, library_path
from matrix import failures, matrix
from programs import LANGUAGES, Command, Language
from verdicts import Verdict, absent, judge

LOGS = ROOT / "build" / "logs"
OUTPUT = ROOT / "build" / "roundtrip.json"
# Only a program that hangs gets near it.
LIMIT_SECONDS = 900
SHOWN_LINES = 15


@dataclass
class Run:
    """What came out of one command."""

    cells: list[Cell] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ended: str = "the program ended well"  # why a cell may be missing


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
    for name, language in chosen.items():
        found, wrong = run_language(name, language, expected[name])
        verdicts += found
        problems += wrong
    write(options.output, [verdict.cell for verdict in verdicts])
    return report(list(chosen), verdicts, problems, options.output)


def _parse(
    arguments: Sequence[str] | None, languages: Mapping[str, Language]
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Sends data through every language and back, and prints the matrix."
    )
    parser.add_argument(
        "--language",
        action="append",
        choices=list(languages),
        help="only this language; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="print the expected cells, run nothing")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the cells go")
    options = parser.parse_args(arguments)
    options.language = options.language or list(languages)
    return options


# --- Running -------------------------------------------------------------------------------------


def run_language(
    name: str, language: Language, expected: Sequence[Key]
) -> tuple[list[Verdict], list[str]]:
    """Runs the commands of a language; its verdicts, and what else went wrong."""
    due = [key for key in expected if language.has(key)]
    not_due = [absent(key, NOT_YET, "_") for key in expected if key not in set(due)]
    missing = _what_is_missing(language)
    if missing:
        print(f"{name:10} absent: {missing}", flush=True)
        return [absent(key, missing) for key in due] + not_due, []
    steps = language.steps()
    if language.devices:
        on_devices = {**language.devices.environment, **environment()}
        steps["devices"] = replace(language.devices, environment=on_devices)
    runs = {step: run(name, step, command) for step, command in steps.items()}

    def why_missing(key: Key) -> str:
        step = "abi" if key.struct else "peers" if key.peer else "cases"
        if key.is_device:
            step = "devices"
        return f"{step}: {runs[step].ended}" if step in runs else f"{step}: no command"

    cells = [cell for one in runs.values() for cell in one.cells]
    problems = [f"{name}: {step}: {text}" for step, one in runs.items() for text in one.problems]
    found = judge(cells, due, why_missing, limited_cells(name), excused(due))
    return found + not_due, problems


def _what_is_missing(language: Language) -> str:
    """Empty when everything is there that the language needs."""
    probe = subprocess.run(
        ["bash", "-c", language.needs],
        cwd=ROOT / language.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode == 0:
        return ""
    told = probe.stderr.strip().splitlines()
    return f"{language.hint} ({told[-1]})" if told else language.hint


def run(language: str, step: str, command: Command) -> Run:
    """Runs one command with a cells file of its own."""
    log = LOGS / f"roundtrip-{language}-{step}.log"
    path = LOGS / f"roundtrip-{language}-{step}.cells"
    path.unlink(missing_ok=True)
    print(f"{language:10} {step:8}", end=" ", flush=True)
    began = time.monotonic()
    ended = _execute(command, log, path)
    result = read_cells(language, path)
    if ended:
        result.problems.append(ended)
        result.ended = ended
    word = "FAILED" if result.problems or not all(c.ok for c in result.cells) else "ok"
    seconds = time.monotonic() - began
    print(f"{len(result.cells):4} cells  {seconds:6.1f} s  {word}", flush=True)
    if ended:
        _show_end(log)
    return result


def _execute(command: Command, log: Path, cells: Path) -> str:
    """Runs the command; how it ended when that was not well, else empty."""
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
    number = -code if code < 0 else code - 128  # bash tells a signal as 128 and its number
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"exit code {code}"


def read_cells(language: str, path: Path) -> Run:
    """The cells that a program wrote; lines that are none become problems."""
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


def _show_end(log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="backslashreplace").splitlines()
    for line in lines[-SHOWN_LINES:]:
        print(f"    {line}")


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


# --- Reporting -----------------------------------------------------------------------------------


def write(path: Path, cells: Sequence[Cell]) -> None:
    """Replaces the file at once, so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    lines = ",\n".join(json.dumps(cell.as_json()) for cell in cells)
    temporary.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    os.replace(temporary, path)


def report(
    languages: Sequence[str], verdicts: Sequence[Verdict], problems: Sequence[str], output: Path
) -> int:
    """Prints the matrix and everything that failed; the exit code."""
    print()
    print(*matrix(languages, verdicts, color=sys.stdout.isatty()), sep="\n")
    failed = [*failures(verdicts), *problems]
    if failed:
        print("\nFailures:", *failed, sep="\n  ")
    right = sum(verdict.passed for verdict in verdicts)
    absent_cells = sum(not verdict.passed and not verdict.failed for verdict in verdicts)
    but = f", {absent_cells} are absent for now" if absent_cells else ""
    print(f"\n{right} of {len(verdicts)} cells are right{but}; all are in {_shown(output)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
