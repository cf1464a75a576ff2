"""The Rust tables of the runtimes: what is in them follows from the spec, and how it is written."""

from __future__ import annotations

import re

import pytest
from conftest import Scratch

from fletching_generator.languages import rust
from fletching_generator.languages.rust import runtimes
from fletching_generator.languages.rust.text import WIDTH
from fletching_generator.render import render_module
from fletching_generator.runtimes.names import snake, statuses
from fletching_generator.spec.model import Spec

FOLDER = "bindings/rust/fletching/src/runtime/tables"


@pytest.fixture(scope="module")
def tables(spec: Spec) -> dict[str, str]:
    texts = render_module(rust, spec)
    return {path: text for path, text in texts.items() if path.startswith(FOLDER)}


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
def test_a_name_is_split_at_its_words(name: str, expected: str) -> None:
    assert snake(name) == expected


def test_a_number_has_one_name(spec: Spec) -> None:
    for runtime in spec.runtimes:
        if runtime.api != "c":
            continue
        values = [constant.value for constant in statuses(runtime)]
        assert len(values) == len(set(values)) > 1


def test_a_runtime_has_a_table_when_its_events_are_waited_on_by_a_call(
    tables: dict[str, str], spec: Spec
) -> None:
    called = {r.name for r in spec.runtimes if r.operation("host_wait").by == "call"}
    assert set(tables) == {f"{FOLDER}.rs", *(f"{FOLDER}/{name}.rs" for name in called)}
    assert {name for name in called if f"pub mod {name};" in tables[f"{FOLDER}.rs"]} == called


def test_every_function_is_there_under_its_symbol(tables: dict[str, str], spec: Spec) -> None:
    for runtime in spec.runtimes:
        text = tables.get(f"{FOLDER}/{runtime.name}.rs")
        if text is None:
            continue
        found = dict(
            re.findall(r"\n +(\w+): library\s*\.(\w+\(c\"\w+\"\))", text),
        )
        for function in runtime.functions:
            needed = function.party == "consumer" and function.optional is None
            method = "required" if needed else "optional"
            assert found.pop(snake(function.name)) == f'{method}(c"{function.symbol}")'
            holder = "Symbol" if needed else "Optional"
            assert re.search(rf"pub {snake(function.name)}:\s+{holder}<", text)
        assert found == {}


def test_every_device_of_a_runtime_is_in_its_arm(tables: dict[str, str], spec: Spec) -> None:
    text = " ".join(tables[f"{FOLDER}.rs"].split())
    for runtime in spec.runtimes:
        devices = [d.name.upper() for d in spec.devices if d.runtime == runtime.name]
        arm = " | ".join(f"ArrowDeviceType::{name}" for name in devices)
        value = f"Self::{runtimes.variant(runtime)}"
        assert f"{arm} => {value}," in text or f"{arm} => {{ {value} }}" in text


def test_lines_are_as_long_as_rustfmt_has_them(tables: dict[str, str]) -> None:
    for path, text in tables.items():
        long = [line for line in text.splitlines() if len(line) > WIDTH]
        assert long == [], path


def test_a_change_of_the_spec_shows(scratch: Scratch) -> None:
    scratch.replace("runtimes.yaml", "symbol: cuEventDestroy_v2", "symbol: cuEventDestroy_v3")
    scratch.replace("runtimes.yaml", "libcuda.so.1, libcuda.so]", "libcuda.so.2]")
    text = render_module(rust, scratch.load())[f"{FOLDER}/cuda.rs"]
    assert 'cu_event_destroy: library.optional(c"cuEventDestroy_v3"),' in text
    assert '    &["libcuda.so.2"]\n' in text


@pytest.mark.parametrize(
    ("patterns", "value", "expected"),
    [
        (["A", "B"], "C", "        A | B => C,"),
        (["A" * 40, "B" * 40], "C" * 20, f"        {'A' * 40} | {'B' * 40} => {{\n{' ' * 12}"),
        (["A" * 60, "B" * 60], "C", f"        {'A' * 60}\n        | {'B' * 60} => C,"),
    ],
)
def test_an_arm_is_broken_as_rustfmt_does_it(
    patterns: list[str], value: str, expected: str
) -> None:
    assert runtimes.arm(patterns, value).startswith(expected)
