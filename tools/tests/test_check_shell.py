"""Tests the problems that check_shell.py finds, and that it checks every kind of command."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_shell
from check_shell import check_mode, check_table, commands


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(check_shell, "ROOT", tmp_path)
    return tmp_path


def test_executable_without_interpreter_is_reported(root: Path) -> None:
    for text, mode, expected in (
        (
            "# !/usr/bin/env bash Builds\n",
            "100755",
            ["tool: executable, and does not begin with #!"],
        ),
        ("#!/usr/bin/env bash\n", "100755", []),
        ("#!/usr/bin/env bash\n", "100644", ["tool: begins with #!, and is not executable"]),
        ("#![no_std]\n", "100644", []),
    ):
        (root / "tool").write_text(text, encoding="utf-8")
        assert list(check_mode(root / "tool", mode)) == expected


def test_faulty_command_is_reported_by_key(root: Path) -> None:
    table = root / "language.toml"
    table.write_text(
        'title = "ls $(x)"\n[[suite]]\ncommand = "echo \'a\'"\n'
        '[[suite]]\ncommand = """\ncd x && y=\n x=( $(ls) )"""\n',
        encoding="utf-8",
    )
    found = check_table(table)
    assert found and all(line.startswith("language.toml: suite[1].command:") for line in found)
    assert any("SC2207" in line for line in found)


def test_every_kind_of_command_is_found() -> None:
    table = {"format": "a", "title": "t", "mutants": [{"runs": {"a-column": "b"}, "tests": "c"}]}
    assert dict(commands(table)) == {
        "format": "a",
        "mutants[0].runs.a-column": "b",
        "mutants[0].tests": "c",
    }
