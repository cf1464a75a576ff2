"""Tests of the runner, with programs that fail, hang or print no line."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cells import Cell, device_key
from googletest import NOT_BUILT, googletest_findings, read_output, read_report
from languages import load
from report import limit_rows, medians, page, table
from running import (
    PROGRAM_SECONDS,
    TOTAL_SECONDS,
    Build,
    CannotRunError,
    Cost,
    Findings,
    Row,
    limit,
    read_findings,
    run_program,
)
from subjects import cells_row, language_findings


def run(script: str) -> Findings:
    return run_program(["bash", "-c", script], os.environ)


OK = r"printf 'check\tone\tok\t3\t\n'"
FAILED = r"printf 'check\tone\tFAILED\t3\tthe reason\n'"


def test_reads_rows() -> None:
    assert run(OK).rows == [Row("one", "ok", 3, "")]


def test_reads_facts() -> None:
    assert read_findings("fact\tdevice\tX\n").facts == {"device": "X"}


def test_failed_check_is_row() -> None:
    assert run(f"{FAILED}; exit 1").rows == [Row("one", "FAILED", 3, "the reason")]


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 7", "exit 1"])
def test_program_with_bad_exit_has_failed(end: str) -> None:
    assert [row.verdict for row in run(f"{OK}; {end}").rows] == ["ok", "FAILED"]


def test_program_without_output_has_failed() -> None:
    assert [row.verdict for row in run("true").rows] == ["FAILED"]


def test_unreadable_line_has_failed() -> None:
    assert [row.verdict for row in run(f"{OK}; echo Hello").rows] == ["ok", "FAILED"]


def test_missing_device_raises_cannot_run() -> None:
    with pytest.raises(CannotRunError, match="no driver"):
        run("echo no driver >&2; exit 2")


def test_hanging_check_is_reported() -> None:
    found = run(rf"{OK}; printf 'check\ttwo\tFAILED\t0\thangs\n'; exit 3")
    assert [row.verdict for row in found.rows] == ["ok", "FAILED"]
    assert found.hung == "two"


@pytest.fixture
def hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The commands of a program that hang. Its time is over as soon as they run."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    class Limit(threading.Thread):
        def __init__(self, _: float, end: Callable[[], None]) -> None:
            super().__init__()
            self.end = end

        def run(self) -> None:
            pipe.read_text(encoding="utf-8")
            self.end()

        def cancel(self) -> None:
            self.join()

    monkeypatch.setattr(threading, "Timer", Limit)
    return f"echo >{pipe}; sleep 600"


def test_hanging_program_keeps_rows(hang: str) -> None:
    found = run(f"{OK}; echo 'two ...' >&2; {hang}")
    assert [row.verdict for row in found.rows] == ["ok", "FAILED"]
    assert found.rows[1].reason.endswith("at: two ...")
    assert found.hung == "bash"


def test_program_without_time_left_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOTAL_SECONDS, "0.000001")
    assert limit() == 0
    assert TOTAL_SECONDS in run(OK).rows[0].reason


def test_rows_are_printed_immediately(capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{FAILED}; exit 1")
    assert capsys.readouterr().out == "FAILED one: the reason\n"


@pytest.mark.parametrize("text", ["soon", "-1"])
def test_limit_rejects_invalid_numbers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(PROGRAM_SECONDS, text)
    with pytest.raises(CannotRunError, match=PROGRAM_SECONDS):
        limit()


def test_table_states_device() -> None:
    rows = [Row("a", "ok", 1, ""), Row("b", "absent", 0, "no | here")]
    lines = table(Findings({"status": "stand-in"}, rows))
    assert "| b | absent | 0 | no \\| here |" in lines
    assert "On the stand-in, no device: 1 passed, 1 absent, 0 failed" in lines


def test_costs_are_relative_to_fletching() -> None:
    found = run(r"printf 'bench\tone\tours\t300\nbench\tone\traw\t200\n'")
    assert "| one | raw | 200.0 | 5,000,000 | 1.50 |" in page(found)
    assert found.rows == []


# --- Limits


def with_times(ours: float, theirs: float, status: str) -> Findings:
    costs = [Cost("one", "ours", ours), Cost("one", "the same driver calls, hand-written", theirs)]
    return Findings({"status": status}, costs=costs)


@pytest.mark.parametrize(("ours", "verdict"), [(149.0, "ok"), (151.0, "FAILED")])
def test_cost_above_limit_has_failed(ours: float, verdict: str) -> None:
    assert [row.verdict for row in limit_rows(with_times(ours, 100.0, "real"))] == [verdict]


def test_times_on_stand_in_are_not_compared() -> None:
    assert [row.verdict for row in limit_rows(with_times(900, 100, "stand-in"))] == ["absent"]


def test_median_of_runs_is_used() -> None:
    runs = [[Cost("one", "ours", number)] for number in (9.0, 1.0, 2.0)]
    assert medians(runs) == [Cost("one", "ours", 2.0)]


# --- GoogleTest

REPORT = """<testsuites><testsuite name="S">
  <testcase name="Good"/>
  <testcase name="Bad"><failure message="a.cpp:7&#x0A;1 is not 2">text</failure></testcase>
  {skipped}
