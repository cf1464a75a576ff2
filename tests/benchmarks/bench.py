"""Runs the benchmarks of one language, prints a table, and compares it with the limits.

`make bench-LANGUAGE` calls `bench.py LANGUAGE`. valgrind's callgrind counts instructions and
allocations twice with different numbers of rounds; the difference is the cost of the rounds,
whatever else the machine does. Nanoseconds are the median of many runs with the programs
interleaved, so that a busy machine slows all of them. --only instructions omits those rows.
Writes build/bench-<language>.json; --write-docs also writes docs/measured/bench-<language>.md.
Exit codes: 0 within the limits, 1 over a limit, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rows import Row

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import languages  # noqa: E402

MEASURES = ["instructions", "allocations", "bytes", "locks", "nanoseconds"]
ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"}


@dataclass(frozen=True)
class Count:
    instructions: int
    allocations: int


@dataclass(frozen=True)
class Cell:
    case: str
    measure: str
    who: str
    value: float  # per round
    allocations: float | None  # per round; None if not counted
    locks: float | None
    ratio: float | None  # Fletching's value / this one; None for Fletching
    limit: float | None  # maximum of the ratio; for Fletching, of the value
    ok: bool


def main() -> int:
    options = _parse()
    bin_folder = (ROOT / options.build / "bin").resolve()
    try:
        home = languages.load()[options.language]
        rows = [
            _without(row, options.without) for row in _rows(home) if row.measure in options.only
        ]
        if not options.no_build:
            os.environ["BENCH_WITHOUT"] = " ".join(options.without)
            _build(home)
        cells = [cell for row in rows for cell in _run_row(bin_folder, row)]
        versions = _versions()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    report = ROOT / "build" / f"bench-{options.language}.json"
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps([asdict(cell) for cell in cells], indent=2) + "\n")
    table = "\n".join(_table(cells))
    print(table)
    if options.write_docs:
        _write_docs(options.language, table, versions)
    over = [cell for cell in cells if not cell.ok]
    for cell in over:
        cost = _cost(cell) if cell.ratio is None else f"{cell.ratio:.2f} x {cell.who}"
        print(f"bench: {cell.case}: {cost}, limit {cell.limit}")
    print(f"bench: {'OVER A LIMIT' if over else 'within all limits'}")
    return 1 if over else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    having = [name for name, each in languages.load().items() if each.bench]
    parser.add_argument("language", choices=having)
    parser.add_argument("--no-build", action="store_true", help="do not build the programs first")
    parser.add_argument("--build", default="build/release", help="where CMake built the programs")
    parser.add_argument("--write-docs", action="store_true", help="also docs/measured/")
    parser.add_argument("--only", nargs="+", default=MEASURES, choices=MEASURES)
    parser.add_argument("--without", nargs="+", default=[], help="programs that are left out")
    return parser.parse_args()


def _rows(home: languages.Language) -> list[Row]:
    assert home.bench is not None
    path = ROOT / home.folder / home.bench.rows
    found: list[Row] = list(runpy.run_path(str(path))["ROWS"])
    return found


def _without(row: Row, left_out: list[str]) -> Row:
    programs = {who: each for who, each in row.programs.items() if each[0] not in left_out}
    limits = tuple(limit for limit in row.limits if limit.other in programs)
    return replace(row, programs=programs, limits=limits)


def _build(home: languages.Language) -> None:
    """Raises CalledProcessError. The output goes to build/logs."""
    assert home.bench is not None
    logs = ROOT / "build" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    languages.run(home, home.bench.prepare)
    languages.run(home, f"{{ {home.bench.build}; }} >$ROOT/build/logs/bench-{home.name}.log")


def _run_row(bin_folder: Path, row: Row) -> list[Cell]:
    allocations: dict[str, float] = {}
    locks: dict[str, float] = {}
    environment = os.environ | row.environment
    if row.measure == "instructions":
        counts = {
            who: _instructions(bin_folder, program, row, environment)
            for who, program in row.programs.items()
        }
        values = {who: value for who, (value, _) in counts.items()}
        allocations = {who: number for who, (_, number) in counts.items()}
    elif row.measure in ("allocations", "bytes"):
        values = {
            who: _printed(bin_folder, program, environment)[row.measure]
            for who, program in row.programs.items()
        }
    elif row.measure == "locks":
        counted = {
            who: _printed(bin_folder, program, environment) for who, program in row.programs.items()
        }
        values = {who: each["locks"] for who, each in counted.items()}
        allocations = {who: each["allocations"] for who, each in counted.items()}
    else:
        values = _nanoseconds(bin_folder, row, environment)
        for who, program in row.programs.items():
            if row.counter:
                printed = _printed(bin_folder, (row.counter, *program[1:]), environment)
                allocations[who], locks[who] = printed["allocations"], printed["locks"]
    limits = {row.ours: row.at_most} | {limit.other: limit.at_most for limit in row.limits}
    cells = []
    for who, value in values.items():
        ratio = None if who == row.ours else values[row.ours] / value
        limit = limits.get(who)
        ok = limit is None or (value if ratio is None else ratio) <= limit
        counts_of = (allocations.get(who), locks.get(who))
        cells.append(Cell(row.case, row.measure, who, value, *counts_of, ratio, limit, ok))
    return cells


def _instructions(
    bin_folder: Path,
    program: tuple[str, ...],
    row: Row,
    environment: dict[str, str],
) -> tuple[float, float]:
    few, many = (
        min(
            (_callgrind(bin_folder, program, rounds, environment) for _ in range(row.tries)),
            key=lambda count: count.instructions,
        )
        for rounds in row.rounds
    )
    extra = row.rounds[1] - row.rounds[0]
    return (
        (many.instructions - few.instructions) / extra,
        (many.allocations - few.allocations) / extra,
    )


def _callgrind(
    bin_folder: Path, program: tuple[str, ...], rounds: int, environment: dict[str, str]
) -> Count:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={out}",
            str(bin_folder / program[0]),
            *program[1:],
            str(rounds),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if run.returncode != 0 or not out.exists():
            raise ValueError(f"{' '.join(command)} failed:\n{run.stderr[-2000:]}")
        return _parse_callgrind(out.read_text())


def _parse_callgrind(text: str) -> Count:
    """The total, and the allocator calls: `cfn=(12) malloc` names the function of `calls=3`."""
    total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    if total is None:
        raise ValueError("callgrind's output has no total; is this valgrind 3.19 or later?")
    names = dict(re.findall(r"^c?fn=(\(\d+\)) (\S+)", text, re.MULTILINE))
    allocations = sum(
        int(calls)
        for called, calls in re.findall(r"^cfn=(\(\d+\)).*\ncalls=(\d+)", text, re.MULTILINE)
        if names.get(called) in ALLOCATORS
    )
    return Count(int(total[1]), allocations)


def _nanoseconds(bin_folder: Path, row: Row, environment: dict[str, str]) -> dict[str, float]:
    runs: dict[str, list[float]] = {who: [] for who in row.programs}
    for _ in range(row.repeats):
        for who, program in row.programs.items():
            runs[who].append(_printed(bin_folder, program, environment)["ns"])
    return {who: statistics.median(values) for who, values in runs.items()}


def _printed(
    bin_folder: Path, program: tuple[str, ...], environment: dict[str, str]
) -> dict[str, float]:
    """The JSON line that a program prints."""
    command = [str(bin_folder / program[0]), *program[1:]]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if run.returncode != 0:
        raise ValueError(f"{' '.join(command)} failed:\n{run.stderr[-2000:]}")
    printed: dict[str, float] = json.loads(run.stdout)
    return printed


def _cost(cell: Cell) -> str:
    return f"{cell.value:,.2f}" if cell.measure == "locks" else f"{cell.value:,.0f}"


def _table(cells: list[Cell]) -> list[str]:
    rows = [["case", "who", "cost", "measure", "allocations", "locks", "ours / this", "limit"]]
    for cell in cells:
        rows.append(
            [
                cell.case,
                cell.who,
                _cost(cell),
                cell.measure,
                "" if cell.allocations is None else f"{cell.allocations:g}",
                "" if cell.locks is None else f"{cell.locks:g}",
                "" if cell.ratio is None else f"{cell.ratio:.2f}",
                "" if cell.limit is None else f"{cell.limit:,.10g}" + ("" if cell.ok else " OVER"),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return [lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]]


def _versions() -> list[str]:
    commands = (["c++", "--version"], ["valgrind", "--version"], ["uname", "-srm"])
    return [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        for command in commands
    ]


def _write_docs(language: str, table: str, versions: list[str]) -> None:
    date = datetime.datetime.now(tz=datetime.UTC).date()
    listed = "\n".join(f"- {version}" for version in versions)
    text = (
        f"# Benchmarks: {language}\n\n"
        "What one round of a case costs, compared with hand-written C, or with another\n"
        "implementation, in the same run; ours and the hand-written programs are compiled alike,\n"
        "with -O2. Raw C's batch is the safe one: a block that is counted, so that a child may be\n"
        "moved out. Nanoseconds are the median of many runs, the programs interleaved; of what\n"
        "runs on one thread they are CPU time. Locks are calls of pthread_mutex_lock, of all\n"
        "threads. A row of allocations or bytes counts those of the language's own memory.\n"
        f"`make bench-{language}` measures it again;\n"
        f"`.venv/bin/python tests/benchmarks/bench.py {language} --write-docs` wrote this file.\n\n"
        f"{table}\n\n"
        f"Measured on {date} with:\n\n{listed}\n"
    )
    (ROOT / "docs" / "measured" / f"bench-{language}.md").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
