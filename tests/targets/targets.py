"""Runs the layouts and the tests on other machines, and prints a table with a row per target.

`make targets` installs the dependencies and calls it. A cell is a list of commands whose output
goes to build/logs; the end of the output of a failed cell is printed, and other cells continue.
Exit codes: 0 every cell is ok, 1 a cell failed, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import languages  # noqa: E402
from languages import Language  # noqa: E402

HERE = ROOT / "tests" / "targets"
BUILD = ROOT / "build" / "targets"
LOGS = ROOT / "build" / "logs"
RESULTS = ROOT / "build" / "targets.json"
DOCS = ROOT / "docs" / "measured" / "targets.md"
GTEST = Path("/usr/src/googletest/CMakeLists.txt")
SHOWN_LINES = 25


@dataclass(frozen=True)
class Target:
    name: str  # "armhf"
    triple: str  # "arm-linux-gnueabihf": Debian's cross compiler, and its folder in /usr
    processor: str  # "arm": for CMake
    layout: str  # "32bit-align8": the layout class that the generator must choose
    big_endian: bool
    emulator: str  # "qemu-arm"; empty if the host's processor runs the programs
    loader: str  # "ld-linux.so.2": if no emulator finds it

    @property
    def root(self) -> Path:
        return Path("/usr") / self.triple

    @property
    def runner(self) -> list[str]:
        """The command prefix for a program that is linked to the target's C library."""
        if self.emulator:
            return [self.emulator, "-L", str(self.root)]
        return [str(self.root / "lib" / self.loader), "--library-path", str(self.root / "lib")]


TARGETS = (
    Target(
        "i686",
        "i686-linux-gnu",
        "i686",
        layout="32bit-align4",
        big_endian=False,
        emulator="",
        loader="ld-linux.so.2",
    ),
    Target(
        "aarch64",
        "aarch64-linux-gnu",
        "aarch64",
        layout="64bit",
        big_endian=False,
        emulator="qemu-aarch64",
        loader="",
    ),
    Target(
        "armhf",
        "arm-linux-gnueabihf",
        "arm",
        layout="32bit-align8",
        big_endian=False,
        emulator="qemu-arm",
        loader="",
    ),
    Target(
        "s390x",
        "s390x-linux-gnu",
        "s390x",
        layout="64bit",
        big_endian=True,
        emulator="qemu-s390x",
        loader="",
    ),
)


class CannotRunError(Exception):
    """A cell could not be started; the message gives the reason."""


@dataclass(frozen=True)
class Command:
    words: Sequence[str | Path]
    folder: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)
    text: str = ""  # standard input


@dataclass(frozen=True)
class Column:
    name: str  # "oracle"
    about: str  # a sentence for readers of the table
    commands: Callable[[Target], list[Command]]
    needs: Callable[[Target], list[str | Path]]  # required commands and files


@dataclass(frozen=True)
class Cell:
    target: str
    column: str
    status: str  # "ok", "FAILED" or "absent"
    reason: str  # empty if ok
    seconds: float


# --- The columns


def _c(target: Target) -> list[Command]:
    """Fletching's headers with their assertions, alone and after upstream's."""
    order = "BIG" if target.big_endian else "LITTLE"
    ours = (
        "#include <fletching/abi.h>\n#include <fletching/dlpack.h>\n"
        f"#if __BYTE_ORDER__ != __ORDER_{order}_ENDIAN__\n#error the byte order differs\n#endif\n"
    )
    upstream = "#include <arrow/c/abi.h>\n#include <dlpack/dlpack.h>\n"
    return [
        Command([*_compile_c(target, standard), "-"], text=text)
        for standard in ("c99", "c11")
        for text in (ours, upstream + ours)
    ]


def _compile_c(target: Target, standard: str) -> list[str | Path]:
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    includes: list[str | Path] = ["-I", ROOT / "cpp" / "include", "-isystem", _upstream()]
    return [f"{target.triple}-gcc", *flags, *includes, "-x", "c"]


def _oracle(target: Target) -> list[Command]:
    """CMake's build for the target, which the languages' columns use too."""
    folder = BUILD / target.name
    settings = {
        "CMAKE_BUILD_TYPE": "Debug",
        "CMAKE_TOOLCHAIN_FILE": HERE / "toolchain.cmake",
        "CMAKE_PROJECT_TOP_LEVEL_INCLUDES": HERE / "gtest.cmake",
        "FLETCHING_UPSTREAM_INCLUDE": _upstream(),
        "FLETCHING_TRIPLE": target.triple,
        "FLETCHING_PROCESSOR": target.processor,
        "FLETCHING_RUNNER": ";".join(target.runner),
    }
    definitions = [f"-D{name}={value}" for name, value in settings.items()]
    test = "oracle_self_test"
    build: list[str | Path] = ["cmake", "--build", folder, "-j2", "--target"]
    return [
        Command(["cmake", "-S", ROOT, "-B", folder, *definitions]),
        Command([*build, "fletching_oracle", test]),
        Command([HERE / "ctest-exactly", folder, test]),
    ]


