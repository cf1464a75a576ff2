"""The checks of peers.py find what they are for: each test breaks one thing of a good transit."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import peers
import transit as python_transit
from fletching.abi import ArrowDeviceArray, ArrowSchema
from pyarrow_cases import CASES

Addresses = tuple[int, int, int, int]


class Wrapped(peers.PythonTransit):
    """Python's own transit; `after` changes what it gave out."""

    lost = 0

    def send(self, *addresses: int) -> str:
        error = super().send(*addresses)
        if not error:
            schema, array = addresses[2:]
            self.after(ArrowSchema.from_address(schema), ArrowDeviceArray.from_address(array))
        return error

    def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None: ...

    def exported(self) -> int:
        return super().exported() + self.lost


@pytest.fixture(autouse=True)
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "cells"
    monkeypatch.setenv("FLETCHING_CELLS", str(path))
    monkeypatch.setattr(python_transit, "counts", python_transit.Counts())
    yield path


def problems(transit: peers.Transit, case: str = "nulls") -> str:
    return "; ".join(peers.run("python", transit, case))


@pytest.mark.parametrize("case", CASES)
def test_a_good_transit_passes(case: str, cells: Path) -> None:
    assert problems(Wrapped(), case) == ""
    cell = json.loads(cells.read_text("utf-8"))
    assert (cell["case"], cell["peer"], cell["ok"], cell["reason"]) == (case, "pyarrow", True, "")
    assert cell["asserted"] > 10
    assert cell["releases"] >= 4


def test_a_changed_value_is_found() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            ctypes.memset(array.array.buffers[1] or 0, 7, 1)

    assert "expected <pyarrow.lib.Int32Array" in problems(Changes(), "int32")


def test_a_copy_is_found() -> None:
    class Copies(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            self.values = (ctypes.c_int32 * 3)(1, -2, 2**31 - 1)
            array.array.buffers[1] = ctypes.addressof(self.values)

    assert "where the buffers are" in problems(Copies(), "int32")


def test_changed_metadata_is_found() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            schema.metadata = None

    assert "expected pyarrow.RecordBatch" in problems(Changes(), "record_batch")


def test_an_invalid_array_is_found() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            array.array.null_count = 3

    assert "pyarrow finds it invalid" in problems(Changes())


def test_a_changed_offset_is_found() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            array.array.offset, array.array.length = 0, 3
            array.array.null_count = -1

    assert "offset is 0, expected 3" in problems(Changes(), "sliced")


def test_another_device_is_found() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            array.device_id = 4

    assert "device_id is 4, expected -1" in problems(Changes())


def test_a_missing_release_is_found() -> None:
    class Loses(Wrapped):
        lost = 0

        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            self.lost += 1

    assert "the number of the language's releases is 4, expected 6" in problems(Loses())


def test_a_leak_is_found() -> None:
    class Leaks(Wrapped):
        kept: Any = None

        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            self.kept = pyarrow.array(range(1000))

    assert "what pyarrow has allocated is" in problems(Leaks())


def test_a_refusal_is_a_failure() -> None:
    class Refuses(Wrapped):
        def send(self, *addresses: int) -> str:
            return "errno 22: not today"

    found = problems(Refuses())
    assert "the language refused it: errno 22: not today" in found
    assert "what pyarrow has allocated" not in found


def test_not_moving_in_is_found() -> None:
    class Copies(Wrapped):
        def send(self, *addresses: int) -> str:
            before = ctypes.string_at(addresses[0], ctypes.sizeof(ArrowSchema))
            error = super().send(*addresses)
            ctypes.memmove(addresses[0], before, len(before))
            self.after = lambda *_: None  # type: ignore[method-assign]
            return error

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(peers.EXPORTS, "capsules", peers.export_to_structs)
        assert "the schema was not moved in" in problems(Copies())


def test_what_has_to_be_refused_is_refused() -> None:
    assert peers.accepted(Wrapped()) == []


def test_accepting_anything_is_found() -> None:
    class Accepts(Wrapped):
        def send(self, *addresses: int) -> str:
            return ""

    assert peers.accepted(Accepts()) == [f"{what} was accepted" for what in peers.SPOILERS]


def test_taking_what_was_refused_is_found() -> None:
    class Takes(Wrapped):
        def send(self, *addresses: int) -> str:
            peers.release_both(addresses[0], addresses[1])
            return "errno 22: refused"

    assert len(peers.accepted(Takes())) == len(peers.SPOILERS)


def test_a_missing_library_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLETCHING_LIB_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["peers.py", "rust"])
    assert peers.main() == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/libfletching_transit_rust.so" in error
    assert "run `make`" in error
