"""Adds a language to a copy of the repository with only its two folders. It must be generated,
built, and appear in the columns, the mutants and every table without other edits."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scratch_tree
from cells import CASE_DIRECTIONS
from languages import ROOT

HERE = Path(__file__).parent
FOLDERS = ("generator", "bindings")
MOST_LINES = 650
KEPT = ROOT / "build" / "new_language"  # the compiler and its cache, between runs
MANIFEST = tomllib.loads((HERE / "bindings/language.toml").read_text("utf-8"))
NAME = str(MANIFEST["title"]).lower()
HOMES = (f"bindings/{NAME}", f"generator/fletching_generator/languages/{NAME}")


@pytest.fixture(scope="module")
def compiler() -> Path:
    """The folder of the pinned compiler, reinstalled when requirements.txt changes."""
    requirements = HERE / "requirements.txt"
    packages, stamp = KEPT / "packages", KEPT / "stamp"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        shutil.rmtree(packages, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
        exact = ["--require-hashes", "--target", str(packages), "-r", str(requirements)]
        subprocess.run([*pip, *exact], check=True)
        stamp.write_text(wanted, "utf-8")
    return next(packages.glob(f"*/{MANIFEST['commands'][0]}")).parent


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Adds the two folders and generates. Checks at the end that no other file differs."""
    root = tmp_path_factory.mktemp("tree")
    scratch_tree.make(root)
    for folder in FOLDERS:
        shutil.rmtree(root / "tests" / "new_language" / folder)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    for folder, home in zip(FOLDERS, reversed(HOMES), strict=True):
        shutil.copytree(HERE / folder, root / home, ignore=shutil.ignore_patterns("__pycache__"))
    generate(root)
    yield root
    listed = ["git", "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    assert not [name for name in names.split("\0") if name and not name.startswith(HOMES)]


@pytest.fixture(scope="module")
def run(tree: Path, compiler: Path) -> Runner:
    return Runner(tree, compiler)


class Runner:
    """Runs a tool of the copy, with the compiler on the PATH."""

    def __init__(self, tree: Path, compiler: Path) -> None:
        path = {"PATH": f"{compiler}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(KEPT / "cache")}
        self.tree, self._environment = tree, {**os.environ, **path}

    def __call__(self, *arguments: str) -> str:
        """The output of a successful run."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.tree,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        return done.stdout


def generate(tree: Path, *more: str) -> None:
    command = [sys.executable, "-m", "fletching_generator.cli", "--root", ".", "generate", *more]
    environment = {**os.environ, "PYTHONPATH": str(tree / "generator")}
    subprocess.run(command, cwd=tree, env=environment, check=True)


def test_language_is_short() -> None:
    files = [path for folder in FOLDERS for path in (HERE / folder).rglob("*") if path.is_file()]
    written = [path for path in files if path.parent.name != "__pycache__"]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in written)
    print(f"{NAME}: {lines} hand-written lines in {len(written)} files")
    assert 0 < lines <= MOST_LINES


def test_generated_files_agree(tree: Path) -> None:
    generate(tree, "--check")


def test_every_missing_part_has_reason(run: Runner) -> None:
    lines = run("tests/new_language/missing_parts.py", NAME).splitlines()
    assert [line for line in lines if line and not line.startswith(f"{NAME}: ")] == []


def test_suite_passes(run: Runner) -> None:
    run("tools/build_languages.py", NAME)
    output = run("tools/suite.py", NAME)
    assert "1 passed, 0 failed" in output


def test_round_trip_column_is_right(run: Runner) -> None:
    """Every cell of structs, cases and peers. Devices need a safe layer, so they are not due."""
    print(run("tests/roundtrip/roundtrip.py", "--language", NAME))
    cells = json.loads((run.tree / "build" / "roundtrip.json").read_text("utf-8"))["cells"]
    due = [cell for cell in cells if _is_due(cell)]
    assert len(due) > 800
    assert [cell for cell in due if not cell["ok"]] == []


def _is_due(cell: dict[str, Any]) -> bool:
    cases = cell["backend"] == "cpu" and cell["direction"] in CASE_DIRECTIONS
    return "struct" in cell or "peer" in cell or cases


def test_mutants_are_killed(run: Runner) -> None:
    output = run("tests/mutants/mutants.py", "--language", NAME, "--sample", "16")
    assert f"{NAME}: 15 mutants: 15 killed" in output


def test_invented_device_reaches_language(run: Runner) -> None:
    output = run("tests/mutants/new_device.py", "--language", NAME)
    assert "1 passed, 0 failed" in output
