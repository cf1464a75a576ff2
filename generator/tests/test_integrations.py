"""Tests the pre-commit hook and the GitHub action at the root of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ABI, REPOSITORY

HEADERS = ABI.parent
SWAP = ("int64_t device_id;", "int32_t device_id;")


def read(name: str) -> Any:
    return yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Returns a folder with a valid copy of abi.h, and one with a changed field."""
    for name, change in (("good", ("", "")), ("bad", SWAP)):
        (tmp_path / name).mkdir()
        text = ABI.read_text(encoding="utf-8").replace(*change)
        (tmp_path / name / "abi.h").write_text(text, encoding="utf-8")
    return tmp_path


def test_hook_checks_headers_by_name(project: Path) -> None:
    (hook,) = read(".pre-commit-hooks.yaml")
    paths = ["good/abi.h", "abi.h", "vendor/dlpack/dlpack.h", "myabi.h", "abi.hpp", "dlpack.h.in"]
    assert [p for p in paths if re.search(hook["files"], p)] == paths[:3]
    words = [str(Path(sys.executable).parent / "fletching"), *hook["entry"].split()[1:]]
    more = ["--flag=-DOTHER", "--flag=-I.", "--targets", "x86_64-linux-gnu"]
    for header, code in (("good/abi.h", 0), ("bad/abi.h", 1)):
        done = subprocess.run(
            [*words, *more, header], cwd=project, check=False, capture_output=True
        )
        assert done.returncode == code, done


@pytest.mark.parametrize(
    ("headers", "code", "said"),
    [
        ("good/abi.h", 0, "agrees"),
        ("*/abi.h good/abi.h", 1, "2 headers: 1 agree, 1 differ"),
        ("$(touch injected)", 2, "cannot read $(touch"),
    ],
)
def test_action_runs_its_command(headers: str, code: int, said: str, project: Path) -> None:
    """Runs the command of the only step, with a pipx that runs the repository's `fletching`."""
    (step,) = read("action.yml")["runs"]["steps"]
    inputs = {"headers": headers, "targets": "x86_64-linux-gnu", "version": "1.2.3"}
    environment = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in step["env"].items()
    }
    pipx = project / "tools" / "pipx"
    pipx.parent.mkdir()
    tool = Path(sys.executable).parent
    check = '[ "$1 $2 $3" = "run --spec fletching-tools==1.2.3" ] || exit 9'
    pipx.write_text(f'#!/bin/sh\n{check}\nshift 3\nPATH="{tool}:$PATH" exec "$@"\n', "utf-8")
    pipx.chmod(0o755)
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=project,
        env={**os.environ, **environment, "PATH": f"{pipx.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done
    assert said in re.sub(r"\033\[\d+m", "", done.stdout + done.stderr)
    assert not (project / "injected").exists()
