"""Tests the content and the form of the Java tables of the runtimes."""

from __future__ import annotations

import re

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator.languages import java
from fletching_generator.languages.java import runtimes
from fletching_generator.reading.types import Constant
from fletching_generator.render import render_module
from fletching_generator.runtimes.model import Runtime
from fletching_generator.runtimes.names import snake
from fletching_generator.spec.model import Spec
from fletching_generator.spec.runtime_tables import called_runtimes
from fletching_generator.spelling import pascal

FOLDER = "bindings/java/fletching/src/main/java/io/github/fletching/"
KINDS = f"{FOLDER}RuntimeKind.java"


@pytest.fixture(scope="module")
def files(spec: Spec) -> dict[str, str]:
    return {path: text for path, text in render_module(java, spec).items() if FOLDER in path}


def table(files: dict[str, str], runtime: Runtime) -> str:
    return files[f"{FOLDER}{pascal(runtime.name)}Table.java"]


def test_runtimes_with_wait_calls_have_tables(files: dict[str, str], spec: Spec) -> None:
    called = {pascal(runtime.name) for runtime in called_runtimes(spec)}
    assert called == {"Cuda", "Hip", "Opencl"}
    assert {*files} >= {KINDS, *(f"{FOLDER}{name}Table.java" for name in called)}
    assert len([path for path in files if path.endswith("Table.java")]) == len(called)


def test_table_has_called_functions_with_symbol(files: dict[str, str], spec: Spec) -> None:
    for runtime in called_runtimes(spec):
        rows = re.findall(
            r'static final Symbol (\w+) =\s+LIBRARY\.symbol\(\s*"(\w+)", "(\w+)"\);',
            table(files, runtime),
        )
        assert rows == [
            (
                snake(function.name).upper(),
                function.symbol,
                runtimes.signature(function.type),
            )
            for function in runtimes.called_functions(runtime)
        ]


def test_product_names_every_function_of_table(files: dict[str, str], spec: Spec) -> None:
    sources = [path.read_text("utf-8") for path in (REPOSITORY / FOLDER).glob("*.java")]
    named = {*re.findall(r"\b\w+Table\.\w+", "".join(sources))}
    for runtime in called_runtimes(spec):
        functions = re.findall(r"static final Symbol (\w+)", table(files, runtime))
        assert functions
        assert {f"{pascal(runtime.name)}Table.{name}" for name in functions} <= named


@pytest.mark.parametrize(
    ("runtime", "function", "expected"),
    [
        ("cuda", "cuEventSynchronize", "ia"),
        ("cuda", "cuStreamWaitEvent", "iaai"),
        ("cuda", "cuCtxGetId", "iaa"),
        ("cuda", "cuMemsetD8Async", "iaiaa"),  # an unsigned char is passed as an int
        ("hip", "hipGetErrorName", "ai"),
        ("hip", "hipGetStreamDeviceId", "ia"),
        ("opencl", "clGetEventInfo", "iaiaaa"),
        ("opencl", "clCreateCommandQueue", "aaala"),  # cl_bitfield has 64 bits everywhere
    ],
)
def test_signature_uses_types_of_engine(
    spec: Spec, runtime: str, function: str, expected: str
) -> None:
    found = next(each for each in spec.runtimes if each.name == runtime)
    assert (
        runtimes.signature(next(f for f in found.functions if f.name == function).type) == expected
    )


def test_runtime_case_has_every_device(files: dict[str, str], spec: Spec) -> None:
    cases = re.findall(r"((?:      case \d+: // \w+\n)+)        return (\w+);", files[KINDS])
    found = {
        name.lower(): [int(value) for value in re.findall(r"case (\d+)", text)]
        for text, name in cases
    }
    assert found == {
        name: [device.value for device in spec.devices if device.runtime == name]
        for name in {device.runtime for device in spec.devices if device.runtime}
    }


def test_query_results_match_spec(files: dict[str, str], spec: Spec) -> None:
    for runtime in called_runtimes(spec):
        assert runtime.query is not None
        text = table(files, runtime)
        state = text.split("stateOf(int answer) {")[1].split("\n  }\n")[0]
        for outcome, constants in (
            ("DONE", runtime.query.done),
            ("PENDING", runtime.query.pending),
        ):
            cases = "".join(
                f"      case {runtimes.constant_name(constant)}:\n" for constant in constants
            )
            assert f"{cases}        return EventState.{outcome};" in state
        lost = text.split("isLost(int answer) {")[1].split("\n  }\n")[0]
        names = [runtimes.constant_name(constant) for constant in runtime.query.lost]
        assert re.findall(r"case (\w+):", lost) == names


def test_every_status_has_name(files: dict[str, str], spec: Spec) -> None:
    for runtime in called_runtimes(spec):
        names = re.findall(r'case (\w+):\n\s+return "(\w+)";', table(files, runtime))
        assert names
        assert all(
            case == runtimes.constant_name(Constant(text, 0, "", "")) for case, text in names
        )


def test_table_follows_spec_change(scratch: Scratch) -> None:
    scratch.replace("runtimes.yaml", "symbol: cuEventDestroy_v2", "symbol: cuEventDestroy_v3")
    scratch.replace("runtimes.yaml", "libcuda.so.1, libcuda.so]", "libcuda.so.2]")
    text = render_module(java, scratch.load())[f"{FOLDER}CudaTable.java"]
    assert 'LIBRARY.symbol("cuEventDestroy_v3", "ia");' in text
    assert 'new Library("CUDA driver API", List.of("libcuda.so.2"), List.of("nvcuda.dll"), ' in text


@pytest.mark.parametrize(
    ("name", "value", "type_", "expected"),
    [
        ("A", 2, "uint32", "static final int A = 2;"),
        ("A", -14, "cl_int", "static final int A = -14;"),
        ("A", 600, "CUresult", "static final int A = 600;"),
        ("A", 0x10000, "VkFlags", "static final int A = 0x10000;"),
        ("hipErrorNotReady", 1, "hipError_t", "static final int HIP_ERROR_NOT_READY = 1;"),
        ("B", 1, "CUstream", "static final long B = 1;"),
    ],
)
def test_constant_has_type(name: str, value: int, type_: str, expected: str) -> None:
    assert runtimes.constant_row(Constant(name, value, "", type_), {"CUstream"}) == expected
