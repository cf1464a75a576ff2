"""The Go tables of the runtimes: what is in them follows from the spec, and how it is written."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator.languages import go
from fletching_generator.languages.go import runtimes
from fletching_generator.render import render_module
from fletching_generator.runtimes.tables import called_runtimes, is_required
from fletching_generator.spec.model import Spec
from fletching_generator.spec.types import Constant

TABLE = "bindings/go/runtime_tables.go"
HEADER = "bindings/go/runtime_{}.h"


@pytest.fixture(scope="module")
def tables(spec: Spec) -> dict[str, str]:
    texts = render_module(go, spec)
    return {path: text for path, text in texts.items() if path.startswith("bindings/go/runtime_")}


def test_a_runtime_has_a_table_when_its_events_are_waited_on_by_a_call(
    tables: dict[str, str], spec: Spec
) -> None:
    called = {runtime.name for runtime in called_runtimes(spec)}
    assert called == {"cuda", "hip", "opencl"}
    assert set(tables) == {TABLE, *(HEADER.format(name) for name in called)}


def test_functions_and_symbols_have_the_same_order(tables: dict[str, str], spec: Spec) -> None:
    for runtime in called_runtimes(spec):
        header = tables[HEADER.format(runtime.name)]
        members = re.findall(r"\(FLETCHING_CALL\* (\w+)\)", header.split("_functions {")[1])
        assert members == [function.name for function in runtime.functions]
        text = tables[TABLE].split(f"var {runtime.name}Library")[1]
        symbols = re.findall(r'\n\t\t\{"(\w+)", (true|false)\},', text.split("\n}\n")[0])
        assert symbols == [(f.symbol, str(is_required(f)).lower()) for f in runtime.functions]


def test_every_device_of_a_runtime_is_in_its_case(tables: dict[str, str], spec: Spec) -> None:
    cases = re.findall(r"case (.+):\n\t\treturn (\w+)", tables[TABLE])
    found = {name.removesuffix("Runtime"): devices.count("abi.Device") for devices, name in cases}
    expected = [device.runtime for device in spec.devices if device.runtime]
    assert found == {name: expected.count(name) for name in expected}


def test_every_status_has_its_name(tables: dict[str, str], spec: Spec) -> None:
    for runtime in called_runtimes(spec):
        names = re.findall(
            r"status == (\w+)\)\s+return \"(\w+)\"", tables[HEADER.format(runtime.name)]
        )
        assert names and all(constant == text for constant, text in names)


def test_a_change_of_the_spec_shows(scratch: Scratch) -> None:
    scratch.replace("runtimes.yaml", "symbol: cuEventDestroy_v2", "symbol: cuEventDestroy_v3")
    scratch.replace("runtimes.yaml", "libcuda.so.1, libcuda.so]", "libcuda.so.2]")
    text = render_module(go, scratch.load())[TABLE]
    assert '{"cuEventDestroy_v3", false},' in text
    assert '\t\t"linux":   {"libcuda.so.2"},\n' in text


def test_lines_are_broken_as_clang_format_has_them(tables: dict[str, str], tmp_path: Path) -> None:
    formatter = REPOSITORY / ".venv/bin/clang-format"
    shutil.copy(REPOSITORY / ".clang-format", tmp_path)
    for path, text in tables.items():
        if path.endswith(".h"):
            file = tmp_path / Path(path).name
            file.write_text(text, encoding="utf-8")
            done = subprocess.run([formatter, file], capture_output=True, text=True, check=True)
            assert done.stdout == text, path


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (2, "uint32", "#define A ((uint32_t)2)"),
        (-14, "cl_int", "#define A ((cl_int)(-14))"),
        (0x11D3, "cl_uint", "#define A ((cl_uint)0x11d3)"),
    ],
)
def test_a_constant_has_its_type(value: int, type_: str, expected: str) -> None:
    assert runtimes.constant_macro(Constant("A", value, "", type_)) == expected
