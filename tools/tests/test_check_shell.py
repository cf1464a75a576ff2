"""Tests that check_shell.py checks every kind of command, and names a faulty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from check_shell import commands, shellcheck, written


def test_faulty_command_is_reported_by_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "language.toml"
    table.write_text(
        'title = "ls $(x)"\n[[suite]]\ncommand = "echo \'a\'"\n'
        '[[suite]]\ncommand = """\ncd x && y=\n x=( $(ls) )"""\n',
        encoding="utf-8",
    )
    assert shellcheck("--shell=bash", *written(table, tmp_path, tmp_path / "out"))
    (found,) = [line for line in capfd.readouterr().out.splitlines() if "SC2207" in line]
    assert "language.toml/suite[1].command:2:" in found


def test_every_kind_of_command_is_found() -> None:
    table = {"format": "a", "title": "t", "mutants": [{"runs": {"a-column": "b"}, "tests": "c"}]}
    assert dict(commands(table)) == {
        "format": "a",
        "mutants[0].runs.a-column": "b",
        "mutants[0].tests": "c",
    }
