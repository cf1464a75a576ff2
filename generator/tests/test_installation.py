"""Tests of an installation without a clone, and of C++ programs that are missing or do not run."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from conftest import ABI, REPOSITORY, Scratch

from fletching_generator import installation
from fletching_generator.cli import main

ONE_TARGET = ["--targets", "x86_64-linux-gnu"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes this package look like one from a wheel without programs, in an empty folder."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(REPOSITORY / "spec", folder / "spec")
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.setattr(installation, "INSTALLED", folder)
    monkeypatch.setattr(installation, "_CLONE", empty)
    monkeypatch.setattr(installation, "_BUILT", empty)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("FLETCHING_EXTRACT", raising=False)
    monkeypatch.chdir(empty)
    return folder


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_commands_without_programs_use_installed_spec(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["layout", "ArrowArray"]) == 0
    assert main(["check-spec"]) == 0
    assert "spec is sound" in capsys.readouterr().out
    (installed / "spec" / "devices.yaml").unlink()
    assert main(["check-spec"]) == 1


def test_parent_folder_and_root_win_over_installed_spec(
    installed: Path, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = scratch.root / "a" / "b"
    inner.mkdir(parents=True)
    assert installation.find_root(Path.cwd()) == installed
    assert installation.find_root(inner) == scratch.root
    (scratch.root / "spec" / "devices.yaml").unlink()
    assert main(["layout"]) == 0
    assert main(["layout", "--root", str(scratch.root)]) == 2
    monkeypatch.chdir(inner)
    assert main(["layout"]) == 2


def test_other_projects_spec_folder_is_ignored(installed: Path) -> None:
    other = Path.cwd() / "spec"
    other.mkdir()
    (other / "project.yaml").write_text("name: another\n", encoding="utf-8")
    assert installation.find_root(Path.cwd()) == installed


@pytest.mark.parametrize(
    "command", [["generate"], ["generate", "--check"], ["traces", "--output", "t"], ["sync", "d.h"]]
)
def test_commands_that_write_need_clone(
    command: list[str], installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(installed.rglob("*"))
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"fletching: {command[0]}")
    assert "no clone found" in error and "hint: run it in a clone of https://" in error
    assert sorted(installed.rglob("*")) == before
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("command", "name", "variable"),
    [
        (["check-header", str(ABI)], "fletching-extract", "FLETCHING_EXTRACT"),
        (["check-header", "--json", str(ABI)], "fletching-extract", "FLETCHING_EXTRACT"),
        (["sync", "--dry-run", str(ABI)], "fletching-extract", "FLETCHING_EXTRACT"),
        (["devices"], "fletching-inspect", "FLETCHING_INSPECT"),
        (
            ["validate", "libc.so.6:puts", "--as", "stream-producer"],
            "fletching-validate",
            "FLETCHING_VALIDATE_PROGRAM",
        ),
        (
            ["validate", "--python", "json:loads"],
            "fletching-validate",
            "FLETCHING_VALIDATE_PROGRAM",
        ),
    ],
)
def test_missing_program_is_reported(
    command: list[str],
    name: str,
    variable: str,
    installed: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"fletching: {name} is not in this installation: expected the wheel" in captured.err
    assert f"set {variable} to it: https://" in captured.err


def test_missing_program_in_clone_names_build(
    installed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(installation, "_CLONE", REPOSITORY)
    assert main(["devices"]) == 2
    assert "fletching-inspect is not built; hint: run 'make build'" in capsys.readouterr().err


CAT = shutil.which("cat")  # the PATH is empty
LOADER = "/lib64/libc.so.6: version `GLIBC_2.34' not found"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"#!/bin/sh\n{CAT} >&2 <<'END'\n{LOADER}\nEND\nexit 1\n", LOADER),
        ("#!/bin/sh\nexit 127\n", "it ended with 127"),
        ("\x7fELF of another machine", "Exec format error"),
        ("#!/no/such/loader\n", "No such file or directory"),
    ],
    ids=["older glibc", "silent", "other machine", "other loader"],
)
def test_program_that_cannot_run_is_reported(
    content: str, problem: str, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extract = program(installed / "bin" / "fletching-extract", content)
    assert main(["check-header", str(ABI), str(ABI.parent / "dlpack_abi.h")]) == 2
    error = capsys.readouterr().err
    assert error.count("cannot run") == 1, "about the program, not about each header"
    assert f"fletching: {extract} cannot run: " in error and problem in error
    assert "hint: the wheel's programs need Linux on x86-64 with glibc 2.34" in error
    assert "set FLETCHING_EXTRACT to one" in error


def test_installed_program_is_found_before_path(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = program(Path.cwd() / "bin" / "fletching-extract", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(other.parent))
    assert installation.find_program("fletching-extract") == str(other)
    inner = program(installed / "bin" / "fletching-extract", "#!/bin/sh\n")
    assert installation.find_program("fletching-extract") == str(inner)
    monkeypatch.setenv("FLETCHING_EXTRACT", "named")
    assert installation.find_program("fletching-extract") == "named"


def test_output_of_other_version_is_reported(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(installed / "bin" / "fletching-extract", "#!/bin/sh\necho '{\"runs\": [1]}'\n")
    assert main(["check-header", str(ABI), *ONE_TARGET, "--json"]) == 2
    assert "is not a fletching-extract of this version" in capsys.readouterr().err


def test_package_files_equal_those_of_repository() -> None:
    for name in ("LICENSE", "NOTICE"):
        assert (REPOSITORY / "generator" / name).read_bytes() == (REPOSITORY / name).read_bytes()


def test_json_of_layout_does_not_need_programs(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["layout", "ArrowArray", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["64bit"]["ArrowArray"]["size"] == 80
