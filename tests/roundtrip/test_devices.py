"""Tests of the device cells: who must have them, their libraries, and their part of the matrix."""

from __future__ import annotations

from dataclasses import replace

import pytest

import devices
import roundtrip
from cells import Key, case_key, device_key, peer_key
from expected import expected_cells
from programs import Command
from test_roundtrip import EXPECTED, GOOD, Runner, fake, line, lines, runner
from verdicts import ABSENT, LEGEND, PASSED, WORST_FIRST

__all__ = ["runner"]  # the fixture

DEVICES = [
    device_key("fake", backend, case, direction)
    for backend in ("opencl", "cuda")
    for case in ("int32", "utf8")
    for direction in ("array", "array_control")
]


@pytest.fixture
def with_devices(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """The runner, which also expects the cells of two devices."""
    monkeypatch.delenv(devices.REAL_GPU, raising=False)
    monkeypatch.setattr(
        roundtrip,
        "expected_cells",
        lambda name: [replace(key, language=name) for key in EXPECTED + DEVICES],
    )
    return runner


def written(**changes: str) -> str:
    """The lines of every device cell, with cuda on a stand-in; `changes` by backend."""
    statuses = {"opencl": "real", "cuda": "stand-in"} | changes
    return lines(*(line(key, status=statuses[key.backend]) for key in DEVICES))


def test_every_letter_has_rank() -> None:
    assert sorted(WORST_FIRST) == sorted(LEGEND)
    assert not set(PASSED) & set(ABSENT)


def test_all_device_cells_pass(with_devices: Runner) -> None:
    result = with_devices(fake(**GOOD, on_devices=written()))
    assert result.code == 0
    assert result.letters().endswith("/../ss")
    assert "devices (array, array_control)" in result.out
    assert "device opencl: 4 real, 12 asserted" in result.out
    assert "device cuda: 4 stand-in, 12 asserted" in result.out
    assert "14 of 14 cells are right: 10 real, 4 on a stand-in; 0 absent\n" in result.out


def test_language_without_device_cells_passes(with_devices: Runner) -> None:
    result = with_devices(fake(**GOOD))
    assert result.code == 0
    assert result.letters().endswith("/__/__")
    assert "6 of 14 cells are right: 6 real, 0 on a stand-in; 8 absent" in result.out
    cell = result.cell(DEVICES[0])
    assert (cell["status"], cell["reason"], cell["ok"]) == ("absent", devices.NOT_YET, False)


def test_missing_device_cells_fail(with_devices: Runner) -> None:
    result = with_devices(fake(**GOOD, on_devices=""))
    assert result.code == 1
    assert result.letters().endswith("/MM/MM")
    text = "fake: opencl int32 array and 7 more: did not arrive: devices: the program ended well"
    assert text in result.out


def test_backend_letter_is_worst_case(with_devices: Runner) -> None:
    bad = line(DEVICES[3], ok=False, reason="byte 0 is new, expected old")
    result = with_devices(fake(**GOOD, on_devices=lines(*map(line, DEVICES[:3]), bad)))
    assert result.letters().endswith("/.F/MM")
    assert "fake: opencl utf8 array_control: byte 0 is new, expected old" in result.out


def test_absent_device_fails(with_devices: Runner) -> None:
    gone = [line(k, status="absent", reason="no libOpenCL.so.1", ok=False) for k in DEVICES[:4]]
    result = with_devices(fake(**GOOD, on_devices=lines(*gone, *map(line, DEVICES[4:]))))
    assert result.code == 1
    assert result.letters().endswith("/AA/..")
    assert "device opencl: 4 absent, 12 asserted (no libOpenCL.so.1)" in result.out


def test_absent_gpu_of_other_vendor_passes(
    with_devices: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [line(k, status="absent", reason="no libcuda.so.1", ok=False) for k in DEVICES[4:]]
    program = fake(**GOOD, on_devices=lines(*map(line, DEVICES[:4]), *gone))
    monkeypatch.setenv(devices.REAL_GPU, "rocm")
    result = with_devices(program)
    assert result.code == 0
    assert result.letters().endswith("/../nn")
    monkeypatch.setenv(devices.REAL_GPU, "cuda")
    assert with_devices(program).code == 1


def test_stand_ins_precede_library_path(
    with_devices: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    condition = 'case "$LD_LIBRARY_PATH" in */standin:/somewhere) ;; *) exit 1;; esac'
    program = replace(fake(**GOOD), devices=Command(condition))
    assert "devices: exit code" not in with_devices(program).out
    monkeypatch.setenv(devices.REAL_GPU, "cuda")
    assert "fake: devices: exit code 1" in with_devices(program).out


def test_unknown_vendor_is_rejected(with_devices: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.REAL_GPU, "cuda,voodoo")
    result = with_devices(fake(**GOOD))
    assert result.code == 2
    assert "FLETCHING_REAL_GPU names voodoo; known are cuda, rocm" in result.err


def test_device_cells_have_device_keys() -> None:
    assert str(DEVICES[0]) == "fake: opencl int32 array"
    assert all(key.is_device for key in DEVICES)
    assert device_key("fake", "cpu", "int32", "chain").is_device
    others: list[Key] = [*EXPECTED, case_key("fake", "int32", "stream_failure")]
    others.append(peer_key("fake", "pyarrow", "int32", "import"))
    assert not any(key.is_device for key in others)


def test_each_backend_has_cells_and_control() -> None:
    found = [key for key in expected_cells("quiver") if key.is_device]
    gated = {key.backend for key in found if key.direction.endswith("_control")}
    vendors = {backend for backends in devices.VENDORS.values() for backend in backends}
    assert gated == vendors | {"opencl", "vulkan", "ext_dev"}
    assert len(found) == len(set(found))
    assert {key.case for key in found} == set(devices.CASES)


def test_each_backend_has_failure_cells() -> None:
    found = {(key.backend, key.direction) for key in expected_cells("quiver") if key.is_device}
    backends = {backend for backend, _ in found} - {"cpu"}
    for direction in ("stream_failure", "async_failure"):
        assert {b for b, d in found if d == direction} - {"cpu"} == backends
        assert {b for b, d in found if d == f"{direction}_control"} == backends
    assert ("cpu", "async_failure") in found


def test_language_with_one_direction(with_devices: Runner) -> None:
    partial = replace(fake(**GOOD, on_devices=written()), device_directions=("array",))
    result = with_devices(partial)
    assert result.code == 1  # because of the unexpected cells of the other direction
    assert "array_control and 3 more: unexpected cell" in result.out
    arrays = (key for key in DEVICES if key.direction == "array")
    result = with_devices(replace(partial, devices=_writes(*map(line, arrays))))
    assert result.code == 0
    assert result.letters().endswith("/._/._")
    missing = with_devices(replace(partial, devices=_writes()))
    assert missing.letters().endswith("/M_/M_")


def _writes(*cells: str) -> Command:
    command = fake(on_devices=lines(*cells)).devices
    assert command is not None
    return command
