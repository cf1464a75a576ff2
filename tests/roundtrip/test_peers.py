"""Checks that peers.py detects each fault: each test breaks one thing in a correct transit."""

from __future__ import annotations

import ctypes
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nanoarrow
import pyarrow
import pytest

import nanoarrow_peer
import peers
from fletching.abi import ArrowDeviceArray, ArrowSchema
from languages import load
from limits import LIMITS
from producer import Producer
from programs import chain
from pyarrow_cases import CASES, FORMATS_WITHOUT_CLASS
from pyarrow_peer import PyarrowPeer
from structs import export_to_structs
from subject import load as load_subject
from transits import Transit

PYARROW, NANOARROW = peers.PEERS
# The Python round trip covers the other cases.
SAMPLE = (
    *("int32", "nulls_uncounted_without_validity", "utf8_view", "struct", "list_view"),
    *("dictionary", "interval_months", "zero_length_every_layout", "record_batch"),
)
CELLS = [(peer, d, case) for peer in peers.PEERS for d in peers.DIRECTIONS for case in SAMPLE]


class Wrapped(Transit):
    """The Python subject; `after` changes its result."""

    def __init__(self) -> None:
        super().__init__(load_subject(""))

    def send(self, *addresses: int) -> str:
        error = super().send(*addresses)
        if not error:
            schema, array = addresses[2:]
            self.after(ArrowSchema.from_address(schema), ArrowDeviceArray.from_address(array))
        return error

    def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None: ...