def _columns(language: Language) -> Iterator[Column]:
    """The columns in [[targets]] of language.toml. The oracle's column configures the build."""
    for each in language.targets:

        def environment(target: Target, each: languages.Target = each) -> dict[str, str]:
            if each.environment and target.name not in each.environment:
                where = f"{language.folder}/{languages.FILE}: targets.environment"
                raise CannotRunError(f"{where}: missing key: expected {target.name}")
            return {
                **languages.environment(language),
                "BUILD": str(BUILD / target.name),
                "FLETCHING_LIB_DIR": str(BUILD / target.name / "lib"),
                "TRIPLE": target.triple,
                "EMULATOR": target.emulator,
                "RUNNER": " ".join(target.runner),
                **each.environment.get(target.name, {}),
            }

        def needs(target: Target, each: languages.Target = each) -> list[str | Path]:
            text = output(
                ["bash", "-c", each.needs], ROOT / language.folder, environment(target, each)
            )
            return [
                *_cmake_needs(target),
                *(Path(w) if w.startswith("/") else w for w in text.split()),
            ]

        def commands(target: Target, each: languages.Target = each) -> list[Command]:
            bash = ["bash", "-e", "-o", "pipefail", "-c", each.command]
            return [Command(bash, ROOT / language.folder, environment(target, each))]

        yield Column(each.title, each.about, commands, needs)


def _upstream() -> Path:
    found = ROOT / ".venv" / "upstream"
    if not found.is_dir():
        raise CannotRunError("no .venv/upstream; run `make setup`")
    return found


def _c_needs(target: Target) -> list[str | Path]:
    return [f"{target.triple}-gcc", target.root / "include" / "stdio.h"]


def _cmake_needs(target: Target) -> list[str | Path]:
    return [*_c_needs(target), "cmake", f"{target.triple}-g++", GTEST, target.runner[0]]


COLUMNS = (
    Column(
        "C",
        "`abi.h` and `dlpack.h` compile in C99 and C11 with assertions, also after upstream's",
        _c,
        _c_needs,
    ),
    Column(
        "oracle", "the oracle's self test runs on the target, byte by byte", _oracle, _cmake_needs
    ),
    *(column for language in languages.load().values() for column in _columns(language)),
)


# --- Running


