"""Tests the struct tables of Java's safe layer: all fields and callbacks, and shared runtimes."""

from __future__ import annotations

import re

import pytest

from fletching_generator.languages import java
from fletching_generator.languages.java import runtimes
from fletching_generator.languages.java.names import constant
from fletching_generator.reading.types import Callback
from fletching_generator.render import render_module
from fletching_generator.spec.model import Spec, Struct

FOLDER = "bindings/java/fletching/src/main/java/io/github/fletching/"
FAILURES = {"errno": "Failures.EIO", "NULL": "0", "nothing": "0"}


@pytest.fixture(scope="module")
def files(spec: Spec) -> dict[str, str]:
    found = render_module(java, spec)
    return {
        name: found[f"{FOLDER}{name}.java"]
        for name in ("Callback", "Fields", "CapturingCalls", "TensorTypes")
    }


def called(spec: Spec) -> list[Struct]:
    return [struct for struct in spec.structs if struct.name != "DLPackExchangeAPI"]


def test_fields_have_offsets(files: dict[str, str], spec: Spec) -> None:
    rows = re.findall(
        r'static final long (\w+) =\s+offset\(Offsets\.(\w+), "(\w+)"\);', files["Fields"]
    )
    assert [(struct, field) for _, struct, field in rows] == [
        (constant(struct.name), field.name) for struct in spec.structs for field in struct.fields
    ]
    assert len({name for name, _, _ in rows}) == len(rows), "no name twice"


def test_callbacks_have_signature_and_failure(files: dict[str, str], spec: Spec) -> None:
    rows = re.findall(
        r'  (\w+)\(\s*"(\w+)\.(\w+)",\s+"(\w+)",\s+([\w.]+),\s+Fields\.(\w+)\)[,;]',
        files["Callback"],
    )
    expected = []
    for struct in called(spec):
        for field in struct.callbacks:
            assert isinstance(field.type, Callback)
            assert field.contract is not None
            failure = FAILURES[str(field.contract.failure)]
            expected.append((struct.name, field.name, runtimes.signature(field.type), failure))
    assert [row[1:5] for row in rows] == expected
    assert all(row[0] == row[5] and row[0].endswith(f"_{row[2].upper()}") for row in rows)


def test_tensor_types_have_rows(files: dict[str, str], spec: Spec) -> None:
    text = re.sub(r"\s+", " ", files["TensorTypes"])
    rows = re.findall(
        r"new TensorType\( ?DataTypeCode\.(\w+), (\d+), (\d+), (\w+), \"([^\"]+)\", (\d+), (\d+),"
        r" ([^,]+), ([^,)]+)\)",
        text,
    )
    names = {code.name: code.label.upper() for code in spec.data_type_codes.enumerators}
    expected = []
    for row in spec.tensor_types.types:
        extension = row.extension or ("arrow.opaque" if row.type_name else None)
        texts = [f'"{each}"' if each else "null" for each in (extension, row.type_name)]
        numbers = (str(row.bits), str(row.lanes), str(row.padded).lower(), row.format)
        sizes = (str(row.part_bytes), str(row.parts))
        expected.append((names[row.code], *numbers, *sizes, *texts))
    assert rows == expected
    stored = re.findall(r'new Stored\("([^"]+)", (\d+), LOST_TIME\)', text)
    assert stored == [(row.format, str(row.bits)) for row in spec.tensor_types.as_storage]
    refused = re.findall(r'new Refused\( ?"([^"]+)", ("[^"]+"|OTHER)\)', text)
    assert refused == [
        *((format_, f'"{why}"') for format_, why in spec.tensor_types.refused),
        *((format_, "OTHER") for format_ in spec.tensor_types.others),
    ]


def test_capturing_calls_use_functions_of_runtime(files: dict[str, str], spec: Spec) -> None:
    for name, table, prefixes in (
        ("CUDA", "CudaTable", ("CU_", "CUDA_")),
        ("HIP", "HipTable", ("HIP_",)),
    ):
        values = re.search(
            rf"CapturingCalls {name} =\s+new CapturingCalls\(([^;]+)\);", files["CapturingCalls"]
        )
        assert values is not None
        names = re.findall(rf"{table}\.(\w+)", values[1])
        assert len(names) == values[1].count(",") - 2, "all but the three methods"
        assert all(value.startswith(prefixes) for value in names)
        fields = re.findall(r"  final (?:Symbol|int) (\w+);", files["CapturingCalls"])
        found = dict(zip(fields, names, strict=True))
        assert found["eventQuery"].endswith("_EVENT_QUERY")
        assert found["eventRecord"].endswith("_EVENT_RECORD")
        assert found["eventRecordWithFlags"].endswith("_EVENT_RECORD_WITH_FLAGS")
        assert found["implicitCapture"].endswith("_ERROR_STREAM_CAPTURE_IMPLICIT")
    assert "HipTable.HIP_EVENT_CREATE_WITH_FLAGS" in files["CapturingCalls"]
    assert "CudaTable.CU_EVENT_CREATE," in files["CapturingCalls"]