@pytest.fixture(autouse=True, scope="module")
def frozen() -> Iterator[None]:
    """Excludes pytest's objects from each garbage collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "cells"
    monkeypatch.setenv("FLETCHING_CELLS", str(path))
    yield path


def problems(
    transit: Transit,
    case: str = "nulls",
    peer: peers.Peer = PYARROW,
    direction: str = "array",
) -> str:
    return "; ".join(peers.run("quiver", transit, peer, case, direction))


@pytest.mark.parametrize(("peer", "direction", "case"), CELLS)
def test_correct_transit_passes(peer: peers.Peer, direction: str, case: str, cells: Path) -> None:
    assert problems(Wrapped(), case, peer, direction) == ""
    cell = json.loads(cells.read_text("utf-8"))
    assert (cell["case"], cell["peer"], cell["direction"]) == (case, peer.name, direction)
    assert cell["ok"] is True
    limit = peer.limits[direction].get(case, "")
    assert (cell["status"], cell["reason"]) == ("absent" if limit else "real", limit)
    if not limit:
        assert cell["asserted"] > 10
        assert cell["releases"] >= 2


def test_every_case_has_expected_value() -> None:
    assert set(Producer().cases()) == CASES.keys() | FORMATS_WITHOUT_CLASS.keys()
    assert not CASES.keys() & FORMATS_WITHOUT_CLASS.keys()
    for make in CASES.values():
        make().validate(full=True)


def test_every_peer_has_limits() -> None:
    assert [peer.name for peer in peers.PEERS] == list(LIMITS)


def test_detects_obsolete_limit() -> None:
    class LimitedPeer(PyarrowPeer):
        limits = {"array": {"int32": "cannot do it"}}  # noqa: RUF012

    assert "pyarrow can do it now" in problems(Wrapped(), "int32", LimitedPeer())


def test_detects_other_limit_reason() -> None:
    class LimitedPeer(PyarrowPeer):
        limits = {"array": {"interval_months": "no time"}}  # noqa: RUF012

    found = problems(Wrapped(), "interval_months", LimitedPeer())
    assert found == "pyarrow says 'KeyError: 21', expected 'no time'"


@pytest.mark.parametrize(("kind", "words"), nanoarrow_peer.UNBUILDABLE.items())
def test_nanoarrow_cannot_build_kind(kind: str, words: str) -> None:
    array = nanoarrow.c_array(CASES[kind]())
    assert array.view().storage_type == kind
    assert not nanoarrow_peer.can_build(array)
    with pytest.raises((ValueError, RuntimeError), match=words):
        nanoarrow_peer.build(array)


def test_nanoarrow_builds_other_kinds() -> None:
    def builds(case: str) -> bool:
        return nanoarrow_peer.can_build(nanoarrow.c_array(CASES[case]()))

    others = {case for case in CASES if not builds(case)}
    unbuildable = {"decimal32", "decimal64", "list_view", "large_list_view", "list_view_slice"}
    dictionaries = {case for case in CASES if "dictionary" in case} | {"record_batch"}
    empty = {"zero_length_every_layout", "zero_length_null_buffers"}
    assert others == unbuildable | dictionaries | empty


@pytest.mark.parametrize(
    ("case", "direction"),
    [
        ("utf8_view", "import"),
        *((case, d) for case in ("int32", "list", "interval_months") for d in peers.DIRECTIONS),
    ],
)
def test_nanoarrow_detects_changed_value(case: str, direction: str) -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            below = array.array.children[0].contents if case == "list" else array.array
            ctypes.memset(below.buffers[1] or 0, 7, 1)

    assert "expected" in problems(Changes(), case, NANOARROW, direction)


def test_detects_changed_value() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            ctypes.memset(array.array.buffers[1] or 0, 7, 1)

    assert "expected <pyarrow.lib.Int32Array" in problems(Changes(), "int32")


@pytest.mark.parametrize("direction", peers.DIRECTIONS)
@pytest.mark.parametrize("peer", peers.PEERS)
def test_detects_copy(peer: peers.Peer, direction: str) -> None:
    class Copies(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            self.values = (ctypes.c_int32 * 4)(1, 2, -(2**31), 2**31 - 1)
            array.array.buffers[1] = ctypes.addressof(self.values)

    assert "where the buffers are" in problems(Copies(), "int32", peer, direction)


def test_detects_copy_by_peer() -> None:
    class Copies(PyarrowPeer):
        def take(self, case: str, schema: int, array: int) -> Any:
            return pyarrow.array(super().take(case, schema, array).to_pylist(), pyarrow.int32())

    assert "the set of buffers that the peer copied" in problems(Wrapped(), "int32", Copies())


def test_detects_changed_metadata() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            schema.metadata = None

    assert "expected pyarrow.RecordBatch" in problems(Changes(), "record_batch")


def test_detects_invalid_array() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            array.array.null_count = 3

    assert "pyarrow finds it invalid" in problems(Changes())


def test_detects_changed_offset() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            array.array.offset = 0
            array.array.null_count = -1

    assert "offset is 0, expected 1" in problems(Changes(), "slice")


def test_detects_other_device() -> None:
    class Changes(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            array.device_id = 4

    assert "device_id is 4, expected -1" in problems(Changes())


def test_detects_missing_release() -> None:
    class MissingRelease(Wrapped):
        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            self.given += 1

    found = "the number of structs that the language has released is 4, expected 6"
    assert found in problems(MissingRelease())


def test_detects_leak() -> None:
    class LeakingTransit(Wrapped):
        kept: Any = None

        def after(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
            self.kept = pyarrow.array(range(1000))

    assert "what pyarrow has allocated is" in problems(LeakingTransit())


def test_rejection_is_failure() -> None:
    class Refuses(Wrapped):
        def send(self, *addresses: int) -> str:
            return "errno 22: not today"

    found = problems(Refuses())
    assert "the language refused it: errno 22: not today" in found
    assert "what pyarrow has allocated" not in found


def test_detects_missing_move() -> None:
    class Copies(Wrapped):
        def send(self, *addresses: int) -> str:
            before = ctypes.string_at(addresses[0], ctypes.sizeof(ArrowSchema))
            error = super().send(*addresses)
            ctypes.memmove(addresses[0], before, len(before))
            self.after = lambda *_: None  # type: ignore[method-assign]
            return error

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PYARROW.exports, "capsules", export_to_structs)
        assert "the schema was not moved in" in problems(Copies())


def test_missing_library_prints_hint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLETCHING_LIB_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["peers.py", chain(load())[-1]])
    assert peers.main() == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/libfletching_subject_rust.so" in error
    assert "run `make`" in error