def main() -> int:
    options = _parse()
    unknown = set(options.target) - {t.name for t in TARGETS}
    if unknown:
        known = ", ".join(t.name for t in TARGETS)
        print(f"targets: no target '{min(unknown)}'; use some of {known}", file=sys.stderr)
        return 2
    if options.write_docs and options.target:
        print("targets: --write-docs writes the whole table; name no target", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    cells = [_check_generator()]
    for target in TARGETS:
        if not options.target or target.name in options.target:
            cells += [_run_cell(target, column) for column in COLUMNS]
    table = _table(cells)
    print("\n" + "\n".join(table))
    versions = _versions()
    RESULTS.write_text(
        json.dumps({"versions": versions, "cells": [asdict(cell) for cell in cells]}, indent=2)
        + "\n",
        encoding="utf-8",
    )
    bad = [cell for cell in cells if cell.status != "ok"]
    for cell in bad:
        print(f"{cell.target}, {cell.column}: {cell.status}: {cell.reason}")
    print(f"{len(cells) - len(bad)} of {len(cells)} ok; written to {RESULTS.relative_to(ROOT)}")
    if options.write_docs:
        DOCS.parent.mkdir(parents=True, exist_ok=True)
        DOCS.write_text(_document(cells, table, versions), encoding="utf-8")
    return 1 if bad else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", help="some of them (default: all)")
    where = DOCS.relative_to(ROOT)
    parser.add_argument("--write-docs", action="store_true", help=f"also write {where}")
    return parser.parse_args()


def _check_generator() -> Cell:
    """Compares the layouts with Clang's for every triple, without running programs there."""
    commands = [
        Command(["tools/build", "extract"]),
        Command(["../.venv/bin/pytest", "-q", "tests/test_targets.py"], ROOT / "generator"),
    ]
    return _run("all triples", "Clang", commands)


def _run_cell(target: Target, column: Column) -> Cell:
    try:
        missing = [str(need) for need in column.needs(target) if not present(need)]
        if not missing:
            return _run(target.name, column.name, column.commands(target))
        status = "absent"
        reason = f"{', '.join(missing)}: not there; tests/targets/setup installs it"
    except CannotRunError as error:
        status, reason = "FAILED", str(error)
    print(f"{target.name:12} {column.name:11} {status}: {reason}", flush=True)
    return Cell(target.name, column.name, status, reason, 0)


def present(need: str | Path) -> bool:
    return need.exists() if isinstance(need, Path) else shutil.which(need) is not None


def _run(target: str, column: str, commands: list[Command]) -> Cell:
    slug = f"targets-{target}-{column}".lower().replace(" ", "-").replace("+", "p")
    log = LOGS / f"{slug}.log"
    print(f"{target:12} {column:11} ", end="", flush=True)
    start = time.monotonic()
    with log.open("wb") as file:
        passed = all(succeeds(command, file) for command in commands)
    seconds = time.monotonic() - start
    print(f"{'ok' if passed else 'FAILED'} ({seconds:.0f} s)", flush=True)
    if passed:
        return Cell(target, column, "ok", "", round(seconds, 1))
    show_end(log)
    return Cell(target, column, "FAILED", f"see {log.relative_to(ROOT)}", round(seconds, 1))


def succeeds(command: Command, log: BinaryIO) -> bool:
    words = [str(word) for word in command.words]
    log.write(f"$ {shlex.join(words)}\n".encode())
    log.flush()
    result = subprocess.run(
        words,
        cwd=command.folder,
        env={**os.environ, **command.environment},
        input=command.text.encode(),
        stdout=log,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return result.returncode == 0


def show_end(log: Path) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines[-SHOWN_LINES:]:
        print(f"    {line}")
    print(f"    (the whole log: {log.relative_to(ROOT)})", flush=True)


def output(
    words: Sequence[str], folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> str:
    variables = {**os.environ, **(environment or {})}
    result = subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise CannotRunError(f"{shlex.join(words)} failed: {result.stderr.strip()}")
    return result.stdout


# --- Reporting


def _table(cells: list[Cell]) -> list[str]:
    """A Markdown table, aligned so that it is readable in a terminal."""
    found = {(cell.target, cell.column): cell.status for cell in cells}
    rows = [["target", "layout class", *(column.name for column in COLUMNS)]]
    for target in TARGETS:
        if any(cell.target == target.name for cell in cells):
            order = ", big-endian" if target.big_endian else ""
            statuses = [found[target.name, column.name] for column in COLUMNS]
            rows.append([target.name, target.layout + order, *statuses])
    return aligned(rows)


def aligned(rows: list[list[str]]) -> list[str]:
    """The lines of a Markdown table. The first row is the head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [rows[0], ["-" * width for width in widths], *rows[1:]]
    return [
        f"| {' | '.join(t.ljust(w) for t, w in zip(row, widths, strict=True))} |" for row in lines
    ]


def _versions() -> dict[str, str]:
    """The version line of each tool that is installed."""
    asked = {
        "GCC": [f"{TARGETS[0].triple}-gcc", "--version"],
        "Clang": ["clang-19", "--version"],
        "qemu": ["qemu-s390x", "--version"],
    }
    found = {k: output(v).splitlines()[0] for k, v in asked.items() if shutil.which(v[0])}
    for language in languages.load().values():
        if language.targets and languages.succeeds(language, language.toolchain.check):
            version = ["bash", "-c", language.toolchain.version]
            found[language.title] = output(version, ROOT / language.folder).splitlines()[0]
    names = ["pyarrow", "apache-tvm-ffi"]
    code = (
        f"from importlib.metadata import version as v; print(*(f'{{n}} {{v(n)}}' for n in {names}))"
    )
    return {**found, "upstream's headers": output([".venv/bin/python", "-c", code]).strip()}


def _document(cells: list[Cell], table: list[str], versions: dict[str, str]) -> str:
    lines = [
        "# Targets",
        "",
        "Layouts three ways: computed by the generator, said by each target's compilers, asserted",
        "in the compiled bindings; and the tests, run on the target. `make targets` measures it",
        "again; `.venv/bin/python tests/targets/targets.py --write-docs` wrote this file.",
        "",
        *table,
        "",
        *(f"- **{column.name}**: {column.about}." for column in COLUMNS),
        "",
        "i686 runs on the processor of the host, the others in qemu's user mode. Beside the table,",
        "the generator's layouts are held against Clang's for every triple of `check-header`, for",
        f"upstream's header and for ours, in C and C++: {cells[0].status}.",
        "",
        f"Measured on {datetime.date.today().isoformat()} with:",
        "",
        *(f"- {name}: {version}" for name, version in versions.items()),
    ]
    bad = [cell for cell in cells if cell.status != "ok"]
    lines += (
        ["", *(f"- {c.target}, {c.column}: {c.status}: {c.reason}" for c in bad)] if bad else []
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotRunError as error:
        print(f"targets: {error}", file=sys.stderr)
        sys.exit(2)
