"""Tests how suite.py runs and reports the steps of a suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import suite
from suites import Step


def run(folder: Path, *steps: Step) -> int:
    return suite.run(folder, {"quiver": steps})


def test_verdict_names_failed_steps(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    more = {"bow": [Step("string", "true")]}
    made = {"quiver": [Step("one", "echo its words; exit 1"), Step("two", "echo fine")], **more}
    assert suite.run(tmp_path, made) == 1
    shown = capfd.readouterr().out
    assert "its words" in shown
    assert "fine" not in shown
    assert shown.splitlines()[-3:] == [
        "quiver         0.0 min  2 steps  FAILED: quiver: one",
        "bow            0.0 min  1 steps  passed",
        "1 passed, 1 failed",
    ]


def test_steps_after_failed_needed_step_do_not_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ran"
    assert run(tmp_path, Step("needed", "false", needed=True), Step("other", f"touch {file}")) == 1
    assert not file.exists()
    assert "FAILED: quiver: needed, quiver: other" in capfd.readouterr().out


def test_steps_of_one_core_run_at_the_same_time(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writes = Step("writes", f"timeout 60 bash -c 'echo text >{pipe}'", cores=1)
    assert run(tmp_path, writes, Step("reads", f"timeout 60 bash -c 'cat <{pipe}'", cores=1)) == 0


def test_other_steps_run_in_order(tmp_path: Path) -> None:
    file = tmp_path / "file"
    first = Step("one", f"! test -e {file}")
    assert run(tmp_path, first, Step("two", f"touch {file}"), Step("three", f"test -e {file}")) == 0


def test_environment_reaches_the_command(tmp_path: Path) -> None:
    made = {"ARROW": 'a "b" \\c', "BOW": "$d"}
    command = """[ "$ARROW" = 'a "b" \\c' ] && [ "$BOW" = '$d' ]"""
    assert run(tmp_path, Step("reads", command, environment=made)) == 0


def test_skipped_tests_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, Step("pytest", "echo 'SKIPPED [1] test_a.py:3: no driver'")) == 0
    assert "quiver: pytest: SKIPPED [1] test_a.py:3: no driver" in capfd.readouterr().out


def test_interrupted_run_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert suite.run(tmp_path, {"quiver": [Step("one", "true")]}, ["-R", "absent"]) == 1
    assert "0 passed, 0 failed" in capfd.readouterr().out
