"""The runner itself: what it makes of programs that fail, hang up or say nothing."""

from __future__ import annotations

import os

import pytest

from gpu import CannotRunError, Findings, Row, page, read_findings, run_program, table


def run(script: str) -> Findings:
    return run_program(["bash", "-c", script], os.environ)


OK = r"printf 'check\tone\tok\t3\t\n'"
FAILED = r"printf 'check\tone\tFAILED\t3\tthe reason\n'"


def test_rows_are_read() -> None:
    assert run(OK).rows == [Row("one", "ok", 3, "")]


def test_facts_are_read() -> None:
    assert read_findings("fact\tdevice\tX\n").facts == {"device": "X"}


def test_a_failed_check_is_a_row() -> None:
    assert run(f"{FAILED}; exit 1").rows == [Row("one", "FAILED", 3, "the reason")]


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 7", "exit 1"])
def test_a_program_that_ends_badly_has_failed(end: str) -> None:
    assert [row.verdict for row in run(f"{OK}; {end}").rows] == ["ok", "FAILED"]


def test_a_program_that_says_nothing_has_failed() -> None:
    assert [row.verdict for row in run("true").rows] == ["FAILED"]


def test_a_line_that_cannot_be_read_has_failed() -> None:
    assert [row.verdict for row in run(f"{OK}; echo Hello").rows] == ["ok", "FAILED"]


def test_no_device_is_no_result() -> None:
    with pytest.raises(CannotRunError, match="no driver"):
        run("echo no driver >&2; exit 2")


def test_the_table_says_what_it_ran_on() -> None:
    rows = [Row("a", "ok", 1, ""), Row("b", "absent", 0, "no | here")]
    lines = table(Findings({"status": "stand-in"}, rows))
    assert "| b | absent | 0 | no \\| here |" in lines
    assert "On the stand-in, no device: 1 passed, 1 absent, 0 failed" in lines


def test_costs_are_ratios_to_ours() -> None:
    found = run(r"printf 'bench\tone\tours\t300\nbench\tone\traw\t200\n'")
    assert "| one | raw | 200.0 | 5,000,000 | 1.50 |" in page(found)
    assert found.rows == []
