"""Tests the computed layouts against Clang's, for every struct, target and language."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from conftest import ABI, REPOSITORY

from fletching_generator.cli import main
from fletching_generator.headers.facts import TARGETS, HeaderRecord, Run, extract
from fletching_generator.spec.layout import LAYOUT_CLASSES

HEADERS = {
    "upstream": ABI,
    "upstream-dlpack": Path(tvm_ffi.libinfo.find_dlpack_include_path()) / "dlpack" / "dlpack.h",
    "ours": REPOSITORY / "cpp" / "include" / "fletching" / "abi.h",
    "ours-dlpack": REPOSITORY / "cpp" / "include" / "fletching" / "dlpack.h",
}
# Hand-written, because the generated declarations must select the class of each target.
CLASSES = {
    "64bit": {
        "x86_64-linux-gnu",
        "aarch64-linux-gnu",
        "riscv64-linux-gnu",
        "powerpc64le-linux-gnu",
        "powerpc64-linux-gnu",
        "s390x-linux-gnu",
        "arm64-apple-macosx",
        "x86_64-pc-windows-msvc",
    },
    "32bit-align8": {
        "armv7-linux-gnueabihf",
        "wasm32-unknown-unknown",
        "mips-linux-gnu",
        "powerpc-linux-gnu",
        "riscv32-unknown-elf",
        "x86_64-linux-gnux32",
        "i686-pc-windows-msvc",
    },
    "32bit-align4": {"i686-linux-gnu", "i386-unknown-freebsd"},
}

Layouts = dict[str, Any]  # {"ArrowArray": {"size": 80, "align": 8, "fields": {...}}, ...}


@pytest.fixture(scope="module")
def computed() -> dict[str, Layouts]:
    """Returns the output of `fletching layout --json`, by class."""
    text = StringIO()
    with redirect_stdout(text):
        assert main(["--root", str(REPOSITORY), "layout", "--json"]) == 0
    layouts: dict[str, Layouts] = json.loads(text.getvalue())
    return layouts


@pytest.fixture(scope="module")
def clang() -> dict[tuple[str, str, str], Run]:
    """Returns Clang's runs, by header, language and target."""
    return {
        (name, run.language, run.target): run
        for name, header in HEADERS.items()
        for run in extract(header, ["c", "c++"], TARGETS)
    }


def test_every_target_has_one_layout_class() -> None:
    assert list(CLASSES) == [c.name for c in LAYOUT_CLASSES]
    assert sorted(t for targets in CLASSES.values() for t in targets) == sorted(TARGETS)


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("target", TARGETS)
def test_layout_matches_clang(
    target: str,
    language: str,
    header: str,
    computed: dict[str, Layouts],
    clang: dict[tuple[str, str, str], Run],
) -> None:
    expected = computed[next(name for name, targets in CLASSES.items() if target in targets)]
    run = clang[header, language, target]
    assert run.error_count == 0, run.diagnostics
    is_dlpack = header.endswith("dlpack")
    declared = [struct for struct in expected if struct.startswith("DL") == is_dlpack]
    assert len(declared) == 8
    assert {s: _layout(run.records[s]) for s in declared} == {s: expected[s] for s in declared}


@pytest.mark.parametrize("target", TARGETS)
def test_layout_class_has_sizes_of_target(
    target: str, clang: dict[tuple[str, str, str], Run]
) -> None:
    run = clang["upstream", "c", target]
    class_ = next(c for c in LAYOUT_CLASSES if target in CLASSES[c.name])
    assert (run.pointer_size, run.int64_align) == (class_.pointer_size, class_.int64_align)


def _layout(record: HeaderRecord) -> dict[str, Any]:
    fields = {f.name: {"offset": f.offset, "size": f.size} for f in record.fields}
    return {"size": record.size, "align": record.align, "fields": fields}
