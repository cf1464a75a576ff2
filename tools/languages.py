"""The languages, as described in cpp/language.toml and bindings/*/language.toml.

Commands run in bash from the home folder, with ROOT set to the repository that has .venv and build.
docs/adding-a-language.md describes every key.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, which a GPU machine may have
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

from closed_table import TableError, struct

ROOT = Path(__file__).resolve().parent.parent
FILE = "language.toml"
NATIVE = "native"
Environment = Mapping[str, str]
LanguageError = TableError  # a language.toml is wrong; the text names file and key


@dataclass(frozen=True)
class Toolchain:
    check: str  # succeeds if the toolchain exists
    hint: str  # "install Rust 1.85 or later"
    version: str  # prints the version on its first line
    packages: tuple[str, ...] = ()  # Debian packages, "maven:mvn": a command or file as proof


@dataclass(frozen=True)
class Build:
    command: str  # for the tests; libraries go to build/lib
    roundtrip: str = ""  # the part of it that the round trip needs; empty: all
    after: tuple[str, ...] = ()  # homes that must be built before this one
    loads: tuple[str, ...] = ()  # homes whose libraries its programs load


@dataclass(frozen=True)
class Step:
    """One step of the language's suite in `make test`."""

    title: str
    command: str
    environment: Environment = field(default_factory=dict)
    needed: bool = False  # the rest of the suite is pointless without it
    only_all: bool = False  # too slow for `make test`
    cores: int = 2  # 1: another step of one core may run in parallel
    ctest: str = ""  # build folder of its ctest, relative to the root


@dataclass(frozen=True)
class Probe:
    """Prints a name for each of its arguments, "device:19" or "code:18"."""

    build: str  # runs in a scratch tree, after the build of the mutants
    run: str  # gets the arguments appended
    tests: str  # the language's tests of its device types and codes


@dataclass(frozen=True)
class Column:
    """A column of the matrix. Java has two."""

    name: str  # "java-ffm"
    oracle: str = ""  # reports the cells of the structs
    cases: str = ""  # the round trip with the reference producer
    subject: str = ""  # "native", or a Python file of the home; empty: no peers
    devices: str = ""  # every backend; if set, all its cells must arrive
    corpus: str = ""  # the groups of the suite in $CORPUS; if set, all its cells must arrive
    device_directions: tuple[str, ...] = ()  # directions of the command; empty: all
    host: str = ""  # `devices` on a GPU machine, if the suite is not a program that loads it
    needs: str = ""  # succeeds if everything is installed; empty: the check of the toolchain
    hint: str = ""  # the message if it fails
    probe: Probe | None = None


@dataclass(frozen=True)
class Mutants:
    """Builds and runs, in a scratch tree, a test that must detect wrong specs."""

    prepare: str  # once per scratch tree
    build: str  # after every change; fails if the declarations do not compile
    runs: Mapping[str, str]  # by column; each exits with `failed` if a check fails
    failed: int = 1  # exit code of a test that ran and failed
    kind: str = "abi"  # kind of mutants to try: "abi" or "events"
    libraries: str = ""  # folder of the vendors' libraries, below build/lib
    uses: tuple[str, ...] = ()  # files of the repository that the home's build makes


@dataclass(frozen=True)
class Target:
    """A column of `make targets`, which runs on another machine."""

    title: str
    about: str  # a sentence for readers of the table
    command: str
    needs: str = "true"  # prints what is missing
    environment: Mapping[str, Environment] = field(default_factory=dict)  # by machine


@dataclass(frozen=True)
class Gpu:
    """The files for a GPU machine without the language's toolchain."""

    build: str  # writes to the folder $OUT
    files: tuple[str, ...]  # the files that it writes


@dataclass(frozen=True)
class Bench:
    prepare: str  # installs the dependencies of `make bench-<language>`
    build: str
    rows: str  # a Python file of the home with ROWS
    step: str  # arguments for the run in `make test`
    only_all: bool = False  # a step only of `make test-all`
    cores: int = 2  # of the step; 1 if it measures no times, and its neighbor builds elsewhere


@dataclass(frozen=True)
class Mutation:
    """Mutation testing of the safe layer: tests/mutants_code/language_mutants.py."""

    command: str  # tries the mutants and writes their results to the file $RESULTS
    table: str  # "tests/mutants.yaml": the survivors with their reasons


@dataclass(frozen=True)
class Rules:
    """The tests of the rules in spec/rules/: rule_tables.py."""

    table: str  # "tests/rules.yaml": the rules without a test, by reason
    files: tuple[str, ...]  # "tests/**/*_test.cpp": files with tests
    test: str  # regular expression; its group is the name of a rule as spelled in a test
    # Groups of tests/conformance that its subject lacks, such as "tensors". None: no subject.
    not_played: tuple[str, ...] | None = None
    core: str | None = None  # home of the language that tests the rules with the reason `core`


