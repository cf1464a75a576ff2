"""Tests layouts against values measured with real compilers, for all three target classes."""

from __future__ import annotations

import json

import pytest
from conftest import Scratch

from fletching_generator.cli import main
from fletching_generator.spec.layout import LAYOUT_CLASSES, leaves, struct_layout
from fletching_generator.spec.model import Spec

# size, alignment: 64-bit; 32-bit with int64 aligned to 8; i386 System V
MEASURED = {
    "ArrowSchema": ((72, 8), (48, 8), (44, 4)),
    "ArrowArray": ((80, 8), (64, 8), (60, 4)),
    "ArrowDeviceArray": ((128, 8), (104, 8), (100, 4)),
    "ArrowArrayStream": ((40, 8), (20, 4), (20, 4)),
    "ArrowDeviceArrayStream": ((48, 8), (24, 4), (24, 4)),
    "ArrowAsyncTask": ((16, 8), (8, 4), (8, 4)),
    "ArrowAsyncProducer": ((40, 8), (20, 4), (20, 4)),
    "ArrowAsyncDeviceStreamHandler": ((48, 8), (24, 4), (24, 4)),
}


@pytest.mark.parametrize("name", MEASURED)
def test_size_and_alignment(name: str, spec: Spec) -> None:
    found = [struct_layout(spec, spec.struct(name), target) for target in LAYOUT_CLASSES]
    assert [(layout.size, layout.align) for layout in found] == list(MEASURED[name])


def test_device_array_offsets(spec: Spec) -> None:
    struct = spec.struct("ArrowDeviceArray")
    found = [struct_layout(spec, struct, target) for target in LAYOUT_CLASSES]
    offsets = [[field.offset for field in layout.fields] for layout in found]
    assert offsets == [[0, 80, 88, 96, 104], [0, 64, 72, 76, 80], [0, 60, 68, 72, 76]]


def test_padding(spec: Spec) -> None:
    wide, narrow, _ = (struct_layout(spec, spec.struct("ArrowArray"), t) for t in LAYOUT_CLASSES)
    assert (wide.tail_padding, narrow.tail_padding) == (0, 4)
    device = struct_layout(spec, spec.struct("ArrowDeviceArray"), LAYOUT_CLASSES[0])
    assert device.gap_before("sync_event") == 4


def test_leaves_include_fields_of_embedded_structs(spec: Spec) -> None:
    paths = [leaf.path for leaf in leaves(spec, spec.struct("ArrowDeviceArray"))]
    assert paths[0] == "array.length"
    assert paths[-4:] == ["device_id", "device_type", "sync_event", "reserved"]


def test_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "ArrowSchema", "--target", "32bit-align4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["32bit-align4"]["ArrowSchema"]["fields"]["flags"] == {"offset": 12, "size": 8}


@pytest.mark.parametrize("arguments", [["Nope"], ["--target", "pdp11"]])
def test_command_lists_valid_names(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["layout", *arguments]) == 2
    assert "use one of" in capsys.readouterr().err


def test_command_reads_declarations_only(
    scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("runtimes", "async", "async-scenarios", "cuda-array-interface"):
        (scratch.root / "spec" / f"{name}.yaml").write_text("spoiled", encoding="utf-8")
    assert main(["--root", str(scratch.root), "layout", "ArrowSchema"]) == 0, capsys.readouterr()
    assert main(["--root", str(scratch.root), "check-spec"]) == 1
