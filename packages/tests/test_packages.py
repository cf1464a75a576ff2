"""Tests the driver of the packages with homes that write a text file."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

import homes
import packages
from manifest import differences, write_manifest

HOME = "bindings/quiver"
LANGUAGE = """
title = "Quiver"
commands = ["quiverc"]
environment = { QUIVER = "set" }
toolchain = { check = "true", hint = "install Quiver", version = "echo Quiver 1" }
build = { command = "true" }
"""


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one home."""
    root = tmp_path / "repository"
    write(root / "spec" / "project.yaml", "name: quiver\nversion: 1.2.3\n")
    write(root / HOME / "language.toml", LANGUAGE)
    script(root, "build-package", 'echo "$VERSION $SOURCE_DATE_EPOCH $QUIVER" >"$OUT/quiver.txt"')
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    committed = [*git, "commit", "-qm", "x"]
    subprocess.run(committed, check=True, env={"GIT_COMMITTER_DATE": "@86400 +0000"})
    return root


def script(root: Path, name: str, command: str) -> None:
    executable = stat.S_IRWXU
    write(root / HOME / name, f"#!/usr/bin/env bash\nset -e\n{command}\n", executable)


def test_make_passes_version_date_and_environment(root: Path, tmp_path: Path) -> None:
    packages.make(HOME, tmp_path / "out", {}, root)
    assert (tmp_path / "out/quiver/quiver.txt").read_text("utf-8") == "1.2.3 86400 set\n"


def test_make_of_a_failing_script_keeps_the_old_packages(root: Path, tmp_path: Path) -> None:
    packages.make(HOME, tmp_path / "out", {}, root)
    script(root, "build-package", 'echo new >"$OUT/quiver.txt"; exit 3')
    with pytest.raises(homes.PackageError, match=r"build-package: failed with exit code 3"):
        packages.make(HOME, tmp_path / "out", {}, root)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quiver"]
    assert (tmp_path / "out/quiver/quiver.txt").read_text("utf-8").startswith("1.2.3")


def test_make_without_a_package_is_an_error(root: Path, tmp_path: Path) -> None:
    script(root, "build-package", "true")
    with pytest.raises(homes.PackageError, match=r"build-package: wrote no file: expected"):
        packages.make(HOME, tmp_path / "out", {}, root)


@pytest.mark.parametrize("name", ["new.txt", "language.toml"])
def test_build_of_a_dirty_tree_is_an_error(root: Path, tmp_path: Path, name: str) -> None:
    write(root / HOME / name, "# changed")
    with pytest.raises(homes.PackageError, match=rf"uncommitted.*{HOME}/{name}"):
        packages.build(root, tmp_path / "out", [HOME])
    assert not (tmp_path / "out").exists()


def test_unknown_home_is_an_error_that_lists_the_homes(root: Path) -> None:
    with pytest.raises(homes.PackageError, match=r"no home 'bow': expected .* bindings/quiver"):
        homes.homes(["bow"], root)


def test_build_outside_of_a_repository_is_an_error(root: Path, tmp_path: Path) -> None:
    shutil.rmtree(root / ".git")
    with pytest.raises(homes.PackageError, match=r"git log: .*not a git repository"):
        packages.make(HOME, tmp_path / "out", {}, root)


def test_use_without_packages_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(homes.PackageError, match=r"not found: run `make packages` first"):
        packages.use("bindings/rust", tmp_path, {})


def test_manifest_lists_every_file_with_its_hash(tmp_path: Path) -> None:
    write(tmp_path / "rust" / "a.crate", "a")
    write_manifest(tmp_path, "1.2.3", 86400)
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    digest = hashlib.sha256(b"a").hexdigest()
    assert manifest["date"] == "1970-01-02T00:00:00+00:00"
    assert manifest["files"] == [{"path": "rust/a.crate", "size": 1, "sha256": digest}]
    sums = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path, check=False)
    assert sums.returncode == 0
    assert len((tmp_path / "SHA256SUMS").read_text("utf-8").splitlines()) == 2


def test_differences_names_missing_and_changed_files(tmp_path: Path) -> None:
    for name, text in {
        "one/a": "1",
        "one/b": "1",
        "one/c": "1",
        "two/a": "1",
        "two/b": "2",
    }.items():
        write(tmp_path / name, text)
    write(tmp_path / "two" / "d", "1")
    expected = ["only in the first: c", "only in the second: d", "different: b"]
    assert list(differences(tmp_path / "one", tmp_path / "two")) == expected