@dataclass(frozen=True)
class Blocks:
    """The code blocks of pages in this language: code_blocks.py."""

    fences: tuple[str, ...]  # "python": language names on their fences
    run: str  # runs each file in $BLOCKS; NAME.output beside it has the expected output


@dataclass(frozen=True)
class Version:
    """Lines that contain the version of Fletching: packages/versions.py."""

    files: str  # a pattern of paths in the home, in which * also matches a slash
    pattern: str  # multi-line regular expression; group 1 is the version


@dataclass(frozen=True)
class Release:
    sources: str  # regular expression: source files of the packages, which name the license
    versions: tuple[Version, ...] = ()


@dataclass(frozen=True)
class Language:
    title: str  # "Rust"
    toolchain: Toolchain
    build: Build
    commands: tuple[str, ...] = ()  # the programs of its toolchain
    format: str = ""  # the formatters, which write
    environment: Environment = field(default_factory=dict)  # for every command
    setup: str = ""  # installs the language's dependencies of `make targets`
    suite: tuple[Step, ...] = ()
    columns: tuple[Column, ...] = ()
    mutants: tuple[Mutants, ...] = ()
    targets: tuple[Target, ...] = ()
    gpu: Gpu | None = None
    bench: Bench | None = None
    mutation: Mutation | None = None
    rules: Rules | None = None
    blocks: Blocks | None = None
    release: Release | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)  # missing parts with their reasons
    # Not in the file:
    name: str = ""
    folder: str = ""  # "bindings/rust"


def load(root: Path = ROOT) -> dict[str, Language]:
    """Returns the languages by folder name, each after the languages whose builds it needs."""
    paths = [root / "cpp" / FILE, *sorted(root.glob(f"bindings/*/{FILE}"))]
    found = {path.parent.name: read(path, root) for path in paths if path.is_file()}
    _check_together(found)
    builds = TopologicalSorter({name: each.build.after for name, each in found.items()})
    try:
        return {name: found[name] for name in builds.static_order()}
    except CycleError as error:
        name = error.args[1][0]
        where = f"{found[name].folder}/{FILE}"
        raise LanguageError(f"{where}: build.after: '{name}' needs itself") from error


def read(path: Path, root: Path = ROOT) -> Language:
    """Reads one file. Raises LanguageError."""
    where = path.relative_to(root).as_posix()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LanguageError(f"{where}: not TOML: {error}") from error
    place = {"name": path.parent.name, "folder": Path(where).parent.as_posix()}
    language: Language = struct(Language, table, where, "", place)
    return language


def _check_together(found: Mapping[str, Language]) -> None:
    """Checks relations between files, and between parts of one file."""
    owners: dict[str, str] = {}
    for language in found.values():
        where = f"{language.folder}/{FILE}"
        own = [column.name for column in language.columns]
        for name in own:
            if name in owners:
                raise LanguageError(f"{where}: columns: '{name}' is a duplicate of {owners[name]}")
            owners[name] = where
        for key, names, known in (
            ("build.after", language.build.after, found),
            ("build.loads", language.build.loads, found),
            *(("mutants.runs", mutants.runs, own) for mutants in language.mutants),
        ):
            for name in names:
                if name not in known:
                    expected = f"expected one of {', '.join(known)}, got '{name}'"
                    raise LanguageError(f"{where}: {key}: {expected}")


def environment(language: Language, root: Path = ROOT) -> dict[str, str]:
    """The environment of the language's commands. `root`: the repository with .venv and build/."""
    return {"ROOT": str(root), **language.environment}


def succeeds(language: Language, command: str, root: Path = ROOT) -> bool:
    """Whether a check of the language passes. It prints nothing."""
    try:
        run(language, command, root, capture_output=True)
    except subprocess.CalledProcessError:
        return False
    return True


def run(language: Language, command: str, root: Path = ROOT, capture_output: bool = False) -> None:
    """Runs a command. Raises CalledProcessError if it fails."""
    subprocess.run(
        ["bash", "-c", command],
        cwd=root / language.folder,
        env={**os.environ, **environment(language, root)},
        check=True,
        capture_output=capture_output,
    )


def columns(languages: Mapping[str, Language]) -> dict[str, tuple[Language, Column]]:
    """Every column of the matrix, in the order of the languages."""
    return {c.name: (language, c) for language in languages.values() for c in language.columns}
