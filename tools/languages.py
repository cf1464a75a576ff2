"""The languages as the tools know them, from cpp/language.toml and bindings/*/language.toml.

Commands run in bash from the home folder, with ROOT set to the repository that has .venv and build.
docs/adding-a-language.md describes every key.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    check: str  # succeeds when the toolchain is there
    hint: str  # "install Rust 1.85 or later"
    version: str  # prints the version on its first line
    packages: tuple[str, ...] = ()  # of Debian, "maven:mvn": the command or file that proves it


@dataclass(frozen=True)
class Build:
    command: str  # for the tests; libraries go to build/lib
    roundtrip: str = ""  # the part of it that the round trip runs; empty: all
    after: tuple[str, ...] = ()  # the homes that have to be built before this one
    loads: tuple[str, ...] = ()  # the homes whose libraries its programs load


@dataclass(frozen=True)
class Step:
    """One step of the language's suite in `make test`."""

    title: str
    command: str
    environment: Environment = field(default_factory=dict)
    needed: bool = False  # without it the rest of the suite makes no sense
    only_all: bool = False  # too long for `make test`
    beside: bool = False  # may run at the same time as the step before it
    ctest: str = ""  # the build folder whose ctest it runs, from the root


@dataclass(frozen=True)
class Probe:
    """Prints a name for each of its arguments, "device:19" or "code:18"."""

    build: str  # in a scratch tree, after the build of the mutants
    run: str  # the arguments follow
    tests: str  # the language's own tests of its device types and codes


@dataclass(frozen=True)
class Column:
    """A column of the matrix. Java has two."""

    name: str  # "java-ffm"
    oracle: str = ""  # reports the cells of the structs
    cases: str = ""  # the round trip with the reference producer
    subject: str = ""  # "native", or a Python file of the home; empty: no peers
    devices: str = ""  # every backend; once set, each of its cells has to be there
    corpus: str = ""  # the groups of the suite in $CORPUS; once set, each of its cells is due
    device_directions: tuple[str, ...] = ()  # those of the command; empty: all
    host: str = ""  # `devices` on a GPU machine, where the suite is not a program that loads it
    needs: str = ""  # succeeds when all is there; empty: the check of the toolchain
    hint: str = ""  # what to do when it is not
    probe: Probe | None = None


@dataclass(frozen=True)
class Mutants:
    """How a test that has to notice wrong specs is built and run in a scratch tree."""

    prepare: str  # once per scratch tree
    build: str  # after every change; it fails when the declarations do not compile
    runs: Mapping[str, str]  # by column; `failed` when a check fails
    failed: int = 1  # the exit code of a test that ran and failed
    kind: str = "abi"  # of the mutants that it is tried on: "abi" or "events"
    libraries: str = ""  # the folder with the vendors' libraries, below build/lib
    uses: tuple[str, ...] = ()  # files of the repository that the home's own build makes


@dataclass(frozen=True)
class Target:
    """A column of `make targets`: what runs on another machine."""

    title: str
    about: str  # a sentence for the reader of the table
    command: str
    needs: str = "true"  # prints what is missing
    environment: Mapping[str, Environment] = field(default_factory=dict)  # by machine


@dataclass(frozen=True)
class Gpu:
    """What travels to a GPU machine that has no toolchain of the language."""

    build: str  # into the folder $OUT
    files: tuple[str, ...]  # what it makes there


@dataclass(frozen=True)
class Bench:
    prepare: str  # installs what `make bench-<language>` needs
    build: str
    rows: str  # a Python file of the home with ROWS
    step: str  # the arguments with which `make test` runs it
    only_all: bool = False  # a step of `make test-all` alone


@dataclass(frozen=True)
class Mutation:
    """Mutation testing of the safe layer: tests/mutants_code/language_mutants.py."""

    command: str  # tries the mutants and writes what became of each to the file $RESULTS
    table: str  # "tests/mutants.yaml": those that survive, each with the reason


@dataclass(frozen=True)
class Rules:
    """Which tests are those of the rules in spec/rules/: rule_tables.py."""

    table: str  # "tests/rules.yaml": the rules without a test, by the reason
    files: tuple[str, ...]  # "tests/**/*_test.cpp": where the tests are
    test: str  # a regular expression: its group is the name of a rule, as a test spells it
    # ("tensors",): the groups of tests/conformance that its subject lacks. None: it has no subject.
    not_played: tuple[str, ...] | None = None
    core: str | None = None  # the home of the language that the reason `core` leaves a rule to


