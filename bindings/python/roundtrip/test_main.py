"""The checks of main.py find what they are for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import main
import transit
from cells import Checks
from fletching.abi import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
    release,
)
from producer import Producer


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "cells"
    monkeypatch.setenv("FLETCHING_CELLS", str(path))
    yield path


def test_every_case_passes(cells: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main() == 0
    found = [json.loads(line) for line in cells.read_text("utf-8").splitlines()]
    assert len(found) == 3 * len(Producer().cases())
    assert all(cell["ok"] and cell["asserted"] > 10 and cell["releases"] > 0 for cell in found)
    assert capsys.readouterr().err == ""


def test_a_changed_field_is_found(monkeypatch: pytest.MonkeyPatch, cells: Path) -> None:
    def spoil(producer: Producer, case: str, checks: Checks) -> None:
        schema, array = ArrowSchema(), ArrowDeviceArray()
        out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
        producer.export_array(case, schema, array)
        transit.pass_array_on(schema, array, out_schema, out_array)
        out_array.array.length -= 1
        try:
            producer.verify_array(case, out_schema, out_array)
        finally:
            release(out_array.array)
            release(out_schema)

    monkeypatch.setitem(main.DIRECTIONS, "array", spoil)
    problems = main.run(Producer(), "int32", "array")
    assert len(problems) == 1
    assert "FletchingProducerVerifyArray: failed with" in problems[0]
    cell = json.loads(cells.read_text("utf-8"))
    assert (cell["ok"], cell["reason"]) == (False, problems[0])


def test_a_wrong_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "describe", lambda schema, array: "something else\n")
    problems = main.run(Producer(), "int32", "stream")
    assert problems[0].startswith("the text of batch 0 is 'something else\\n', expected")


def test_a_missing_release_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    def forget(struct: ArrowArray | ArrowSchema | ArrowDeviceArrayStream) -> None:
        kept.append(struct)

    monkeypatch.setattr(main, "release", forget)
    problems = "; ".join(main.run(Producer(), "int32", "array"))
    assert "the number of Python's own releases is 0, expected 2" in problems
    assert "the producer's live_arrays is 1, expected 0" in problems
    assert "the producer's released is 0, expected 2" in problems
    for struct in kept:
        struct.release(struct)


def test_a_stream_that_ends_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "BATCHES", 2)
    monkeypatch.setitem(
        main.DIRECTIONS, "stream", lambda p, c, k: main._stream(p, c, k, fail_at=-1, given=3)
    )
    problems = main.run(Producer(), "int32", "stream")
    assert problems == ["the number of batches that passed is 2, expected 3"]


def test_a_missing_library_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLETCHING_LIB_DIR", str(tmp_path))
    assert main.main() == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/libfletching_producer.so" in error
    assert "run `make`" in error
