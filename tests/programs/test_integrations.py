"""Tests the pre-commit hook and the GitHub action at the root of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
ABI = Path(pyarrow.get_include()) / "arrow" / "c" / "abi.h"
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


def run_action(inputs: dict[str, str], folder: Path) -> tuple[int, str]:
    """Runs the steps whose input is given, with a pipx that runs the repository's `fletching`.

    Returns the last exit code and the output.
    """
    inputs = {"targets": "x86_64-linux-gnu", "version": "1.2.3", **inputs}
    pipx = folder / "tools" / "pipx"
    pipx.parent.mkdir()
    tool = Path(sys.executable).parent
    check = '[ "$1 $2 $3" = "run --spec fletching-tools==1.2.3" ] || exit 9'
    pipx.write_text(f'#!/bin/sh\n{check}\nshift 3\nPATH="{tool}:$PATH" exec "$@"\n', "utf-8")
    pipx.chmod(0o755)
    code, output = 0, ""
    for step in read("action.yml")["runs"]["steps"]:
        (condition,) = re.findall(r"^inputs\.(\w+) != ''$", step["if"])
        if condition not in inputs or code != 0:
            continue
        environment = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], value)
            for name, value in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, **environment, "PATH": f"{pipx.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        code, output = done.returncode, output + done.stdout + done.stderr
    return code, re.sub(r"\033\[\d+m", "", output)


@pytest.mark.parametrize(
    ("headers", "code", "said"),
    [
        ("good/abi.h", 0, "agrees"),
        ("*/abi.h good/abi.h", 1, "2 headers: 1 agree, 1 differ"),
        ("$(touch injected)", 2, "cannot read $(touch"),
    ],
)
def test_action_checks_headers(headers: str, code: int, said: str, project: Path) -> None:
    got, output = run_action({"headers": headers}, project)
    assert got == code, output
    assert said in output
    assert not (project / "injected").exists()


FAILED = 123  # of xargs
RIGHT = "0 errors, 0 warnings, 0 notes"


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        ("lib.so:count_array --as array-producer", 0, [RIGHT]),
        (
            "broken.so:count_stream --as stream-producer --case read\n"
            "lib.so:count_stream --as 'stream-producer'\n",
            FAILED,
            ["array.buffers-null-only-when", "release.marks-released", "stream.errno-codes", RIGHT],
        ),
        (
            "crashing.so:count_stream --as stream-producer",
            FAILED,
            ["check.crash (producer)", "last call: get_next[2]"],
        ),
        ("lib.so:$(touch injected) --as array-producer", FAILED, ["arguments: injected)"]),
    ],
)
def test_action_validates_libraries(lines: str, code: int, said: list[str], tmp_path: Path) -> None:
    folders = (REPOSITORY / "cpp" / "include", REPOSITORY / "tests" / "conformance" / "include")
    compiler = ["cc", "-std=c99", "-shared", "-fPIC", *(f"-I{folder}" for folder in folders)]
    source = REPOSITORY / "tests" / "validate" / "library.c"
    for name, flag in (("lib", "CORRECT"), ("broken", "BROKEN"), ("crashing", "CRASHES")):
        if f"{name}.so" in lines:
            library = tmp_path / f"{name}.so"
            subprocess.run([*compiler, f"-D{flag}", "-o", library, source], check=True)
    got, output = run_action({"validate": lines}, tmp_path)
    assert got == code, output
    for text in said:
        assert text in output
    assert not (tmp_path / "injected").exists()