</testsuite></testsuites>"""
SKIPPED = '<testcase name="{}"><skipped message="a.cpp:9&#x0A;needs the stand-in"/></testcase>'


def test_googletests_are_rows() -> None:
    rows = read_report(REPORT.format(skipped=SKIPPED.format("One") + SKIPPED.format("Two")))
    assert list(rows) == [
        Row("S.Bad", "FAILED", 0, "1 is not 2"),
        Row("GoogleTest S", "ok", 1, "tests"),
        Row("GoogleTest S: One, Two", "absent", 0, "needs the stand-in"),
    ]


HUNG = """[ RUN      ] S.One
[       OK ] S.One (0 ms)
[ RUN      ] S.Two
"""


def test_hanging_googletest_keeps_passed_tests(tmp_path: Path, hang: str) -> None:
    assert list(read_output(HUNG)) == [Row("GoogleTest S", "ok", 1, "tests, before it hung")]
    found = googletest_findings(script(tmp_path, f"printf '{HUNG}'; {hang}"), os.environ)
    assert found.rows[-1].reason.endswith("[ RUN      ] S.Two")
    assert found.hung == "program"


def test_many_skipped_googletests_are_counted() -> None:
    rows = read_report(REPORT.format(skipped="".join(SKIPPED.format(i) for i in range(4))))
    assert "GoogleTest S: 4 tests" in [row.name for row in rows]


def test_unbuilt_googletests_are_absent(tmp_path: Path) -> None:
    rows = googletest_findings(tmp_path / "none", os.environ).rows
    assert [(row.verdict, row.reason) for row in rows] == [("absent", NOT_BUILT)]


@pytest.mark.parametrize("reason", ["needs the stand-in", "needs two devices"])
@pytest.mark.parametrize("passes", [True, False])
def test_googletests_run_again_if_skip_reason_allows(
    tmp_path: Path, reason: str, passes: bool
) -> None:
    text = REPORT.format(skipped=SKIPPED.format("One").replace("needs the stand-in", reason))
    if not passes:
        text = text.replace('<testcase name="Good"/>', "")
    body = f"[ $FLETCHING_TEST_CURRENT = none ] && printf %s {shlex.quote(text)} >${{1#*xml:}}"
    program = script(tmp_path, f"{body}; exit 1")
    rows = googletest_findings(program, os.environ, "none").rows
    expected = ["S.Bad, no context"]
    expected += ["GoogleTest S, no context"] if passes else []
    if not passes and reason == "needs two devices":
        expected.append("GoogleTest S: One, no context")
    assert [row.name for row in rows] == expected


@pytest.mark.parametrize(("report", "end"), [("", 0), (REPORT, 11), (REPORT, 0)])
def test_googletest_with_bad_exit_has_failed(tmp_path: Path, report: str, end: int) -> None:
    text = report.format(skipped="").replace("<failure", "<ignored" if end else "<failure")
    text = text.replace("</failure", "</ignored" if end else "</failure")
    program = script(tmp_path, f"printf %s {shlex.quote(text)} >${{1#*xml:}}; exit {end}")
    verdicts = [row.verdict for row in googletest_findings(program, os.environ).rows]
    assert "FAILED" in verdicts


def script(folder: Path, body: str) -> Path:
    program = folder / "program"
    program.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


# --- Languages


def test_missing_language_programs_are_absent(tmp_path: Path) -> None:
    build = Build("gpu", tmp_path, tmp_path, os.environ)
    for programs in (None, tmp_path):
        rows = {row.name: row for row in language_findings(build, programs, "real").rows}
        assert {row.verdict for row in rows.values()} == {"absent"}
        assert all(row.reason for row in rows.values())
        known = load()
        copied = {name: each.gpu for name, each in known.items() if each.gpu}
        at_home = {c.name for each in known.values() if "gpu" in each.lacks for c in each.columns}
        assert copied and rows.keys() >= {*copied, *at_home}
    for name, gpu in copied.items():
        assert " and ".join(f"no {file}" for file in gpu.files) in rows[name].reason


CELL = device_key("quiver", "cuda", "int32", "chain")


@pytest.mark.parametrize(
    ("cell", "verdict"),
    [
        (Cell(CELL, "real", "", 3, 1, ok=True), "ok"),
        (Cell(CELL, "stand-in", "", 3, 1, ok=True), "FAILED"),
        (Cell(CELL, "real", "no", 3, 1, ok=False), "FAILED"),
        (Cell(CELL, "real", "", 0, 1, ok=True), "FAILED"),
    ],
)
def test_cells_are_rows(cell: Cell, verdict: str) -> None:
    assert cells_row("one", [cell], "", "real", least=1).verdict == verdict
    assert cells_row("one", [cell], "", "real", least=2).verdict == "FAILED"
    assert cells_row("one", [cell], "ended with 1", "real", least=1).verdict == "FAILED"
