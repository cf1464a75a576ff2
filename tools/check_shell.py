"""Checks every shell script and every command in a language.toml with ShellCheck.

Also checks that every executable begins with `#!` and the reverse.
Exit codes: 0 all are right, 1 one is not, 2 could not run.
"""

from __future__ import annotations

import json
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
# A command has no file name to report. ShellCheck does not know the variables that the tools set.
OF_COMMANDS = ("--shell=bash", "--exclude=SC2154")


def main() -> int:
    if not SHELLCHECK.is_file():
        print(f"check_shell: {SHELLCHECK} is missing; hint: run make setup", file=sys.stderr)
        return 2
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, check=True)
    files = [line.split(maxsplit=3) for line in listed.stdout.decode().splitlines()]
    found = [problem for mode, _, _, name in files for problem in check_mode(ROOT / name, mode)]
    scripts = [name for *_, name in files if SHELL.match(_head(ROOT / name))]
    found += shellcheck(["--external-sources", "--source-path=SCRIPTDIR", *scripts])
    tables = sorted(ROOT.glob("cpp/language.toml")) + sorted(ROOT.glob("bindings/*/language.toml"))
    for table in tables:
        found += check_table(table)
    print("".join(f"{line}\n" for line in found), end="")
    print(f"{len(scripts)} scripts, {len(tables)} language.toml, {len(found)} wrong")
    return 1 if found else 0


def check_mode(path: Path, mode: str) -> Iterator[str]:
    head = _head(path)
    if mode == "100755" and not head.startswith(b"#!"):
        yield f"{path.relative_to(ROOT)}: executable, and does not begin with #!"
    if mode == "100644" and head.startswith(b"#!/"):
        yield f"{path.relative_to(ROOT)}: begins with #!, and is not executable"


def check_table(table: Path) -> list[str]:
    """The problems in the commands of one language.toml, by key."""
    found = []
    for key, command in commands(tomllib.loads(table.read_text(encoding="utf-8"))):
        with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as file:
            file.write(f"{command}\n")
            file.flush()
            lines = shellcheck([*OF_COMMANDS, file.name])
        name = f"{table.relative_to(ROOT)}: {key}"
        found += [line.replace(file.name, name) for line in lines]
    return found


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


def shellcheck(arguments: list[str]) -> list[str]:
    command = [str(SHELLCHECK), "--severity=warning", "--format=json", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode())
    return [
        f"{found['file']}:{found['line']}: {found['message']} [SC{found['code']}]"
        for found in json.loads(done.stdout)
    ]


def _head(path: Path) -> bytes:
    if not path.is_file() or path.is_symlink():
        return b""
    with path.open("rb") as file:
        return file.read(64)


if __name__ == "__main__":
    sys.exit(main())
