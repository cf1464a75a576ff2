"""Runs the benchmarks of one or all languages, and compares the results with their limits.

`make bench-LANGUAGE` calls `bench.py LANGUAGE`, and `make bench` calls `bench.py` without a
language, which also writes the page docs/measured/benchmarks.md. valgrind's callgrind counts
instructions and allocations twice with different numbers of rounds; the difference is the cost of
the rounds, whatever else the machine does, so a row runs on each core. Then times are measured, one
program after the other, in rounds over all rows of all languages, so that a slow minute slows all
programs; a ratio is the median over the rounds.
Writes build/bench.json or build/bench-LANGUAGE.json.
Exit codes: 0 within the limits, 1 over a limit, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import page
from rows import ROOT, Cell, Limit, Peer, Row

sys.path.append(str(ROOT / "tools"))

import languages

MEASURES = ["instructions", "allocations", "bytes", "locks", "nanoseconds", "compile"]
COUNTED = {"instructions", "compile"}  # by callgrind, so that rows may run at the same time
ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign"}

Run = Mapping[str, Mapping[str, float]]  # one run of a row: who -> measure -> value


@dataclass(frozen=True)
class Count:
    instructions: int
    allocations: int


def main() -> int:
    options = _parse()
    started = time.monotonic()
    bin_folder = (ROOT / options.build / "bin").resolve()
    homes = [languages.load()[name] for name in options.languages or _having_rows()]
    try:
        if not options.no_build:
            os.environ["BENCH_WITHOUT"] = " ".join(options.without)
            for home in homes:
                _build(home)
        rows = [(home.title, row) for home in homes for row in _rows(home, options)]
        if not rows:
            raise ValueError("no row is left: expected another --case or --only")
        versions = _versions(homes)  # before the run, which a failure would lose
        cells = [
            cell
            for (language, row), runs in zip(rows, _measure(bin_folder, rows), strict=True)
            for cell in cells_of(language, row, runs)
        ]
        turns = max((row.repeats for _, row in rows), default=0)
        report = _report(homes, versions, cells, turns)
        report["minutes"] = round((time.monotonic() - started) / 60)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    name = "-".join(["bench", *options.languages])
    (ROOT / "build" / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(page.table(cells)))
    if options.write_docs:
        page.write(report)
    over = [cell for cell in cells if not cell.ok]
    for cell in over:
        cost = page.cost(cell) if cell.ratio is None else f"{cell.ratio[1]:.2f} x {cell.who}"
        print(f"bench: {cell.language}: {cell.case}: {cost}, limit {cell.limit}")
    print(f"bench: {'OVER A LIMIT' if over else 'within all limits'}")
    return 1 if over else 0


def _having_rows() -> list[str]:
    return [name for name, each in languages.load().items() if each.bench]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("languages", nargs="*", help="all if none is named")
    parser.add_argument("--no-build", action="store_true", help="do not build the programs first")
    parser.add_argument("--build", default="build/release", help="where CMake built the programs")
    parser.add_argument("--write-docs", action="store_true", help="also docs/measured/")
    parser.add_argument("--only", nargs="+", default=MEASURES, choices=MEASURES)
    parser.add_argument("--without", nargs="+", default=[], help="programs that are left out")
    parser.add_argument("--case", default="", help="only the cases that contain this text")
    parser.add_argument("--curves", action="store_true", help="also the rows with a size")
    options = parser.parse_args()
    for name in set(options.languages) - set(_having_rows()):
        parser.error(f"unknown language: expected {', '.join(_having_rows())}, got {name}")
    partial = options.languages or options.without or options.case or options.only != MEASURES
    if options.write_docs and (partial or not options.curves):
        parser.error("--write-docs: expected all rows; hint: run `make bench`")
    return options


def _rows(home: languages.Language, options: argparse.Namespace) -> Iterator[Row]:
    for row in _file(home)["ROWS"]:
        wanted = row.measure in options.only and options.case in row.case
        if wanted and (row.size is None or options.curves):
            left = _without(row, options.without)
            if left.programs:
                yield left


def _file(home: languages.Language) -> dict[str, Any]:
    assert home.bench is not None
    return runpy.run_path(str(ROOT / home.folder / home.bench.rows))


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


def _measure(bin_folder: Path, rows: Sequence[tuple[str, Row]]) -> list[list[Run]]:
    """Returns the runs of each row. Only times need more than one, and an idle machine."""

    def take(row: tuple[str, Row], turn: int) -> Run:
        print(f"bench: {turn + 1}: {row[0]}: {row[1].case}", file=sys.stderr)
        return _turn(bin_folder, row[1], turn == 0)

    counted = [row for row in rows if row[1].measure in COUNTED]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            counts = iter(list(pool.map(lambda row: take(row, 0), counted)))
        finally:
            pool.shutdown(cancel_futures=True)  # an error ends the run at once
    runs = [[next(counts)] if row.measure in COUNTED else [] for _, row in rows]
    repeats = [row.repeats if row.measure == "nanoseconds" else 1 for _, row in rows]
    for turn in range(max(repeats, default=0)):
        for row, of_row, times in zip(rows, runs, repeats, strict=True):
            if len(of_row) == turn < times:
                of_row.append(take(row, turn))
    return runs


def _turn(bin_folder: Path, row: Row, first: bool) -> Run:
    try:
        return {who: _run(bin_folder, each, row, first) for who, each in row.programs.items()}
    except ValueError as error:
        raise ValueError(f"{row.case}: {error}") from None


def _run(bin_folder: Path, program: tuple[str, ...], row: Row, first: bool) -> Mapping[str, float]:
    environment = tuple(row.environment.items())
    path = (str(bin_folder / program[0]), *program[1:])
    if row.measure == "instructions":
        return _instructions(path, row.rounds, row.size, row.tries, environment)
    if row.measure == "nanoseconds":
        values = {"nanoseconds": _printed(path, environment, "ns")["ns"]}
        if row.counter and first:
            counter = (str(bin_folder / row.counter), *program[1:])
            counted = _printed(counter, environment, "allocations", "locks")
            values |= {key: counted[key] for key in ("allocations", "locks")}
        return values
    return _printed_once(path, environment, row.measure)


def cells_of(language: str, row: Row, runs: Sequence[Run]) -> Iterator[Cell]:
    limits = {limit.other: limit for limit in row.limits}
    limits[row.ours] = Limit(row.ours, row.at_most, row.goal, row.reason)
    for who in row.programs:
        values = [run[who][row.measure] for run in runs]
        value, ratio = statistics.median(values), None
        if who != row.ours:
            ratios = [run[row.ours][row.measure] / run[who][row.measure] for run in runs]
            ratio = (min(ratios), statistics.median(ratios), max(ratios))
        limit = limits.get(who, Limit(who))
        compared = value if ratio is None else ratio[1]
        yield Cell(
            language,
            row.topic,
            row.case,
            row.size,
            row.measure,
            who,
            value,
            runs[0][who].get("allocations") if row.measure != "allocations" else None,
            runs[0][who].get("locks") if row.measure != "locks" else None,
            ratio,
            limit.at_most,
            limit.goal,
            limit.reason,
            limit.at_most is None or compared <= limit.at_most,
            row.between_threads,
        )


# Languages share programs, such as raw C, and rows share headers. Counts do not change between
# runs.
@cache
def _instructions(
    program: tuple[str, ...],
    rounds: tuple[int, int],
    size: int | None,
    tries: int,
    environment: tuple[tuple[str, str], ...],
) -> Mapping[str, float]:
    last = () if size is None else (str(size),)
    few, many = (
        min(
            (_callgrind((*program, str(number), *last), environment) for _ in range(tries)),
            key=lambda count: count.instructions,
        )
        for number in rounds
    )
    extra = rounds[1] - rounds[0]
    return {
        "instructions": (many.instructions - few.instructions) / extra,
        "allocations": (many.allocations - few.allocations) / extra,
    }


def _callgrind(program: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> Count:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        _output(
            ("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *program), environment
        )
        return _parse_callgrind(out.read_text())


def _parse_callgrind(text: str) -> Count:
    """The total, and the allocator calls: `cfn=(12) malloc` names the function of `calls=3`."""
    total = re.search(r"^(?:summary|totals): ([1-9]\d*)", text, re.MULTILINE)
    if total is None:
        raise ValueError("callgrind has counted nothing; is this valgrind 3.19 or later?")
    names = dict(re.findall(r"^c?fn=(\(\d+\)) (\S+)", text, re.MULTILINE))
    allocations = sum(
        int(calls)
        for called, calls in re.findall(r"^cfn=(\(\d+\)).*\ncalls=(\d+)", text, re.MULTILINE)
        if names.get(called) in ALLOCATORS
    )
    return Count(int(total[1]), allocations)


def _printed(
    program: tuple[str, ...], environment: tuple[tuple[str, str], ...], *keys: str
) -> Mapping[str, float]:
    """The JSON line that a program prints. Raises ValueError if one of the keys is missing."""
    output = _output(program, environment)
    try:
        printed: dict[str, float] = json.loads(output)
        missing = [key for key in keys if key not in printed]
    except (ValueError, TypeError):
        missing = list(keys)
    if missing:
        raise ValueError(
            f"{' '.join(program)}: wrong output: expected a JSON line with {', '.join(missing)}, "
            f"got {output[-200:]!r}"
        )
    return printed


_printed_once = cache(_printed)


def _output(command: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> str:
    """Raises ValueError if the command fails."""
    variables = os.environ | dict(environment)
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    if run.returncode != 0:
        raise ValueError(f"{' '.join(command)} failed:\n{run.stderr[-2000:]}")
    return run.stdout


def _report(
    homes: list[languages.Language], versions: dict[str, str], cells: list[Cell], turns: int
) -> dict[str, Any]:
    peers: list[Peer] = [peer for home in homes for peer in _file(home).get("PEERS", ())]
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "cpu": cpu[1] if cpu else "unknown",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "turns": turns,
        "load": f"{os.getloadavg()[2]:.1f}",
        "versions": versions,
        "peers": [asdict(peer) for peer in dict.fromkeys(peers)],
        "cells": [asdict(cell) for cell in cells],
    }


def _versions(homes: list[languages.Language]) -> dict[str, str]:
    commands = {"valgrind": (".", "valgrind --version")}
    commands |= {home.title: (home.folder, home.toolchain.version) for home in homes}
    return {title: _first_line(*command) for title, command in commands.items()}


def _first_line(folder: str, command: str) -> str:
    run = subprocess.run(
        ["bash", "-c", command], cwd=ROOT / folder, capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
