"""Tests the keys of language.toml, missing parts of a language, and mentions outside its home."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from footprints import ALLOWED, footprints
from lacking import parts, problems
from languages import ROOT, LanguageError, load, read

KNOWN = load()
GOOD = """
title = "Quiver"
commands = ["quiverc"]
manifests = ["quiver.lock"]
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
    assert any("no quiver: probe: add it, or the reason to [lacks]" in line for line in lines)
    assert any('"quiver: cases": it is there: remove the reason' in line for line in lines)


def test_language_folders_have_same_files() -> None:
    for language in KNOWN.values():
        folder = ROOT / language.folder
        assert (folder / "README.md").is_file(), language.folder
        assert [*folder.glob("probe/*"), *folder.glob("*/probe/*")], language.folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "speed = 1", "speed: unknown key: expected one of title, commands,"),
        (GOOD.replace("title", "titel"), "titel: unknown key: expected one of title"),
        (GOOD.replace('title = "Quiver"', ""), "title: missing key: expected title, commands,"),
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


# --- Outside of the homes


def test_language_names_stay_in_language_folders() -> None:
    assert list(footprints(ROOT, KNOWN)) == []
    assert len(ALLOWED) <= 5
    assert all((ROOT / name).is_file() for name in ALLOWED)


PLANTED = {
    "a manifest": ("tests/Cargo.toml", "", "a manifest of Rust: expected it in bindings/rust/"),
    "a path": ("tools/a.sh", "cd bindings/go", "bindings/go"),
    "a path in parts": ("tools/a.py", 'R / "bindings" / "go"', '"bindings" / "go"'),
    "a command": ("tools/a.sh", "x=1 && cargo test", "cargo"),
    "a command of two words": ("tests/a.py", 'run("go test ./...")', "go test"),
    "a dispatch": ("tests/a.py", 'if language == "python":', '"python"'),
    "a key": ("tests/a.py", "    'java-ffm': Java(),", "'java-ffm'"),
    "a title": ("tests/a.py", 'HOSTS = ("C++", x)', '"C++"'),
    "C++": ("tests/a.py", 'LANGUAGES = ("cpp",)', '"cpp"'),
}


@pytest.mark.parametrize(("name", "line", "found"), PLANTED.values(), ids=PLANTED)
def test_footprints_finds_planted_line(tmp_path: Path, name: str, line: str, found: str) -> None:
    assert plant(tmp_path, name, line)
    assert all(each.startswith(name) and found in each for each in plant(tmp_path, name, line))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tests/a.md", "`cargo test` in bindings/rust"),
        ("docs/a.html", "cargo test"),
        ("bindings/rust/a.sh", "cargo test"),
        ("tools/a.sh", "# then they go test it"),
        ("tools/a.py", 'X / "cpp" / "include"'),
        ("tools/a.sh", ".venv/bin/python tools/suite.py"),
    ],
)
def test_footprints_ignores_other_lines(tmp_path: Path, name: str, line: str) -> None:
    assert plant(tmp_path, name, line) == []


def plant(root: Path, name: str, line: str) -> list[str]:
    subprocess.run(["git", "init", "-q", root], check=True)
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{line}\n", encoding="utf-8")
    return list(footprints(root, KNOWN))
