"""Tests platforms.py without running a cell of the repository."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import platforms
import targets
from platforms import Cell, Result, TableError

HEAD = 'parts = ["C"]\n[[cell]]\nplatform = "Moon"\nabout = "It runs."\n'


def test_load_repository_table_succeeds() -> None:
    parts, cells = platforms.load((platforms.FILES / "platforms.toml").read_text(encoding="utf-8"))
    assert len({(cell.platform, cell.part) for cell in cells}) == len(cells)
    assert {cell.part for cell in cells} <= set(parts)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('part = "Ada"\ncommand = "true"', "unknown part"),
        ('part = "C"\ncommand = "true"\nsuccess = "ok"', "got ok"),
        ('part = "C"', "expected one of command, absent and target"),
        ('part = "C"\ncommand = "true"\nabsent = "no"', "expected one of command"),
    ],
)
def test_load_wrong_cell_raises(entry: str, problem: str) -> None:
    with pytest.raises(TableError, match=problem):
        platforms.load(HEAD + entry)


@pytest.mark.parametrize(
    ("cell", "status", "reason"),
    [
        (Cell("Moon", "C", "", command="true"), "ran", ""),
        (Cell("Moon", "C", "", "compiled", "true"), "compiled", ""),
        (Cell("Moon", "C", "", command="false; true"), "FAILED", "see "),
        (Cell("Moon", "C", "", command="false | true"), "FAILED", "see "),
        (Cell("Moon", "C", "", command="false", needs=("/nothing",)), "absent", "/nothing"),
        (Cell("Moon", "C", "", absent="no Moon"), "absent", "no Moon"),
    ],
)
def test_outcome_of_command(
    cell: Cell, status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platforms, "LOGS", platforms.ROOT / "build" / "logs")
    platforms.LOGS.mkdir(parents=True, exist_ok=True)
    assert platforms.outcome(cell)[0] == status
    assert platforms.outcome(cell)[1].startswith(reason)


@pytest.mark.parametrize(
    ("status", "column", "expected"),
    [
        ("ok", "C", "ran"),
        ("FAILED", "C", "FAILED"),
        ("absent", "C", "FAILED"),
        ("ok", "D", "absent"),
    ],
)
def test_cited_target(tmp_path: Path, status: str, column: str, expected: str) -> None:
    file = tmp_path / "targets.json"
    cell = Cell("Moon", "C", "", target="moon", columns=("C",))
    assert platforms.cited(cell, file)[0] == "absent"
    entry = {"target": "moon", "column": column, "status": status}
    file.write_text(json.dumps({"cells": [entry]}), encoding="utf-8")
    assert platforms.cited(cell, file)[0] == expected


def test_rows_have_dash_without_cell() -> None:
    results = [Result("Moon", "Go", "absent", "no Moon", "")]
    assert platforms.rows(["C", "Go"], results)[1:] == [["Moon", "-", "absent"]]


def test_merge_keeps_earlier_results_of_known_cells(tmp_path: Path) -> None:
    file = tmp_path / "platforms.json"
    cells = [Cell("Moon", "C", ""), Cell("Moon", "Go", "")]
    new = Result("Moon", "Go", "ran", "", "")
    assert platforms.merge(cells, [new], file) == [new]
    old = [Result("Moon", part, "FAILED", "see a log", "") for part in ("C", "Go", "Ada")]
    file.write_text(json.dumps({"cells": [asdict(result) for result in old]}), encoding="utf-8")
    assert platforms.merge(cells, [new], file) == [old[0], new]


def test_replace_keeps_text_around_markers() -> None:
    text = f"a\n{platforms.BEGIN}\nold\n{platforms.END}\nb\n"
    table = targets.aligned([["platform"], ["Moon"]])
    new = platforms.replace(text, table)
    assert new.startswith("a\n") and new.endswith("\nb\n") and "old" not in new and "Moon" in new
    assert platforms.replace(new, table) == new
    with pytest.raises(TableError, match="expected one"):
        platforms.replace("no markers", table)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('command = "true"\nneeds = ["/nothing"]', 1),
        ('target = "moon"\ncolumns = ["C"]', 1),
        ('absent = "no Moon"', 0),
        ('command = "true"', 0),
    ],
)
def test_complete_fails_if_tools_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str, expected: int
) -> None:
    table = f'{HEAD}part = "C"\n{cell}\n[versions]\n'
    (tmp_path / "platforms.toml").write_text(table, encoding="utf-8")
    monkeypatch.setattr(platforms, "FILES", tmp_path)
    monkeypatch.setattr(platforms, "RESULTS", tmp_path / "platforms.json")
    monkeypatch.setattr(targets, "RESULTS", tmp_path / "targets.json")
    monkeypatch.setattr("sys.argv", ["platforms.py"])
    assert platforms.main() == 0
    monkeypatch.setattr("sys.argv", ["platforms.py", "--complete"])
    assert platforms.main() == expected
