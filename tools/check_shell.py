"""Checks every shell script and every command in a language.toml with ShellCheck.

Exit codes: 0 no findings, 1 findings, 2 could not run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).resolve().parents[1]
SHELLCHECK = Path(sys.executable).with_name("shellcheck")
SHELL = re.compile(rb"#!.*\b(?:ba)?sh\b")
# Keys of a language.toml with a value that bash runs.
COMMANDS = {
    *("build", "cases", "check", "command", "corpus", "devices", "format", "host", "needs"),
    *("oracle", "prepare", "roundtrip", "run", "setup", "tests", "version"),
}


def main() -> int:
    if not SHELLCHECK.is_file():
        print(f"check_shell: {SHELLCHECK} is missing; hint: run make setup", file=sys.stderr)
        return 2
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    scripts = [path for path in files if path.is_file() and _is_script(path)]
    tables = [path for path in files if path.name == "language.toml"]
    with tempfile.TemporaryDirectory() as folder:
        commands = [file for table in tables for file in written(table, ROOT, Path(folder))]
        wrong = shellcheck("--external-sources", "--source-path=SCRIPTDIR", *scripts)
        # ShellCheck does not know the variables that the tools set.
        wrong |= shellcheck("--shell=bash", "--exclude=SC2154", *commands)
    print(f"{len(scripts)} scripts, {len(commands)} commands of {len(tables)} languages")
    return 1 if wrong else 0


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return SHELL.match(file.read(64)) is not None


def written(table: Path, root: Path, folder: Path) -> Iterator[Path]:
    """Writes each command to a file with the name of its table and key."""
    place = folder / table.relative_to(root)
    place.mkdir(parents=True)
    for key, command in commands(tomllib.loads(table.read_text(encoding="utf-8"))):
        (place / key).write_text(f"{command}\n", encoding="utf-8")
        yield place / key


def commands(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from commands(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from commands(inner, f"{key}[{number}]")
    elif isinstance(value, str):
        parts = key.split(".")
        if parts[-1] in COMMANDS or "runs" in parts[:-1]:
            yield key, value


def shellcheck(*arguments: str | Path) -> bool:
    """Prints the problems, one per line, and returns whether there are any."""
    command = [SHELLCHECK, "--severity=warning", "--format=gcc", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
