"""Tests of the Java structs: results after an exception, releases, moves and counts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fletching_generator.languages import java
from fletching_generator.languages.java.callbacks import failure, reporter
from fletching_generator.languages.java.docs import ARGUMENTS
from fletching_generator.languages.java.names import field_type, from_memory, singular, to_memory
from fletching_generator.reading.types import Callback, Scalar, Typedef
from fletching_generator.render import render_module
from fletching_generator.spec import operations
from fletching_generator.spec.model import Field, Spec, Struct

ENGINES = ("jna", "ffm")
EXPECTED = {"errno": "Failures.EIO", -1: "-1", "NULL": "null", "nothing": "null"}


@pytest.fixture(scope="module")
def texts(spec: Spec) -> dict[tuple[str, str], str]:
    """Returns the main file of every struct, by engine and struct."""
    found = {}
    for path, text in render_module(java, spec).items():
        parts = re.fullmatch(r".*/fletching-(jna|ffm)/src/main/.*/(\w+)\.java", path)
        if parts:
            found[parts[1], parts[2]] = text
    return found


def callbacks(spec: Spec) -> list[tuple[Struct, Field]]:
    return [(struct, field) for struct in spec.structs for field in struct.callbacks]


def test_stubs_return_failure_of_contract(texts: dict[tuple[str, str], str], spec: Spec) -> None:
    assert {field.contract.failure for _, field in callbacks(spec) if field.contract} == {*EXPECTED}
    for struct, field in callbacks(spec):
        assert field.contract is not None
        expected = EXPECTED[field.contract.failure]
        name = re.escape(f'"{struct.name}.{field.name}"')
        ffm = re.search(rf"Abi\.stub\(\s*{name},\s*([\w.-]+),", texts["ffm", struct.name])
        assert ffm is not None, name
        assert ffm[1] == expected
        if field.contract.failure == "nothing":
            assert re.search(rf"Abi\.voidStub\(\s*{name},", texts["jna", struct.name]), name
            continue
        jna = re.search(rf"Abi\.stub\(\s*{name},\s*[\w.]+,\s*([\w.-]+),", texts["jna", struct.name])
        assert jna is not None, name
        assert jna[1] == expected


def test_other_contract_returns_other_value(spec: Spec) -> None:
    field = next(f for _, f in callbacks(spec) if f.contract and f.contract.failure == "errno")
    assert field.contract is not None
    assert failure(field) == "Failures.EIO"
    assert failure(replace(field, contract=replace(field.contract, failure=-1))) == "-1"


def test_only_allocator_reports_by_parameter(spec: Spec) -> None:
    reporting = {field.name: reporter(field) for _, field in callbacks(spec) if reporter(field)}
    assert reporting == {"managed_tensor_allocator": "setError, errorCtx"}


def test_arguments_have_texts(spec: Spec) -> None:
    types = [field.type for _, field in callbacks(spec)]
    names = {a.name for t in types if isinstance(t, Callback) for a in t.arguments}
    assert names - {"self", "out"} == {*ARGUMENTS}


@pytest.mark.parametrize("engine", ENGINES)
def test_structs_filled_by_producer_have_move(
    engine: str, texts: dict[tuple[str, str], str], spec: Spec
) -> None:
    moved = {s.name for s in spec.structs if "static void move(" in texts[engine, s.name]}
    assert moved == {
        "ArrowSchema",
        "ArrowArray",
        "ArrowDeviceArray",
        "ArrowArrayStream",
        "ArrowDeviceArrayStream",
    }
    last = {s.name: field.name for s in spec.structs if (field := operations.last_call(spec, s))}
    assert last["ArrowAsyncTask"] == "extract_data"
    assert last["DLManagedTensor"] == "deleter"
    assert "ArrowAsyncProducer" not in last
    installed = {s.name for s in spec.structs if "void install(" in texts[engine, s.name]}
    assert installed == {*last, "ArrowAsyncProducer"}


def test_unsigned_values_are_widened() -> None:
    byte, word, long = Scalar("uint8"), Typedef("Flags", Scalar("uint32")), Scalar("uint64")
    assert [field_type(t, "ffm") for t in (byte, word, long)] == ["int", "long", "long"]
    assert from_memory(byte, "x") == "Byte.toUnsignedInt(x)"
    assert to_memory(word, "S.f") == '(int) Checks.unsigned(value, 32, "S.f")'
    assert (from_memory(long, "x"), to_memory(long, "S.f")) == ("x", "value")


def test_list_entries_have_singular_names() -> None:
    assert [singular(n) for n in ("children", "buffers", "shape")] == ["child", "buffer", "shape"]
