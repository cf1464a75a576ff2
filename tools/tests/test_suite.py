"""Tests how suite.py runs and reports the steps of a suite."""

from __future__ import annotations

import os
import re
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
    assert re.sub(r"\d+\.\d min", "N min", shown).splitlines()[-3:] == [
        "quiver         N min  2 steps  FAILED: quiver: one",
        "bow            N min  1 steps  passed",
        "1 passed, 1 failed",
    ]


def test_steps_after_failed_needed_step_do_not_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ran"
    assert run(tmp_path, Step("needed", "false", needed=True), Step("other", f"touch {file}")) == 1
    assert not file.exists()
    assert "FAILED: quiver: needed, quiver: other" in capfd.readouterr().out


def test_neighbors_of_one_core_run_at_the_same_time(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writes = Step("writes", f"timeout 60 bash -c 'echo text >{pipe}'", cores=1)
    assert run(tmp_path, writes, Step("reads", f"timeout 60 bash -c 'cat <{pipe}'", cores=1)) == 0


def test_step_waits_for_the_group_before_it(tmp_path: Path) -> None:
    """A step of one core that ends early does not let a later one start before its build."""
    pair = [Step("one", "true", cores=1), Step("two", "true", cores=1)]
    made = {"quiver": pair, "bow": [Step("build", "true"), Step("reads", "true", cores=1)]}
    assert suite.run(tmp_path, made) == 0
    text = (tmp_path / "CTestTestfile.cmake").read_text("utf-8")
    waits = re.findall(r"PROPERTIES (?:DEPENDS \[==\[(.*?)\]==\])?", text)
    assert waits == ["", "", "quiver: one;quiver: two", "bow: build"]


def test_step_that_failed_before_still_waits(tmp_path: Path) -> None:
    file = tmp_path / "file"
    build, reads = Step("build", f"touch {file}"), Step("reads", f"test -e {file}")
    assert run(tmp_path, Step("build", "true"), reads) == 1
    assert run(tmp_path, build, reads) == 0


def test_other_steps_run_in_order(tmp_path: Path) -> None:
    file = tmp_path / "file"
    first = Step("one", f"! test -e {file}")
    assert run(tmp_path, first, Step("two", f"touch {file}"), Step("three", f"test -e {file}")) == 0


def test_environment_reaches_the_command(tmp_path: Path) -> None:
    made = {"ARROW": 'a "b" \\c;[d', "BOW": "$d"}
    command = """[ "$ARROW" = 'a "b" \\c;[d' ] && [ "$BOW" = '$d' ]"""
    assert run(tmp_path, Step("reads", command, environment=made)) == 0


def test_skipped_tests_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, Step("pytest", "echo 'SKIPPED [1] test_a.py:3: no driver'")) == 0
    assert "quiver: pytest: SKIPPED [1] test_a.py:3: no driver" in capfd.readouterr().out


def test_skipped_tests_of_inner_ctest_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    log = tmp_path / "build" / "Testing" / "Temporary" / "LastTest.log"
    log.parent.mkdir(parents=True)
    step = Step("ctest", f"printf '1/1 Testing: gpu\\nskipped: no driver\\n' >{log}", ctest="build")
    assert run(tmp_path / "out", step, Step("truncates", f": >{log}")) == 0
    assert "gpu: in part or whole: no driver" in capfd.readouterr().out


def test_run_without_steps_cannot_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert suite.run(tmp_path, {"quiver": [Step("one", "true")]}, ["-R", "absent"]) == 2
    assert "0 passed, 0 failed" in capfd.readouterr().out


def test_end_of_ctest_is_reported_with_the_free_space(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, Step("ends its CTest", "kill -9 $PPID")) == 2
    shown = capfd.readouterr().out
    assert re.search(r"CTest ended without results, with code -9: \S+ has \d+ MB free", shown)
