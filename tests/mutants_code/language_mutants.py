"""Runs a language's mutation testing tool on its safe layer, prints a table, and checks the limit.

The language's command (docs/adding-a-language.md, `[mutation]`) tries the mutants; its table lists
the reasons of survivors. Exit codes: 0 enough were killed, 1 too few were killed or the table is
wrong, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ruamel.yaml import YAML

import results
from report import EQUIVALENT, LIMIT, code, table
from results import KILLED, NO_BUILD, SURVIVED, Key

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import languages  # noqa: E402

TABLES = {"equivalents": EQUIVALENT, "survivors": SURVIVED}


class CannotRunError(Exception):
    """The message gives the reason."""


@dataclass(frozen=True)
class Mutant(results.Mutant):
    result: str = ""  # empty if not tried
    text: str = ""  # the test that detected it, or the reason


@dataclass(frozen=True)
class Run:
    tool: str  # "cargo-mutants 27.1.0"
    mutants: Sequence[Mutant]  # all mutants

    @property
    def tried(self) -> list[Mutant]:
        return [mutant for mutant in self.mutants if mutant.result]


def main() -> int:
    options = _parse()
    try:
        home = languages.load()[options.language]
        if home.mutation is None:
            raise CannotRunError(f"{home.folder}/{languages.FILE}: no [mutation]")
        output = ROOT / "build" / f"mutants-{home.name}" / "results.json"
        if not options.no_run:
            _call(home, home.mutation.command, output, options)
        found = read(output)
        path = ROOT / home.folder / home.mutation.table
        reasons, wrong = read_table(path, found.mutants)
        note = read_note(path)
    except (CannotRunError, OSError, KeyError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    found = replace(found, mutants=[judged(mutant, reasons) for mutant in found.mutants])
    wrong += problems(found.tried, reasons)
    print(as_text(found))
    if options.write_docs:
        page = ROOT / "docs" / "measured" / f"mutants-{home.name}.md"
        page.write_text(as_page(home, found, note), encoding="utf-8")
    for problem in wrong:
        print(f"mutants: {problem}")
    return 1 if wrong else 0


def _call(home: languages.Language, command: str, path: Path, options: argparse.Namespace) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    own = languages.environment(home)
    asked = {
        "PYTHONPATH": f"{Path(__file__).parent}:{own.get('PYTHONPATH', '')}",
        "RESULTS": str(path),
        "SAMPLE": "1" if options.sample else "",
        "FILES": options.file,
        "KEEP": "1" if options.keep else "",
    }
    variables = {**os.environ, **own, **asked}
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT / home.folder, env=variables, check=False
    )
    if done.returncode != 0:
        raise CannotRunError(f"{home.title}: the tool ended with {done.returncode}")


def read(path: Path) -> Run:
    text = json.loads(path.read_text(encoding="utf-8"))
    return Run(text["tool"], [Mutant(**entry) for entry in text["mutants"]])


def read_table(
    path: Path, mutants: Sequence[Mutant]
) -> tuple[dict[Key, tuple[str, str]], list[str]]:
    """The reasons from the entries, and the errors of the table."""
    known = {mutant.key for mutant in mutants}
    reasons: dict[Key, tuple[str, str]] = {}
    wrong = []
    tables = YAML(typ="safe").load(path) or {}
    for name, result in TABLES.items():
        for number, entry in enumerate(tables.get(name) or [], 1):
            where = f"{path.name}: {name}: entry {number}"
            if set(entry) - {"nth"} != {"file", "change", "reason"}:
                wrong.append(f"{where}: keys: expected file, change, reason and maybe nth")
                continue
            key = entry["file"], entry["change"], entry.get("nth", 1)
            if key not in known:
                wrong.append(f"{where}: no such mutant: {' | '.join(map(str, key))}")
            if key in reasons:
                wrong.append(f"{where}: duplicate: {' | '.join(map(str, key))}")
            if not entry["reason"]:
                wrong.append(f"{where}: reason: expected a text, got none")
            reasons[key] = result, entry["reason"]
    return reasons, wrong


def read_note(path: Path) -> str:
    """The additional text of the page."""
    return str((YAML(typ="safe").load(path) or {}).get("note", "")).strip()


def judged(mutant: Mutant, reasons: Mapping[Key, tuple[str, str]]) -> Mutant:
    if mutant.result != SURVIVED or mutant.key not in reasons:
        return mutant
    result, reason = reasons[mutant.key]
    return replace(mutant, result=result, text=reason)


def problems(tried: Sequence[Mutant], reasons: Mapping[Key, tuple[str, str]]) -> list[str]:
    """The reasons why the run fails; empty if it passes."""
    return list(_problems(tried, reasons))


def _problems(tried: Sequence[Mutant], reasons: Mapping[Key, tuple[str, str]]) -> Iterator[str]:
    for mutant in tried:
        if mutant.result == SURVIVED and not mutant.text:
            yield f"{mutant.place}: survived: expected killed, or a reason in the table"
        if mutant.result == KILLED and reasons.get(mutant.key, ("",))[0] == EQUIVALENT:
            yield f"{mutant.place}: killed by {mutant.text}: expected equivalent"
    counts = Counter(mutant.result for mutant in tried)
    judged_ones = counts[KILLED] + counts[SURVIVED]
    if not judged_ones:
        yield "no mutant was tried"
    elif counts[KILLED] < LIMIT * judged_ones:
        share = f"{counts[KILLED]} of {judged_ones}"
        yield f"killed: too few: expected at least {LIMIT:.0%}, got {share}"


def as_text(found: Run) -> str:
    rows = _rows(found.tried)
    width = max(len(row[0]) for row in rows)
    lines = [
        "  ".join((row[0].ljust(width), *(cell.rjust(10) for cell in row[1:]))) for row in rows
    ]
    return "\n".join(lines)


def _rows(tried: Sequence[Mutant]) -> list[list[str]]:
    columns = (KILLED, SURVIVED, EQUIVALENT, NO_BUILD)
    rows = [["file", *columns]]
    for file in (*dict.fromkeys(mutant.file for mutant in tried), ""):
        counts = Counter(mutant.result for mutant in tried if file in ("", mutant.file))
        rows.append([file or "all", *(str(counts[column]) for column in columns)])
    return rows


def as_page(home: languages.Language, found: Run, note: str = "") -> str:
    tried = found.tried
    counts = Counter(mutant.result for mutant in tried)
    judged_ones = counts[KILLED] + counts[SURVIVED]
    whole = len(tried) == len(found.mutants)
    assert home.mutation is not None
    parts = [
        f"# Mutants of the code: the tests of the library for {home.title} can fail",
        f"Printed by `make mutants-{home.name}`; [tests/mutants_code]"
        "(../../tests/mutants_code/README.md#languages) says how. "
        f"{datetime.date.today().isoformat()}, {platform.machine()}, {found.tool}, "
        f"{_version(home)}. "
        + (f"All {len(tried)} mutants." if whole else f"{len(tried)} of {len(found.mutants)}."),
        f"{counts[KILLED]} of {judged_ones} that are not equivalent and compile are killed "
        f"({counts[KILLED] / max(judged_ones, 1):.1%}, limit {LIMIT:.0%}).",
        *([note] if note else []),
        table(_rows(tried)),
        "## Equivalent, with the reason",
        table(_listed(tried, EQUIVALENT, "reason")),
        "## Survived, with the reason",
        table(_listed(tried, SURVIVED, "reason")),
        "## The tests that noticed first",
        table(_programs(tried)),
    ]
    return "\n\n".join(parts) + "\n"


def _version(home: languages.Language) -> str:
    done = subprocess.run(
        ["bash", "-c", home.toolchain.version],
        cwd=ROOT / home.folder,
        env={**os.environ, **languages.environment(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    return "".join(done.stdout.splitlines()[:1])


def _listed(tried: Sequence[Mutant], result: str, title: str) -> list[list[str]]:
    own = [mutant for mutant in tried if mutant.result == result]
    return [["mutant", title], *([code(m.place), m.text.replace("|", "\\|")] for m in own)]


def _programs(tried: Sequence[Mutant]) -> list[list[str]]:
    """The number of mutants that each test program killed."""
    counts = Counter(m.text.split(": ")[0] for m in tried if m.result == KILLED)
    return [
        ["tests", "mutants"],
        *([code(name), str(count)] for name, count in counts.most_common()),
    ]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language")
    parser.add_argument("--sample", action="store_true", help="a fixed sample of every file")
    parser.add_argument("--file", default="", help="only files with this in their path")
    parser.add_argument("--keep", action="store_true", help="do not repeat what was killed before")
    parser.add_argument("--no-run", action="store_true", help="judge the results of the last run")
    parser.add_argument(
        "--write-docs", action="store_true", help="write docs/measured/mutants-LANGUAGE.md as well"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
