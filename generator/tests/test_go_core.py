"""Tests the core's names in the Go module, and the runtime of each device type."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import Scratch

from fletching_generator.core import bundle
from fletching_generator.languages import go
from fletching_generator.render import render_module
from fletching_generator.spec.model import Spec

ROOT = Path(__file__).resolve().parents[2]
CORE = "bindings/go/core.go"
STUBS = "bindings/go/abi/callbacks/stubs.go"


def test_module_has_bundle_files() -> None:
    files = bundle.render(ROOT, {})
    for name in ("fletching_core.c", "fletching_core.h"):
        assert files[f"bindings/go/{name}"] == files[f"cpp/bundle/{name}"]


def test_every_c_name_contains_version(scratch: Scratch) -> None:
    scratch.replace("project.yaml", "\nversion: ", "\nversion: 1.20.3 # ")
    texts = render_module(go, scratch.load())
    prefix = "fletching_go_v1_20_3_"
    assert f"// #cgo CFLAGS: -DFLETCHING_PREFIX={prefix}\n" in texts[CORE]
    for path in (CORE, STUBS):
        exported = re.findall(r"^//export (\w+)$", texts[path], re.MULTILINE)
        assert exported
        assert [name for name in exported if not name.startswith(prefix)] == []


def test_runtime_case_has_every_device(spec: Spec) -> None:
    text = render_module(go, spec)[CORE]
    cases = re.findall(r"case (.+):\n\t\treturn C.FLETCHING_RUNTIME_(\w+)", text)
    found = {name.lower(): devices.count("abi.Device") for devices, name in cases}
    expected = [device.runtime for device in spec.devices if device.runtime]
    assert found == {name: expected.count(name) for name in expected}
