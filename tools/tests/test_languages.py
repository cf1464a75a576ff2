"""Tests the keys of language.toml and the missing parts of a language."""

from __future__ import annotations

from pathlib import Path

import pytest

from languages import ROOT, LanguageError, load, read
from missing_parts import parts, problems

KNOWN = load()
GOOD = """
title = "Quiver"
commands = ["quiverc"]
toolchain = { check = "true", hint = "install Quiver", version = "echo Quiver 1" }
build = { command = "true" }
"""


def home(root: Path, text: str, name: str = "quiver") -> Path:
    path = root / "bindings" / name / "language.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", KNOWN)
def test_language_has_every_part_or_reason(name: str) -> None:
    assert list(problems(KNOWN[name])) == []


def test_missing_files_of_new_language_are_reported(tmp_path: Path) -> None:
    bare = read(home(tmp_path, GOOD), tmp_path)
    assert [line.split(": ")[1] for line in problems(bare)] == [
        f"no {part}" for part in parts(bare)
    ]
    column = '\n[[columns]]\nname = "quiver"\ncases = "true"\n[lacks]\n"quiver: cases" = "later"'
    lines = list(problems(read(home(tmp_path, GOOD + column), tmp_path)))
    for part in ("oracle", "corpus", "subject", "devices", "mutants", "probe"):
        assert any(f"no quiver: {part}: add it, or the reason to [lacks]" in s for s in lines)
    assert any('"quiver: cases": it is there: remove the reason' in line for line in lines)


def test_language_folders_have_same_files() -> None:
    for language in KNOWN.values():
        folder = ROOT / language.folder
        assert (folder / "README.md").is_file(), language.folder
        assert [*folder.glob("probe/*"), *folder.glob("*/probe/*")], language.folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "speed = 1", "speed: unknown key: expected one of title, toolchain,"),
        (GOOD.replace("title", "titel"), "titel: unknown key: expected one of title"),
        (GOOD.replace('title = "Quiver"', ""), "title: missing key: expected title, toolchain,"),
        (GOOD.replace('"Quiver"', "1"), "title: expected a string, got 1"),
        (GOOD.replace('["quiverc"]', '"quiverc"'), "commands: expected an array, got 'quiverc'"),
        (GOOD.replace('["quiverc"]', "[1]"), "commands[0]: expected a string, got 1"),
        (GOOD + "environment = 1", "environment: expected a table, got 1"),
        (GOOD + 'suite = [{ title = "a" }]', "suite[0].command: missing key"),
        (GOOD + 'gpu = { build = "a" }', "gpu.files: missing key: expected build, files"),
        (GOOD + "=", "not TOML"),
    ],
)
def test_read_rejects_wrong_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(LanguageError) as error:
        read(home(tmp_path, text), tmp_path)
    assert str(error.value).startswith("bindings/quiver/language.toml: ")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace('"true" }\n', '"true", after = ["bow"] }\n', 1), "bow"),
        (GOOD.replace('command = "true"', 'command = "true", after = ["bow"]'), "got 'bow'"),
        (GOOD.replace('command = "true"', 'command = "true", after = ["quiver"]'), "needs itself"),
        (GOOD + 'columns = [{ name = "a" }, { name = "a" }]', "'a' is a duplicate"),
        (
            GOOD + 'mutants = [{ prepare = "", build = "", runs = { b = "" } }]',
            "mutants.runs: expected one of , got 'b'",
        ),
    ],
)
def test_load_rejects_inconsistent_files(tmp_path: Path, text: str, said: str) -> None:
    home(tmp_path, text)
    with pytest.raises(LanguageError) as error:
        load(tmp_path)
    assert said in str(error.value)


def test_language_is_ordered_after_dependencies(tmp_path: Path) -> None:
    home(tmp_path, GOOD.replace('command = "true"', 'command = "true", after = ["zither"]'))
    home(tmp_path, GOOD, "zither")
    assert list(load(tmp_path)) == ["zither", "quiver"]
