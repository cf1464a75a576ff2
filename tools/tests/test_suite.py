"""Tests how suite.py runs and reports the steps of a suite."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

import pytest

import suite
from suites import Step

OPTIONS = argparse.Namespace(verbose=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    monkeypatch.setattr(suite, "LOGS", tmp_path)
    return tmp_path


def steps() -> list[Step]:
    """The first step ends when the second one reads. A step that runs alone times out and fails."""
    return [
        Step("writes", "timeout 60 bash -c 'echo text >pipe'"),
        Step("reads", "timeout 60 bash -c 'cat <pipe'", beside=True),
        Step("the last", "false"),
    ]


def test_concurrent_steps_are_reported_in_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(folder / "pipe")
    verdict = suite._run_suite("quiver", steps(), OPTIONS)
    assert list(verdict.failed) == ["the last"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines[:3]] == [
        "quiver     writes ... ok",
        "quiver     reads ... ok",
        "quiver     the last ... FAILED",
    ]
    assert "text" in (folder / "quiver-1.log").read_text()


def test_failed_needed_step_ends_suite(folder: Path) -> None:
    made = [Step("needed", "false", needed=True), Step("not run", "touch ran")]
    assert list(suite._run_suite("quiver", made, OPTIONS).failed) == ["needed"]
    assert not (folder / "ran").exists()


def test_every_concurrent_failure_is_reported(folder: Path) -> None:
    made = [Step("one", "false"), Step("two", "false", beside=True), Step("three", "true")]
    assert list(suite._run_suite("quiver", made, OPTIONS).failed) == ["one", "two"]


@pytest.mark.parametrize("verbose", [False, True])
def test_other_steps_run_sequentially(folder: Path, verbose: bool) -> None:
    made = [Step("one", "! test -e two"), Step("two", "touch two", beside=verbose)]
    made += [Step("three", "test -e two")]
    options = argparse.Namespace(verbose=verbose)
    assert suite._run_suite("quiver", made, options).failed == {}


def test_failed_step_output_precedes_verdicts(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Step("fails", "echo 'FAILED test_fletch'; exit 1"), Step("passes", "echo fine")]
    verdict = suite._run_suite("quiver", made, OPTIONS)
    capsys.readouterr()
    assert suite._report([verdict], "test") == 1
    shown = capsys.readouterr().out
    assert shown.index("FAILED quiver: fails") < shown.index("FAILED test_fletch")
    assert shown.index("FAILED test_fletch") < shown.index("quiver       0.0 min")
    assert "fine" not in shown
    assert shown.endswith("0 passed, 1 failed\n")


def test_full_disk_ends_run_with_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(step: Step, log: Path, verbose: bool) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device", str(log))

    monkeypatch.setattr(suite, "_succeeds", fails)
    monkeypatch.setattr("sys.argv", ["suite", "spec"])
    assert suite.main() == 2
    assert f"the disk of {folder} is full" in capsys.readouterr().err
