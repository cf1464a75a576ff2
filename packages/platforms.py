"""Builds and runs each part of Fletching on other platforms, and prints a table of what ran.

    platforms.py [--write-docs] [--complete] [PLATFORM...]

packages/platforms/platforms.toml has the cells, each with its command. `make platforms` installs
what they need and calls this script. The output of a cell goes to build/logs; other cells continue
after a failed one. With --complete a cell whose tools are missing has failed.
Exit codes: 0 no cell failed, 1 a cell failed, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "targets"))

import targets  # noqa: E402

FILES = ROOT / "packages" / "platforms"
LOGS = ROOT / "build" / "logs"
RESULTS = ROOT / "build" / "platforms.json"
DOCS = ROOT / "docs" / "measured" / "platforms.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- platforms: begin -->", "<!-- platforms: end -->"
SUCCESS = ("ran", "compiled")


@dataclass(frozen=True)
class Cell:
    platform: str  # "Debian 13 x86_64"
    part: str  # "Rust": a column of the table
    about: str  # what success means, for readers of the table
    success: str = "ran"  # or "compiled"
    command: str = ""  # for bash, in the root of the repository
    needs: tuple[str, ...] = ()  # commands and absolute files, or files of the repository
    absent: str = ""  # the reason, if there is no command
    target: str = ""  # a row of `make targets`, whose results are the result of this cell
    columns: tuple[str, ...] = ()  # the columns of that row


@dataclass(frozen=True)
class Result:
    platform: str
    part: str
    status: str  # "ran", "compiled", "absent" or "FAILED"
    reason: str  # empty after success
    about: str
    seconds: float = 0
    date: str = ""  # "2026-11-30"


class TableError(Exception):
    """platforms.toml or README.md is wrong; the message gives the reason."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("platform", nargs="*", help="some of them (default: all)")
    parser.add_argument("--write-docs", action="store_true", help="also write the pages")
    parser.add_argument("--complete", action="store_true", help="fail if tools are missing")
    options = parser.parse_args()
    text = (FILES / "platforms.toml").read_text(encoding="utf-8")
    parts, cells = load(text)
    unknown = set(options.platform) - {cell.platform for cell in cells}
    if unknown:
        known = ", ".join(dict.fromkeys(cell.platform for cell in cells))
        print(f"platforms: {min(unknown)}: expected some of {known}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    versions = tomllib.loads(text)["versions"]
    found = {name: version(command) for name, command in versions.items()}
    results: list[Result] = []
    incomplete: list[Result] = []
    kept: list[Result] = []
    for cell in cells:
        if not options.platform or cell.platform in options.platform:
            results.append(run(cell))
            if options.complete and results[-1].status == "absent" and not cell.absent:
                incomplete.append(results[-1])
            kept = merge(cells, results[-1:], RESULTS)
            content = {"versions": found, "cells": [asdict(result) for result in kept]}
            RESULTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print("\n" + "\n".join(targets.aligned(rows(parts, results))))
    if options.write_docs:
        names = {(result.platform, result.part): result for result in kept}
        kept = [names.get((cell.platform, cell.part), not_run(cell)) for cell in cells]
        table = targets.aligned(rows(parts, kept))
        DOCS.write_text(document(table, kept, found), encoding="utf-8")
        README.write_text(replace(README.read_text(encoding="utf-8"), table), encoding="utf-8")
    bad = [result for result in results if result.status == "FAILED"] + incomplete
    for result in bad:
        print(f"{result.platform}, {result.part}: {result.status}: {result.reason}")
    return 1 if bad else 0


def load(text: str) -> tuple[list[str], list[Cell]]:
    """The parts and cells of platforms.toml."""
    table = tomllib.loads(text)
    cells = []
    for entry in table["cell"]:
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()
        }
        cell = Cell(**values)
        where = f"platforms.toml: {cell.platform}, {cell.part}"
        if cell.part not in table["parts"]:
            raise TableError(f"{where}: unknown part: expected one of {table['parts']}")
        if cell.success not in SUCCESS:
            raise TableError(f"{where}: success: expected one of {SUCCESS}, got {cell.success}")
        if sum(map(bool, (cell.command, cell.absent, cell.target))) != 1:
            raise TableError(f"{where}: expected one of command, absent and target")
        cells.append(cell)
    return table["parts"], cells


def merge(cells: Sequence[Cell], results: Sequence[Result], file: Path) -> list[Result]:
    """Adds new results to those in the file, in the order of the cells."""
    old = json.loads(file.read_text(encoding="utf-8"))["cells"] if file.is_file() else []
    every = {(r.platform, r.part): r for r in [*(Result(**entry) for entry in old), *results]}
    names = [(cell.platform, cell.part) for cell in cells]
    return [every[name] for name in names if name in every]


