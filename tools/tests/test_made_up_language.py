"""Adds a fake language as two files to a scratch copy of the repository. It must appear in every
table, and fail where it has no implementation, without other edits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import scratch_tree

MANIFEST = """
title = "Quiver"
commands = ["quiverc"]
toolchain = { check = "true", hint = "install Quiver", version = "echo Quiver 1" }
build = { command = "./stub build" }

[[suite]]
title = "stub"
command = "./stub suite"

[[columns]]
name = "quiver"
oracle = "./stub oracle"
cases = "./stub cases"
subject = "native"
devices = "./stub devices"
probe = { build = "true", run = "./stub probe", tests = "true" }

[[mutants]]
prepare = "true"
build = "true"
runs = { quiver = "./stub oracle" }
"""
STUB = '#!/bin/bash\necho "stub: $*"\n'


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files, the fake language, and the builds, which this test only reads."""
    root = tmp_path_factory.mktemp("tree")
    scratch_tree.make(root)
    home = root / "bindings" / "quiver"
    home.mkdir()
    (home / "language.toml").write_text(MANIFEST, encoding="utf-8")
    (home / "stub").write_text(STUB, encoding="utf-8")
    (home / "stub").chmod(0o755)
    return root


def run(tree: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_column_is_in_matrix_and_fails(tree: Path) -> None:
    code, output = run(tree, "tests/roundtrip/roundtrip.py", "--matrix", "--language", "quiver")
    assert code == 1
    lines = output.splitlines()
    assert "quiver" in [line.strip() for line in lines]
    assert any("the program ended well" in line for line in lines), output
    passed = next(line for line in lines if line.startswith("passed"))
    right, _, expected = passed.split()[1].partition("/")
    assert right == "0" and int(expected) > 1000
    assert "M missing" in output


def test_suite_runs_and_language_is_built(tree: Path) -> None:
    code, output = run(tree, "tools/suite.py", "quiver")
    assert code == 0 and "quiver: stub" in output
    assert not (tree / "build" / "suites").is_symlink()  # has the log of the run around this test
    code, output = run(tree, "tools/build_languages.py", "quiver")
    assert code == 0 and "build: quiver  ok" in output
    make = subprocess.run(
        ["make", "-n", "test-quiver"], cwd=tree, capture_output=True, text=True, check=True
    )
    assert "tools/suite.py quiver" in make.stdout


def test_mutants_survive(tree: Path) -> None:
    code, output = run(
        tree, "tests/mutants/mutants.py", "--language", "quiver", "--mutant", "name:kDLTrn"
    )
    assert code == 1
    assert "quiver: name:kDLTrn: survived" in output, output


def test_names_of_new_devices_are_missing(tree: Path) -> None:
    code, output = run(tree, "tests/mutants/new_device.py", "--language", "quiver")
    assert code == 1
    assert "quiver" in output and "the probe printed 1 lines instead of 3" in output, output


def test_missing_files_are_reported(tree: Path) -> None:
    code, output = run(tree, "tests/new_language/missing_parts.py", "quiver")
    assert code == 0
    for part in ("format", "targets", "gpu", "bench"):
        assert f"bindings/quiver/language.toml: no {part}: add it, or the reason" in output
