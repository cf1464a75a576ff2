"""The checks of main.py find what they are for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import main
import reexport
from dump import dump
from fletching import DeviceArray, abi
from fletching.abi import ArrowDeviceArray, ArrowSchema
from producer import Producer, ProducerError


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
    export = reexport.export_array

    def spoil(array: DeviceArray) -> tuple[ArrowSchema, ArrowDeviceArray]:
        structs = export(array)
        structs[1].array.length -= 1
        return structs

    monkeypatch.setattr(reexport, "export_array", spoil)
    problems = main.run(Producer(), "int32", "array")
    assert len(problems) == 1
    assert "FletchingProducerVerifyArray: failed with" in problems[0]
    cell = json.loads(cells.read_text("utf-8"))
    assert (cell["ok"], cell["reason"]) == (False, problems[0])


@pytest.mark.parametrize("direction", ["array", "stream"])
def test_a_wrong_dump_is_found(monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    def wrong(schema: ArrowSchema, array: ArrowDeviceArray) -> str:
        return dump(schema, array).replace("flags=2", "flags=0")

    monkeypatch.setattr(main, "dump", wrong)
    problems = "; ".join(main.run(Producer(), "int32", direction))
    assert "dump: line 4 differs: expected schema.flags=2, got schema.flags=0" in problems


@pytest.mark.parametrize("case", Producer().cases())
def test_every_changed_line_of_a_dump_is_named(case: str) -> None:
    producer = Producer()
    schema, array = ArrowSchema(), ArrowDeviceArray()
    producer.export_array(case, schema, array)
    try:
        lines = dump(schema, array).splitlines(keepends=True)
        for i in range(0, len(lines), max(1, len(lines) // 60)):
            wrong = lines[i].rstrip("\n") + "0\n"
            changes = {
                "changed": [*lines[:i], wrong, *lines[i + 1 :]],
                "missing": [*lines[:i], *lines[i + 1 :]],
                "twice": [*lines[: i + 1], *lines[i:]],
            }
            for change, changed in changes.items():
                with pytest.raises(ProducerError) as error:
                    producer.verify_dump("".join(changed))
                number = i + 2 if change == "twice" else i + 1
                is_root = lines[i].startswith(("schema.private_data=", "array.private_data="))
                if not is_root or change == "twice":
                    assert f"dump: line {number} differs: expected " in str(error.value), change
    finally:
        abi.release(schema)
        abi.release(array)


def test_a_missing_release_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[ArrowSchema | ArrowDeviceArray] = []
    export = reexport.export_array

    def forget(array: DeviceArray) -> tuple[ArrowSchema, ArrowDeviceArray]:
        kept.extend(export(array))
        return export(array)

    monkeypatch.setattr(reexport, "export_array", forget)
    problems = "; ".join(main.run(Producer(), "int32", "array"))
    for struct in kept:
        abi.release(struct)
    assert "the number of Python's own releases is 0, expected 2" in problems
    assert "the producer's live_arrays is 1, expected 0" in problems
    assert "the producer's released is 0, expected 2" in problems


def test_a_stream_that_ends_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "BATCHES", 2)
    monkeypatch.setitem(
        main.DIRECTIONS, "stream", lambda p, c, k: main._stream(p, c, k, fail_at=-1, expected=3)
    )
    problems = main.run(Producer(), "int32", "stream")
    assert problems == ["the number of batches that were dumped is 2, expected 3"]


def test_a_missing_library_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLETCHING_LIB_DIR", str(tmp_path))
    assert main.main() == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/libfletching_producer.so" in error
    assert "run `make`" in error
