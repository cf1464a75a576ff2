"""The validation layer has no finding about the peers' own arrays, at level data."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p
from typing import Any

import pyarrow as pa
import pytest

import peers
from fletching.abi import ArrowArray
from libraries import load
from producer import Producer
from structs import export_to_structs, release_both

LEVEL_DATA = 2


class _Finding(ctypes.Structure):
    """The beginning of struct FletchingFinding, and the message."""

    _fields_ = tuple((name, c_char_p) for name in ("rule", "severity", "party", "path", "message"))


_Report = CFUNCTYPE(None, c_void_p, POINTER(_Finding))


class _Options(ctypes.Structure):
    """The first version of struct FletchingValidateOptions."""

    _fields_ = (
        *(("size", c_size_t), ("level", c_int32)),
        *(("report", _Report), ("context", c_void_p)),
    )


def findings(schema: int, array: int) -> list[str]:
    found: list[str] = []

    def report(_: object, finding: Any) -> None:
        about = finding.contents
        found.append(b": ".join((about.rule, about.path, about.message)).decode())

    options = _Options(ctypes.sizeof(_Options), LEVEL_DATA, _Report(report))
    check = load("libfletching.so").FletchingCheckDeviceArray
    check.restype = c_int
    check.argtypes = [c_void_p, c_void_p, POINTER(_Options), c_void_p, c_void_p]
    assert check(schema, array, byref(options), None, None) == 0
    return found


@pytest.mark.parametrize("case", Producer().cases())
@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)
def test_reports_nothing_for_the_arrays_of_a_peer(peer: peers.Peer, case: str) -> None:
    if case in peer.limits["array"]:
        pytest.skip(f"{peer.name} cannot export it: {peer.limits['array'][case]}")
    for export in peer.exports.values():
        schema, array, owner = export(peer.make(case))
        assert findings(schema, array) == []
        release_both(schema, array)
        del owner


def test_reports_what_a_peer_breaks() -> None:
    schema, array, _ = export_to_structs(pa.array([b"\xff"]).view(pa.utf8()))
    found = findings(schema, array)
    assert [text.partition(":")[0] for text in found] == ["layout.utf8"]
    ArrowArray.from_address(array).null_count = 2
    assert "array.null-count" in " ".join(findings(schema, array))
    release_both(schema, array)