def not_run(cell: Cell) -> Result:
    return Result(cell.platform, cell.part, "absent", "not run yet", cell.about)


def run(cell: Cell) -> Result:
    """Runs a cell unless something that it needs is missing."""
    print(f"{cell.platform:22} {cell.part:8} ", end="", flush=True)
    start = time.monotonic()
    status, reason = outcome(cell)
    seconds = time.monotonic() - start
    print(f"{status}{f': {reason}' if reason else ''} ({seconds:.0f} s)", flush=True)
    today = datetime.date.today().isoformat()
    return Result(cell.platform, cell.part, status, reason, cell.about, round(seconds, 1), today)


def outcome(cell: Cell) -> tuple[str, str]:
    if cell.absent:
        return "absent", cell.absent
    if cell.target:
        return cited(cell, targets.RESULTS)
    missing = [need for need in cell.needs if not targets.present(path(need))]
    if missing:
        made = any(need.startswith("build/packages/") for need in missing)
        maker = "`make packages` builds" if made else "packages/platforms/setup installs"
        return "absent", f"{', '.join(missing)}: not there; {maker} it"
    slug = f"platforms-{cell.platform}-{cell.part}".lower().replace(" ", "-").replace("+", "p")
    log = LOGS / f"{slug}.log"
    bash = ["bash", "-euo", "pipefail", "-c", f". packages/platforms/functions.sh\n{cell.command}"]
    with log.open("wb") as file:
        passed = targets.succeeds(targets.Command(bash, ROOT), file)
    if passed:
        return cell.success, ""
    targets.show_end(log)
    return "FAILED", f"see {log.relative_to(ROOT)}"


def path(need: str) -> str | Path:
    return ROOT / need if "/" in need else need


def cited(cell: Cell, file: Path) -> tuple[str, str]:
    """The result of `make targets`, which owns the emulated machines."""
    if not file.is_file():
        return "absent", f"{file.name}: not there; `make targets` writes it"
    entries = json.loads(file.read_text(encoding="utf-8"))["cells"]
    found = {e["column"]: e["status"] for e in entries if e["target"] == cell.target}
    lacking = [column for column in cell.columns if column not in found]
    if lacking:
        return "absent", f"{', '.join(lacking)}: not in {file.name}; run `make targets`"
    wrong = [column for column in cell.columns if found[column] != "ok"]
    if wrong:
        return "FAILED", f"`make targets`: {', '.join(f'{c} is {found[c]}' for c in wrong)}"
    return cell.success, ""


def rows(parts: Sequence[str], results: Sequence[Result]) -> list[list[str]]:
    """A row per platform. A part without a cell has a dash."""
    found = {(r.platform, r.part): r.status for r in results}
    platforms = dict.fromkeys(result.platform for result in results)
    return [
        ["platform", *parts],
        *([name, *(found.get((name, part), "-") for part in parts)] for name in platforms),
    ]


def version(command: str) -> str:
    bash = ["bash", "-c", f". packages/platforms/functions.sh\n{command}"]
    try:
        return targets.output(bash).strip().splitlines()[0]
    except (targets.CannotRunError, IndexError):
        return "not there"


def document(table: Sequence[str], results: Sequence[Result], versions: Mapping[str, str]) -> str:
    """The page docs/measured/platforms.md."""
    lines = [
        "# Platforms",
        "",
        "What ran on each platform, and what was only compiled for it. `make platforms` measures",
        "it again; `make platforms PLATFORMS=--write-docs` wrote this page. A dash: not tried.",
        "",
        *table,
        "",
    ]
    for platform in dict.fromkeys(result.platform for result in results):
        lines += [f"## {platform}", ""]
        for result in results:
            if result.platform == platform:
                reason = f": {result.reason}" if result.reason else ""
                lines.append(f"- **{result.part}** {result.status}{reason}. {result.about}")
        lines.append("")
    dates = " and ".join(sorted({result.date for result in results if result.date}))
    lines += ["## Versions", "", f"Measured on {dates} with:", ""]
    lines += [f"- {name}: {text}" for name, text in versions.items()]
    return "\n".join(lines) + "\n"


def replace(text: str, table: Sequence[str]) -> str:
    """README.md with the table between its two markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise TableError(f"README.md: expected one `{BEGIN}` and one `{END}`")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return "\n".join([f"{before}{BEGIN}", "", *table, "", f"{END}{after}"])


if __name__ == "__main__":
    os.chdir(ROOT)
    try:
        sys.exit(main())
    except TableError as error:
        print(f"platforms: {error}", file=sys.stderr)
        sys.exit(2)