@dataclass(frozen=True)
class Blocks:
    """The code blocks of pages that are in this language: code_blocks.py."""

    fences: tuple[str, ...]  # "python": what their fences say
    run: str  # runs each file in $BLOCKS; NAME.output next to one has what it prints


@dataclass(frozen=True)
class Language:
    title: str  # "Rust"
    commands: tuple[str, ...]  # that no file outside of the home may call
    manifests: tuple[str, ...]  # file names that no folder outside of the home may have
    toolchain: Toolchain
    build: Build
    format: str = ""  # the formatters, which write
    environment: Environment = field(default_factory=dict)  # of every command
    setup: str = ""  # installs what `make targets` needs of the language
    suite: tuple[Step, ...] = ()
    columns: tuple[Column, ...] = ()
    mutants: tuple[Mutants, ...] = ()
    targets: tuple[Target, ...] = ()
    gpu: Gpu | None = None
    bench: Bench | None = None
    mutation: Mutation | None = None
    rules: Rules | None = None
    blocks: Blocks | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)  # what it does not have, and why
    # Not in the file:
    name: str = ""
    folder: str = ""  # "bindings/rust"


def load(root: Path = ROOT) -> dict[str, Language]:
    """Every language by the name of its folder, each behind those whose build it needs."""
    paths = [root / "cpp" / FILE, *sorted(root.glob(f"bindings/*/{FILE}"))]
    found = {path.parent.name: read(path, root) for path in paths if path.is_file()}
    _check_together(found)
    ordered: dict[str, Language] = {}
    for name in found:
        _put_behind(name, found, ordered, ())
    return ordered


def read(path: Path, root: Path = ROOT) -> Language:
    """One file. Raises LanguageError."""
    where = path.relative_to(root).as_posix()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LanguageError(f"{where}: not TOML: {error}") from error
    place = {"name": path.parent.name, "folder": Path(where).parent.as_posix()}
    language: Language = struct(Language, table, where, "", place)
    return language


def _check_together(found: Mapping[str, Language]) -> None:
    """What one file says of another, or of itself at two places."""
    owners: dict[str, str] = {}
    for language in found.values():
        where = f"{language.folder}/{FILE}"
        build = language.build
        for key, others in {"after": build.after, "loads": build.loads}.items():
            for other in others:
                if other not in found:
                    raise LanguageError(
                        f"{where}: build.{key}: expected one of {', '.join(found)}, got '{other}'"
                    )
        for column in language.columns:
            if column.name in owners:
                raise LanguageError(
                    f"{where}: columns: '{column.name}' is a duplicate of {owners[column.name]}"
                )
            owners[column.name] = where
        own = [column.name for column in language.columns]
        for mutants in language.mutants:
            for run in mutants.runs:
                if run not in own:
                    raise LanguageError(
                        f"{where}: mutants.runs: expected one of {', '.join(own)}, got '{run}'"
                    )


def _put_behind(
    name: str,
    found: Mapping[str, Language],
    ordered: dict[str, Language],
    waiting: tuple[str, ...],
) -> None:
    if name in waiting:
        raise LanguageError(f"{found[name].folder}/{FILE}: build.after: '{name}' needs itself")
    for other in found[name].build.after:
        if other not in ordered:
            _put_behind(other, found, ordered, (*waiting, name))
    ordered.setdefault(name, found[name])


def environment(language: Language, root: Path = ROOT) -> dict[str, str]:
    """What every command of the language gets; `root`: the repository that has .venv and build/."""
    return {"ROOT": str(root), **language.environment}


def succeeds(language: Language, command: str, root: Path = ROOT) -> bool:
    """Whether a check of the language passes; it prints nothing then."""
    found = subprocess.run(
        ["bash", "-c", command],
        cwd=root / language.folder,
        env={**os.environ, **environment(language, root)},
        check=False,
        capture_output=True,
    )
    return found.returncode == 0


def run(language: Language, command: str) -> None:
    """Raises CalledProcessError when the command fails."""
    variables = {**os.environ, **environment(language)}
    folder = ROOT / language.folder
    subprocess.run(["bash", "-c", command], cwd=folder, env=variables, check=True)


def columns(languages: Mapping[str, Language]) -> dict[str, tuple[Language, Column]]:
    """Every column of the matrix, in the order of the languages."""
    return {c.name: (language, c) for language in languages.values() for c in language.columns}
