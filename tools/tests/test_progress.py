"""Tests the lines printed during a run, and the build order of the languages."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest
from rich import progress as bars

import build_languages
import progress
from languages import Build, Language, Toolchain
from progress import showing, state


def test_task_prints_line_at_start(capsys: pytest.CaptureFixture[str]) -> None:
    with showing("build") as shown, shown.task("bow"):
        assert capsys.readouterr().out == "build: bow ...\n"
        shown.line("build: [bow] ok")
        assert capsys.readouterr().out == "build: [bow] ok\n"


def test_long_task_prints_lines_periodically(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.001)
    looked = threading.Semaphore(0)

    def measure() -> tuple[int, int]:
        looked.release()
        return 30, 90

    with showing("build") as shown, shown.task("bow", measure), shown.task("quiver"):
        for _ in range(3):
            looked.acquire()
    said = capsys.readouterr().out
    assert re.search(r"build: bow 30 of 90(; quiver \d+ s)?\n", said)


def test_bar_shows_remaining_time() -> None:
    clock = iter(range(0, 1000, 10))
    shown = bars.Progress(get_time=lambda: float(next(clock)), disable=True)
    bar = shown.add_task("bow", total=None)
    task = shown.tasks[0]
    assert state(task).startswith("bow ")
    shown.update(bar, completed=0, total=90)
    assert state(task) == "bow 0 of 90"
    for done in (30, 60):
        shown.update(bar, completed=done)
    assert state(task).startswith("bow 60 of 90, about ")
    assert state(task).endswith(" s left")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[1/90] Building a\n[30/90] Building b/c\n", (30, 90)),
        ("[INFO] Building fletching-jna 1.2.3   [2/6]\n", (2, 6)),
        ("    Building [=====>      ] 12/80: libc, cc\r", (12, 80)),
        ("compiling tests/1/2.cpp\n", None),
        ("", None),
    ],
)
def test_read_steps_of_build_tool(tmp_path: Path, text: str, found: tuple[int, int] | None) -> None:
    log = tmp_path / "log"
    log.write_text(text, "utf-8")
    assert build_languages.steps_done(log) == found


def language(name: str, command: str, **keys: tuple[str, ...] | str) -> Language:
    build = Build(command, **keys)  # type: ignore[arg-type]
    return Language(name, Toolchain("true", "", ""), build, name=name, folder=".")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build_languages, "ROOT", tmp_path)
    monkeypatch.setattr(build_languages, "LOGS", tmp_path)
    return tmp_path


def build(*known: Language, roundtrip: bool = False) -> dict[str, bool]:
    by_name = {each.name: each for each in known}
    with showing("build") as shown:
        return build_languages.build_all(shown, [*by_name], by_name, roundtrip)


def test_builds_run_concurrently(folder: Path) -> None:
    """Each build opens one end of a pipe and waits for the other end."""
    os.mkfifo(folder / "pipe")
    both = build(language("bow", "echo >pipe"), language("quiver", "read <pipe"))
    assert both == {"bow": True, "quiver": True}


def test_build_waits_for_dependencies(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    first = language("bow", "read <pipe; touch bow")
    second = language("quiver", "test -f bow", after=("bow",))
    third = language("zither", "echo >pipe")
    assert build(first, second, third) == {"bow": True, "quiver": True, "zither": True}


def test_failed_build_does_not_stop_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(language("bow", "echo why; false"), language("quiver", "true")) == {
        "bow": False,
        "quiver": True,
    }
    said = capsys.readouterr().out
    assert "build: bow     FAILED" in said and "\n    why\n" in said
    assert re.search(r"build: quiver  ok \(\d+ s\)", said)


def test_roundtrip_option_runs_roundtrip_build(folder: Path) -> None:
    part = language("bow", "false", roundtrip="true")
    assert build(part) == {"bow": False}
    assert build(part, roundtrip=True) == {"bow": True}
    assert build(language("quiver", "true"), roundtrip=True) == {"quiver": True}


def test_dependencies_of_language() -> None:
    known = {
        "bow": language("bow", ""),
        "string": language("string", "", after=("bow",)),
        "quiver": language("quiver", "", loads=("string",)),
    }
    assert build_languages.needed("quiver", known) == ["string", "bow"]
