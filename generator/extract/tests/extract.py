"""Runs fletching-extract for the tests."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

HEADERS = Path(__file__).parent / "headers"
Facts = dict[str, Any]


def required(variable: str) -> str:
    """Returns the value of an environment variable that the tests require."""
    value = os.environ.get(variable)
    if not value:
        raise RuntimeError(f"{variable} is not set: run the tests with ctest, which sets it")
    return value


EXTRACT = required("FLETCHING_EXTRACT")
UPSTREAM = Path(required("FLETCHING_UPSTREAM_INCLUDE")) / "arrow" / "c"


def run(
    *arguments: str | Path, input: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs the program and returns the result."""
    return subprocess.run(
        [EXTRACT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        input=input,
        cwd=cwd,
    )


def extract(*arguments: str | Path) -> list[Facts]:
    """Returns the runs of a successful extraction. A bare name is one of the test headers."""
    placed = [HEADERS / a if (HEADERS / a).is_file() else a for a in arguments]
    done = run(*placed)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}")
    if done.stderr:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return list(json.loads(done.stdout)["runs"])


def extract_one(language: str, *arguments: str | Path) -> Facts:
    """Returns the facts of a single run."""
    (facts,) = extract("--as", language, *arguments)
    return facts


def named(entries: list[Facts], name: str) -> Facts:
    """Returns the only entry with this name."""
    (entry,) = (e for e in entries if e["name"] == name)
    return entry


def record(facts: Facts, name: str) -> Facts:
    return named(facts["records"], name)


def field(facts: Facts, path: str) -> Facts:
    """Returns the field at the path `Record.field`."""
    owner, _, name = path.rpartition(".")
    return named(record(facts, owner)["fields"], name)


def values(entries: list[Facts]) -> dict[str, Any]:
    return {e["name"]: e["value"] for e in entries}
