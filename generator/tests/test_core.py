"""Tests of the core's tables, and of its bundle."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fletching_generator.core import bundle
from fletching_generator.errors import UsageError
from fletching_generator.languages.c import core
from fletching_generator.render import render
from fletching_generator.spec.model import Spec

ROOT = Path(__file__).resolve().parents[2]
TABLES = "cpp/core/tables"
RUST = "bindings/rust/fletching/core"


def _tables(spec: Spec) -> dict[str, str]:
    folder = ROOT / "generator/fletching_generator/languages/c/templates"
    return render(core.outputs(spec), core.FILTERS, folder)


def test_table_has_functions_of_runtime(spec: Spec) -> None:
    tables = _tables(spec)
    for runtime in spec.runtimes:
        if runtime.api != "c":
            continue
        rows = re.findall(r'^    \{"(\w+)",', tables[f"{TABLES}/{runtime.name}.h"], re.MULTILINE)
        assert rows == [function.symbol for function in core.called_functions(runtime)]
        assert rows
    assert "cuLaunchKernel" not in tables[f"{TABLES}/cuda.h"]


def test_core_uses_each_function_of_product(spec: Spec) -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "cpp/core").glob("*.h"))
    words = set(re.findall(r"\w+", re.sub(r"//.*", "", code)))
    called = {f.name for runtime in spec.runtimes for f in core.called_functions(runtime)}
    assert called - words == set()


def test_table_has_every_device_type(spec: Spec) -> None:
    text = _tables(spec)[f"{TABLES}/devices.h"]
    for device in spec.devices:
        case = f"case {device.arrow or device.value}:"
        assert f'{case}\n      return "{device.name}";' in text
        if device.runtime:
            group = text.split(f"return FLETCHING_RUNTIME_{device.runtime.upper()};")[0]
            assert case in group


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {Path(path).name: text for path, text in bundle.render(ROOT, {}).items()}


def test_bundle_copies_are_equal(files: dict[str, str]) -> None:
    copies = bundle.render(ROOT, {})
    assert {str(Path(path).parent) for path in copies} >= {"cpp/bundle", RUST}
    assert all(text == files[Path(path).name] for path, text in copies.items())


def test_bundle_contains_each_file_once(files: dict[str, str]) -> None:
    for path in [*(ROOT / "cpp/core").rglob("*.h"), ROOT / "cpp/include/fletching/events.h"]:
        title = f"--- {path.relative_to(ROOT)} ---"
        assert sum(text.count(title) for text in files.values()) == 1, title
    assert not re.search(r'^#include "(?!fletching_core.h)', "".join(files.values()), re.MULTILINE)


def test_bundle_renames_every_function(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    for prefix in ("", "-DFLETCHING_PREFIX=Mine_"):
        command = ["cc", "-std=c11", "-c", "fletching_core.c", "-o", "core.o", *prefix.split()]
        subprocess.run(command, cwd=tmp_path, check=True)
        names = subprocess.run(
            ["nm", "--defined-only", "--extern-only", "core.o"],
            cwd=tmp_path,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.split()[2::3]
        assert names
        start = "Mine_" if prefix else "Fletching"
        assert [name for name in names if not name.startswith(start)] == []


def test_bundle_reports_missing_file(tmp_path: Path) -> None:
    (tmp_path / "cpp/core").mkdir(parents=True)
    assert bundle.render(tmp_path, {}) == {}
    (tmp_path / "cpp/core/core.c").write_text('#include "none.h"\n', "utf-8")
    with pytest.raises(UsageError, match=r"fletching/cuda\.h: not found"):
        bundle.render(tmp_path, {})
