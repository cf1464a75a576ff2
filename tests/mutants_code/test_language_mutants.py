"""Tests of the verdicts on the results of a language's tool."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import language_mutants
import languages
from language_mutants import Mutant
from report import EQUIVALENT
from results import KILLED, NO_BUILD, SURVIVED, Key

ADD = Mutant("a.rs", 4, "replace + with -", 1, KILLED, "core: adds")
OTHER = Mutant("a.rs", 9, "replace + with -", 2, SURVIVED)
BROKEN = Mutant("b.rs", 1, "replace f with ()", 1, NO_BUILD)
UNTRIED = Mutant("b.rs", 2, "replace g with ()", 1)
ALL = [ADD, OTHER, BROKEN, UNTRIED]


def entry(mutant: Mutant, reason: str = "why") -> str:
    return (
        f"- {{file: {mutant.file}, change: {mutant.change}, nth: {mutant.nth}, reason: {reason}}}"
    )


def table(folder: Path, text: str) -> tuple[dict[Key, tuple[str, str]], list[str]]:
    path = folder / "mutants.yaml"
    path.write_text(text, encoding="utf-8")
    return language_mutants.read_table(path, ALL)


def wrong(reasons: dict[Key, tuple[str, str]], mutants: list[Mutant]) -> list[str]:
    judged = [language_mutants.judged(mutant, reasons) for mutant in mutants]
    return language_mutants.problems([m for m in judged if m.result], reasons)


def test_reads_results(tmp_path: Path) -> None:
    entries = [vars(mutant) for mutant in ALL]
    (tmp_path / "results.json").write_text(json.dumps({"tool": "t 1", "mutants": entries}))
    run = language_mutants.read(tmp_path / "results.json")
    assert (run.tool, run.mutants, run.tried) == ("t 1", ALL, [ADD, OTHER, BROKEN])


def test_survivor_requires_reason(tmp_path: Path) -> None:
    many = [replace(ADD, nth=number) for number in range(3, 30)]
    reasons, bad = table(tmp_path, "")
    assert bad == []
    assert wrong(reasons, [*many, OTHER]) == [
        "a.rs:9: replace + with -: survived: expected killed, or a reason in the table"
    ]
    for name, result in language_mutants.TABLES.items():
        reasons, bad = table(tmp_path, f"{name}:\n{entry(OTHER)}")
        assert bad == [] and wrong(reasons, [*many, OTHER]) == []
        assert language_mutants.judged(OTHER, reasons) == replace(OTHER, result=result, text="why")


def test_too_many_survivors_fail_despite_reasons(tmp_path: Path) -> None:
    reasons, _ = table(tmp_path, f"survivors:\n{entry(OTHER)}")
    nineteen = [replace(ADD, nth=number) for number in range(3, 22)]
    assert wrong(reasons, [*nineteen, OTHER, BROKEN]) == []
    assert wrong(reasons, [*nineteen[1:], OTHER, BROKEN]) == [
        "killed: too few: expected at least 95%, got 18 of 19"
    ]
    # Equivalent mutants do not count.
    reasons, _ = table(tmp_path, f"equivalents:\n{entry(OTHER)}")
    assert wrong(reasons, [ADD, OTHER, BROKEN]) == []
    assert wrong(reasons, [OTHER, BROKEN]) == ["no mutant was tried"]


def test_killed_equivalent_is_error(tmp_path: Path) -> None:
    reasons, _ = table(tmp_path, f"equivalents:\n{entry(ADD)}")
    assert wrong(reasons, [ADD]) == [
        "a.rs:4: replace + with -: killed by core: adds: expected equivalent"
    ]
    reasons, _ = table(tmp_path, f"survivors:\n{entry(ADD)}")
    assert wrong(reasons, [ADD]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (entry(replace(ADD, nth=3)), "entry 1: no such mutant: a.rs | replace + with - | 3"),
        (entry(ADD) + "\n" + entry(ADD), "entry 2: duplicate: a.rs | replace + with - | 1"),
        ("- {file: a.rs, change: c}", "entry 1: keys: expected file, change, reason"),
        (entry(ADD, "''"), "entry 1: reason: expected a text, got none"),
    ],
)
def test_wrong_entry_is_error(tmp_path: Path, text: str, said: str) -> None:
    _, bad = table(tmp_path, f"equivalents:\n{text}")
    assert len(bad) == 1 and said in bad[0]


def test_page_counts_and_lists_mutants(tmp_path: Path) -> None:
    home = next(home for home in languages.load().values() if home.mutation is not None)
    listed = [ADD, replace(OTHER, result=EQUIVALENT, text="why | not"), BROKEN, UNTRIED]
    page = language_mutants.as_page(home, language_mutants.Run("t 1", listed))
    assert "3 of 4." in page and "1 of 1 that are not equivalent and compile are killed" in page
    assert "| a.rs | 1 | 0 | 1 | 0 |" in page and "| all | 1 | 0 | 1 | 1 |" in page
    assert "| `a.rs:9: replace + with -` | why \\| not |" in page
    assert "| `core` | 1 |" in page


def test_page_contains_note_of_table(tmp_path: Path) -> None:
    home = next(home for home in languages.load().values() if home.mutation is not None)
    path = tmp_path / "mutants.yaml"
    for text, note in (("note: >-\n  of a\n  sample\n", "of a sample"), ("equivalents:\n", "")):
        path.write_text(text, encoding="utf-8")
        assert language_mutants.read_note(path) == note
        page = language_mutants.as_page(home, language_mutants.Run("t 1", [ADD]), note)
        assert ("\n\nof a sample\n\n" in page) == bool(note)


def test_version_command_runs_in_language_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may use a program path relative to the language's home."""
    home = next(home for home in languages.load().values() if home.mutation is not None)
    toolchain = replace(home.toolchain, version="[ -e language.toml ] && echo 1.2 $ROOT")
    monkeypatch.chdir(tmp_path)
    page = language_mutants.as_page(
        replace(home, toolchain=toolchain), language_mutants.Run("t 1", [ADD])
    )
    assert f", t 1, 1.2 {languages.ROOT}. All 1 mutants." in page
