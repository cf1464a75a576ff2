"""Tests the command line of `fletching`: version, root, exit codes, a reader that exits early."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ABI, REPOSITORY, Scratch

from fletching_generator.cli import main
from fletching_generator.spec.model import Spec


def test_version_matches_spec(spec: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(REPOSITORY), "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"fletching {spec.project.version}\n"


def test_root_is_accepted_before_and_after_command(
    scratch: Scratch, dlpack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, root = str(dlpack), ["--root", str(scratch.root)]
    assert main([*root, "sync", header, "--dry-run"]) == 0
    assert main(["sync", header, "--dry-run", *root]) == 0
    assert main(["sync", *root, header, "--dry-run"]) == 0
    assert main(["--root", "/nowhere", "sync", *root, header, "--dry-run"]) == 0
    capsys.readouterr()
    assert main(["check-spec", "--root", "/nowhere"]) == 1
    assert "spec/project.yaml:1: (whole file): the file is missing" in capsys.readouterr().err


def test_invalid_spec_determines_exit_code(scratch: Scratch, dlpack: Path) -> None:
    """check-spec reports the mistake, and the other commands do not run because of it."""
    scratch.replace("devices.yaml", "value: 13", "value: thirteen")
    root = ["--root", str(scratch.root)]
    assert main(["check-spec", *root]) == 1
    for command in (["generate"], ["layout"], ["check-header", str(ABI)], ["sync", str(dlpack)]):
        assert main([*command, *root]) == 2, command


def test_closed_output_pipe_ends_command_silently() -> None:
    command = [sys.executable, "-m", "fletching_generator.cli", "layout", "--json"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (2, b"")
