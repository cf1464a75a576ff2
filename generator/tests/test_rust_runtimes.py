"""Tests the Rust list of the runtimes, and the names shared by the tables of all languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fletching_generator.languages import rust
from fletching_generator.languages.rust import runtimes
from fletching_generator.render import render_module
from fletching_generator.runtimes.names import snake, statuses
from fletching_generator.spec.model import Spec

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def vendors(spec: Spec) -> str:
    return render_module(rust, spec)["bindings/rust/fletching/src/runtime/vendors.rs"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuStreamWaitEvent", "cu_stream_wait_event"),
        ("cuMemcpyHtoDAsync", "cu_memcpy_htod_async"),
        ("clGetPlatformIDs", "cl_get_platform_ids"),
        ("cuDevicePrimaryCtxGetState", "cu_device_primary_ctx_get_state"),
        ("hipErrorNotReady", "hip_error_not_ready"),
    ],
)
def test_snake_splits_words(name: str, expected: str) -> None:
    assert snake(name) == expected


def test_every_number_has_one_name(spec: Spec) -> None:
    for runtime in spec.runtimes:
        if runtime.api != "c":
            continue
        values = [constant.value for constant in statuses(runtime)]
        assert len(values) == len(set(values)) > 1


def test_runtime_numbers_match_core(vendors: str, spec: Spec) -> None:
    header = (ROOT / "cpp/include/fletching/events.h").read_text("utf-8")
    for runtime in spec.runtimes:
        match = re.search(rf"FLETCHING_RUNTIME_{runtime.name.upper()} (\d+)", header)
        assert match
        assert f"    {runtimes.variant(runtime)} = {match[1]}," in vendors


def test_every_device_has_arm(vendors: str, spec: Spec) -> None:
    arms = set(re.findall(r"ArrowDeviceType::(\w+) => Self::(\w+),", vendors))
    assert arms == {
        (device.name.upper(), runtimes.variant(runtime))
        for runtime in spec.runtimes
        for device in spec.devices
        if device.runtime == runtime.name
    }
