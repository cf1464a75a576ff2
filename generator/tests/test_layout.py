"""Tests padding, leaves and the command `fletching layout`; test_targets.py tests the layouts."""

from __future__ import annotations

import json

import pytest
from conftest import Scratch

from fletching_generator.cli import main
from fletching_generator.spec.layout import LAYOUT_CLASSES, leaves, struct_layout
from fletching_generator.spec.model import Spec


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
    for name in ("runtimes", "async", "async-scenarios", "tensor-types"):
        (scratch.root / "spec" / f"{name}.yaml").write_text("spoiled", encoding="utf-8")
    assert main(["--root", str(scratch.root), "layout", "ArrowSchema"]) == 0, capsys.readouterr()
    assert main(["--root", str(scratch.root), "check-spec"]) == 1
