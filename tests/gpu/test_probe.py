"""Runs the probe on the stand-in and compares its `driver` mode with probed drivers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import probe
from probe import BLOCKS, RETURNS, Answer
from running import ROOT

STANDIN = ROOT / "build" / "lib" / "standin"
MEASURED = sorted((ROOT / "docs" / "measured").glob("driver-*.md"))

# A call that waits gets little time to return, and a call that does not gets all it needs.
SOON, LATE = 0.3, 60.0

pytestmark = pytest.mark.skipif(
    not (STANDIN / "libcuda.so.1").exists(), reason="the stand-in is not built: tools/build cpp"
)


@pytest.fixture(autouse=True)
def standin(monkeypatch: pytest.MonkeyPatch) -> None:
    others = os.environ.get("LD_LIBRARY_PATH", "")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{STANDIN}:{others}")
    monkeypatch.setenv("FLETCHING_STANDIN_MODE", "driver")
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    monkeypatch.delenv("CUDA_MODULE_LOADING", raising=False)


@pytest.mark.parametrize(
    ("name", "warm", "expected"),
    [
        ("allocate pinned", True, BLOCKS),
        ("free device", True, BLOCKS),
        ("load a module", True, BLOCKS),
        ("copy pinned to pinned, behind the gate", True, BLOCKS),
        ("copy managed to device, behind the gate", True, BLOCKS),
        ("copy device to pinned, behind the gate", True, RETURNS),
        ("copy pinned to pinned, elsewhere", True, RETURNS),
        ("copy device to pinned, elsewhere", False, BLOCKS),
        ("launch a kernel, elsewhere", True, RETURNS),
        ("launch a kernel, elsewhere", False, BLOCKS),
        ("query the event behind the gate", False, RETURNS),
        ("launch 900 kernels, behind the gate", True, RETURNS),
        ("launch 1100 kernels, behind the gate", True, BLOCKS),
        ("40 streams at once", True, BLOCKS),
    ],
)
def test_driver_mode_matches_expected_answer(name: str, warm: bool, expected: str) -> None:
    assert probe.answer(name, warm, SOON if expected == BLOCKS else LATE) == expected


def test_strict_stand_in_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLETCHING_STANDIN_MODE", "strict")
    assert probe.answer("allocate pinned", False, LATE) == RETURNS


def test_driver_error_is_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLETCHING_FAULT", "cuEventQuery:1:999")
    answer = probe.answer("query the event behind the gate", True, LATE)
    assert answer == "error: cuEventQuery failed with 999"


def test_probe_without_device_reports_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class NoDriver:
        def __init__(self) -> None:
            raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(probe, "Driver", NoDriver)
    assert probe.main([]) == 2
    assert "no CUDA device" in capsys.readouterr().err


FOUND = {"status": "real", "device": "Some GPU"}


def test_page_round_trips() -> None:
    answers = [Answer("free device", BLOCKS, RETURNS)]
    assert probe.read_page(probe.page(FOUND, answers)) == answers


def test_stand_in_must_wait_where_driver_waits() -> None:
    real = [Answer("free device", BLOCKS, RETURNS)]
    assert probe.too_lenient(real, [Answer("free device", BLOCKS, BLOCKS)]) == []
    assert probe.too_lenient(real, [Answer("free device", RETURNS, BLOCKS)]) == [
        "free device, warm"
    ]


def test_stand_in_results_are_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe, "ROOT", tmp_path)
    probe.write_docs({**FOUND, "status": "stand-in"}, "text")
    assert list(tmp_path.rglob("*")) == []


# Every page from --write-docs adds a test.
@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.name)
def test_stand_in_waits_where_measured_driver_waits(path: Path) -> None:
    real = probe.read_page(path.read_text(encoding="utf-8"))
    standin = probe.ask_all([each.call for each in real], SOON)
    assert probe.too_lenient(real, standin) == []
