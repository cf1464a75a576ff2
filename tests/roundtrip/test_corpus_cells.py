"""Tests of the corpus cells in the runner, and of the report's date, commit and machine."""

from __future__ import annotations

import json
import subprocess
from ctypes import c_char_p, c_int32
from dataclasses import replace
from pathlib import Path

import pytest

import provenance
import roundtrip
from cells import CORPUS_DIRECTIONS, corpus_key
from corpus import corpus_cases
from devices import NOT_YET
from libraries import declare, load
from programs import Command, Language
from test_roundtrip import EXPECTED, GOOD, Runner, fake, line, lines, runner

__all__ = ["runner"]

TENSOR = corpus_key("fake", "tensors", "tensor.good")
SCHEMA = corpus_key("fake", "schemas", "schema.cycle")
UNSUPPORTED = line(TENSOR, status="not-supported", reason="no tensors", asserted=0, ok=False)


@pytest.fixture
def with_corpus(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.setattr(roundtrip, "expected_cells", lambda _: [*EXPECTED, SCHEMA, TENSOR])
    return runner


def playing(*cells: str, not_played: tuple[str, ...] = ()) -> Language:
    text = lines(*cells)
    command = Command(f"printf %s '{text}' >> \"$FLETCHING_CELLS\"")
    return replace(fake(**GOOD), corpus=command, not_played=not_played)


def test_unsupported_case_is_neither_right_nor_failure(with_corpus: Runner) -> None:
    result = with_corpus(
        playing(line(SCHEMA, releases=0), UNSUPPORTED, not_played=("tensors",)), matrix=False
    )
    assert result.code == 0
    assert result.out.splitlines()[-2] == (
        "6 of 6 cells are right: 6 real, 0 on a stand-in; 0 absent; "
        "corpus: 1 of 2 right, 1 not supported"
    )
    cell = result.cell(TENSOR)
    assert (cell["status"], cell["ok"]) == ("not-supported", False)


def test_unsupported_case_of_played_group_fails(with_corpus: Runner) -> None:
    result = with_corpus(playing(line(SCHEMA), UNSUPPORTED))
    assert result.code == 1
    assert "fake: tensor.good tensors: no tensors" in result.out


def test_missing_case_fails(with_corpus: Runner) -> None:
    result = with_corpus(playing(line(SCHEMA)))
    assert result.code == 1
    assert "tensor.good tensors: did not arrive: corpus: the program ended well" in result.out


def test_language_without_corpus_passes(with_corpus: Runner) -> None:
    result = with_corpus(fake(**GOOD))
    assert result.code == 0
    assert "corpus: 0 of 2 right, 0 not supported, 2 not yet" in result.out
    assert result.cell(SCHEMA)["reason"] == NOT_YET


def test_suite_lists_every_corpus_case() -> None:
    found = corpus_cases()
    assert {group for group, _ in found} == set(CORPUS_DIRECTIONS)
    assert len(found) == len(set(found))
    names = {name for _, name in found}
    for library, prefix in (("hostile", "FletchingHostileCase"), ("corpus", "FletchingCorpus")):
        loaded = load(f"libfletching_{library}.so")
        count = declare(loaded, f"{prefix}Count", c_int32)()
        name = declare(loaded, f"{prefix}Name", c_char_p, c_int32)
        assert {name(i).decode() for i in range(count)} <= names


def test_report_has_time_and_platform(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767322800")
    runner(fake(**GOOD))
    report = json.loads((tmp_path / "build" / "roundtrip.json").read_text("utf-8"))
    assert list(report) == ["date", "commit", "machine", "cells"]
    assert report["date"] == "2026-01-02T03:00:00Z"
    assert report["machine"]


def test_commit_shows_modified_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.provenance().commit == provenance.UNKNOWN

    def git(*arguments: str) -> str:
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", *author, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-qm", "one")
    head = git("rev-parse", "HEAD")
    assert provenance.provenance().commit == head
    (tmp_path / "file").write_text("two")
    assert provenance.provenance().commit == f"{head}-dirty"
