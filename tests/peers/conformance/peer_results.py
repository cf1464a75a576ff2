"""Plays another library through the conformance suite, and compares the results with NAME.yaml.

    peer_results.py [--write] NAME VERSION ARGUMENTS...

ARGUMENTS are passed to fletching_conformance. --write stores the results instead, keeps the notes
of cases that are still wrong, and writes docs/measured/conformance-peers.md from all files.
Exit codes: 0 as stored, 1 a result has changed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PROGRAM = ROOT / "build" / "cmake" / "bin" / "fletching_conformance"
PAGE = ROOT / "docs" / "measured" / "conformance-peers.md"
VERDICTS = ("right", "wrong", "not-supported")
INTRODUCTION = """# Other libraries in the conformance suite

Written by [tests/peers/conformance](../../tests/peers/README.md) from results that `make test-all`
compares with a new run. The [conformance suite](../../tests/conformance/README.md) says what the
groups and the verdicts are. Most wrong results are crashes and panics on broken structs, which no
library promises to survive. Groups that a library does not support at all are left out. A public
issue in a note has the same input, and may be about another library.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("name")
    parser.add_argument("version")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    file = HERE / f"{options.name}.yaml"
    kept = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    got = summary(options.version, play(options.arguments))
    if options.write:
        keep(file, kept, got)
        return 0
    changed = [*changes(kept, got)]
    if PAGE.read_text(encoding="utf-8") != page():
        changed.append(f"{PAGE.relative_to(ROOT)} does not have the results in {HERE.name}/*.yaml")
    for change in changed:
        print(f"{options.name}: {change}")
    if changed:
        print("hint: judge each change, then run the same command with --write")
    return 1 if changed else 0


def play(arguments: list[str]) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [str(PROGRAM), "--json", str(results), *arguments]
        run = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        if not results.exists():
            sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout}{run.stderr}")
        read: list[dict[str, str]] = json.loads(results.read_text(encoding="utf-8"))
        return read


def summary(version: str, results: list[dict[str, str]]) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {}
    for result in results:
        counts.setdefault(result["group"], Counter())[result["verdict"]] += 1
    return {
        "version": version,
        "groups": {
            group: {verdict: of[verdict] for verdict in VERDICTS}
            for group, of in counts.items()
            if of["right"] or of["wrong"]
        },
        "wrong": {
            f"{result['group']}/{result['name']}": _found(result)
            for result in results
            if result["verdict"] == "wrong"
        },
    }


def _found(result: dict[str, str]) -> dict[str, str]:
    found = {"found": re.sub(r"\d{12,}", "<address>", result["message"].splitlines()[0])}
    return {**found, "rule": result["rule"]} if result["rule"] else found


def changes(kept: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    if kept.get("version") != got["version"]:
        yield f"version: expected {kept.get('version')}, got {got['version']}"
    for case in sorted(kept.get("wrong", {}).keys() | got["wrong"].keys()):
        before, now = (_without_note(of.get("wrong", {}).get(case)) for of in (kept, got))
        if before != now:
            yield f"{case}: expected {before or 'no fault'}, got {now or 'no fault'}"
    for group in sorted(kept.get("groups", {}).keys() | got["groups"].keys()):
        before, now = (of.get("groups", {}).get(group) for of in (kept, got))
        if before != now:
            yield f"{group}: expected {before}, got {now}"


def _without_note(wrong: dict[str, str] | None) -> dict[str, str]:
    return {key: text for key, text in (wrong or {}).items() if key != "note"}


def keep(file: Path, kept: dict[str, Any], got: dict[str, Any]) -> None:
    for case, wrong in got["wrong"].items():
        if note := kept.get("wrong", {}).get(case, {}).get("note"):
            wrong["note"] = note
    text = yaml.safe_dump(got, sort_keys=False, allow_unicode=True, width=120)
    file.write_text(
        f"# Written by peer_results.py --write; a note says whose fault it is.\n{text}", "utf-8"
    )
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    return INTRODUCTION + "".join(
        _section(file.stem, yaml.safe_load(file.read_text(encoding="utf-8")))
        for file in sorted(HERE.glob("*.yaml"))
    )


def _section(name: str, results: dict[str, Any]) -> str:
    lines = ["", f"## {name} {results['version']}", ""]
    lines += ["| group | right | wrong | not supported |", "|---|---|---|---|"]
    for group, of in results["groups"].items():
        lines.append(f"| {group} | {' | '.join(str(of[verdict]) for verdict in VERDICTS)} |")
    lines += ["", "| wrong case | found | rule | note |", "|---|---|---|---|"]
    for case, of in results["wrong"].items():
        cells = (of["found"].replace("|", "\\|"), of.get("rule", ""), of.get("note", ""))
        lines.append(f"| `{case}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
