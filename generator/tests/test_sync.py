"""Tests `fletching sync`: adds new devices of a dlpack.h to the spec, and rejects other changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Scratch

from fletching_generator import generate
from fletching_generator.cli import main
from fletching_generator.headers.dlpack_version import spec_version

Sync = Callable[..., tuple[int, str]]


@pytest.fixture
def sync(scratch: Scratch, capsys: pytest.CaptureFixture[str]) -> Sync:
    """Runs the command on the scratch root; returns the exit code and the output."""

    def run(header: Path, *arguments: str) -> tuple[int, str]:
        code = main(["--root", str(scratch.root), "sync", str(header), *arguments])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


@pytest.fixture
def header(scratch: Scratch, tmp_path: Path) -> Callable[..., Path]:
    """Returns a dlpack.h with the spec's devices, plus additional or modified ones."""

    def make(*extra: str, replace: dict[str, str] | None = None) -> Path:
        lines = [f"{device.dlpack} = {device.value}," for device in scratch.load().devices]
        for old, new in (replace or {}).items():
            assert old in lines, old
            lines[lines.index(old)] = new
        path = tmp_path / "dlpack.h"
        body = "\n  ".join([*lines, *extra])
        path.write_text(
            "#include <stdint.h>\n#define DLPACK_MAJOR_VERSION 2\n#define DLPACK_MINOR_VERSION 5\n"
            "#ifdef __cplusplus\ntypedef enum : int32_t {\n#else\ntypedef enum {\n#endif\n"
            f"  {body}\n}} DLDeviceType;\n",
            encoding="utf-8",
        )
        return path

    return make


def devices(scratch: Scratch) -> str:
    return (scratch.root / "spec" / "devices.yaml").read_text(encoding="utf-8")


def test_sync_with_upstream_has_no_changes(sync: Sync, scratch: Scratch, dlpack: Path) -> None:
    before = devices(scratch)
    code, text = sync(dlpack)
    assert (code, devices(scratch)) == (0, before)
    assert "every device and every data-type code" in text


DEVICE_FILES = (
    "devices.go",
    "devices.rs",
    "devices.md",
    "DeviceType.java",
    "fletching/tables.hpp",
    "abi.py",
)


def test_sync_adds_new_device_once(
    sync: Sync, scratch: Scratch, header: Callable[..., Path]
) -> None:
    before = devices(scratch)
    new = header("kDLNextThing = 4242,", "kDLImplicit,", "kDLComputed = (1 << 13) + kDLCPU,")
    code, text = sync(new)
    assert code == 0, text
    assert "kDLNextThing = 4242 added to spec/devices.yaml as 'nextthing'" in text
    assert "kDLImplicit = 4243" in text and "kDLComputed = 8193" in text
    assert "declares no enum DLDataTypeCode: nothing of it was compared" in text
    assert "To be decided by a person" in text
    after = devices(scratch)
    assert after.startswith(before.rstrip("\n")), "what was there stays as it was"
    assert '    since: {dlpack: "2.5"}\n' in after
    assert sync(new)[0] == 0
    assert devices(scratch) == after
    for path, content in generate.render_all(scratch.load()).items():
        if path.endswith(DEVICE_FILES):
            assert "4242" in content and "nextthing" in content.lower(), path


def test_dry_run_writes_no_file(sync: Sync, scratch: Scratch, header: Callable[..., Path]) -> None:
    before = devices(scratch)
    code, text = sync(header("kDLNextThing = 4242,"), "--dry-run")
    assert code == 0
    assert "would be added" in text
    assert devices(scratch) == before


def test_sync_inserts_device_in_order(
    sync: Sync, scratch: Scratch, header: Callable[..., Path]
) -> None:
    whole = devices(scratch)
    start, end = whole.index("  - name: metal\n"), whole.index("  - name: vpi\n")
    (scratch.root / "spec" / "devices.yaml").write_text(
        whole[:start] + whole[end:], encoding="utf-8"
    )
    code, text = sync(header("kDLMetal = 8,"))
    assert code == 0, text
    names = re.findall(r"  - name: (\w+)", devices(scratch))
    assert names == re.findall(r"  - name: (\w+)", whole)


REFUSED = {
    "renumbered": (
        [],
        {"kDLMetal = 8,": "kDLMetal = 77,"},
        "kDLMetal: is 77, but the spec has it as 8",
    ),
    "removed": ([], {"kDLMetal = 8,": ""}, "kDLMetal: is not in the header, but the spec has it"),
    "two names for one number": (
        ["kDLA = 4242,", "kDLB = 4242,"],
        {},
        "kDLA: has the number 4242 of kDLB; hint: one number, one name",
    ),
    "the number of a known device": (
        [],
        {"kDLMetal = 8,": "kDLIron = 8,"},
        "kDLIron: has the number 8 of 'metal' in the spec",
    ),
    "a reserved value": (["kDLA = 5,"], {}, "kDLA: has the number 5, which is never assigned"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_sync_rejects_invalid_device_without_writing(
    name: str, sync: Sync, scratch: Scratch, header: Callable[..., Path]
) -> None:
    extra, replace, expected = REFUSED[name]
    path = header(*extra, replace=replace)
    before = devices(scratch)
    code, text = sync(path)
    assert code == 1
    assert expected in text
    assert devices(scratch) == before


def test_sync_rejects_value_outside_int32(
    sync: Sync, scratch: Scratch, header: Callable[..., Path]
) -> None:
    path = header("kDLA = 4294967296,")
    path.write_text(path.read_text(encoding="utf-8").replace(": int32_t", ": int64_t"))
    before = devices(scratch)
    code, text = sync(path)
    assert code == 1
    assert "4294967296 does not fit; hint: a device is of type int32" in text
    assert devices(scratch) == before


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("int a;\n", "not a dlpack.h: expected enum DLDeviceType"),
        ("typedef enum { kDLCPU = 1, } DLDeviceTyp\n", ": error: "),
    ],
)
def test_sync_rejects_other_header(
    content: str, expected: str, sync: Sync, scratch: Scratch, tmp_path: Path
) -> None:
    path = tmp_path / "other.h"
    path.write_text(content, encoding="utf-8")
    before = devices(scratch)
    code, text = sync(path)
    assert code == 2
    assert expected in text
    assert devices(scratch) == before


def test_sync_rejects_used_name(sync: Sync, scratch: Scratch, header: Callable[..., Path]) -> None:
    before = devices(scratch)
    code, text = sync(header("kDLCuda = 4242,"))
    assert code == 1
    assert "'cuda' is already the name of 'cuda'" in text
    assert devices(scratch) == before


# --- Data-type codes -----------------------------------------------------------------------------


@pytest.fixture
def upstream_with(dlpack: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """Returns upstream's header with one text replaced."""

    def make(old: str, new: str) -> Path:
        text = dlpack.read_text(encoding="utf-8")
        assert old in text, old
        path = tmp_path / "dlpack.h"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return path

    return make


def spec_texts(scratch: Scratch) -> dict[str, str]:
    return {p.name: p.read_text(encoding="utf-8") for p in (scratch.root / "spec").glob("*.yaml")}


LAST_CODE = "kDLFloat4_e2m1fn = 17U,"
MINOR = re.compile(r"(?<=#define DLPACK_MINOR_VERSION )\d+")


def newer(header: Path) -> Path:
    """Returns the header with the version of the next release."""
    text = header.read_text(encoding="utf-8")
    header.write_text(MINOR.sub(lambda found: str(int(found[0]) + 1), text), encoding="utf-8")
    return header


def test_sync_adds_new_codes_in_place_once(
    sync: Sync, scratch: Scratch, upstream_with: Callable[[str, str], Path]
) -> None:
    before = spec_texts(scratch)
    codes = "kDLWideFloat = 19, kDLPosit = (1 << 5) + kDLFloat,"
    new = newer(upstream_with(LAST_CODE, f"{LAST_CODE} {codes}"))
    code, text = sync(new)
    assert code == 0, text
    assert "kDLWideFloat = 19 added to spec/dlpack.yaml as 'wide_float', since DLPack 1." in text
    assert "kDLPosit = 34 added to spec/dlpack.yaml as 'posit'" in text
    assert "In spec/dlpack.yaml: is the label right" in text
    assert "In spec/devices.yaml" not in text
    after = spec_texts(scratch)
    changed = [name for name, content in after.items() if content != before[name]]
    assert changed == ["dlpack.yaml"]
    added = [line for line in after["dlpack.yaml"].splitlines() if "The DLPack type" in line]
    lines = after["dlpack.yaml"].splitlines()
    assert [line for line in lines if line not in added] == before["dlpack.yaml"].splitlines()
    assert all(re.search(r'since: "1\.\d+"', line) for line in added)
    assert sync(new)[0] == 0
    assert spec_texts(scratch) == after
    known = scratch.load().data_type_codes.enumerators
    assert [(c.label, c.value) for c in known[-2:]] == [("wide_float", 19), ("posit", 34)]


def test_new_codes_reach_every_language(
    sync: Sync, scratch: Scratch, upstream_with: Callable[[str, str], Path]
) -> None:
    assert sync(newer(upstream_with(LAST_CODE, f"{LAST_CODE} kDLWideFloat = 19,")))[0] == 0
    texts = generate.render_all(scratch.load())
    tables = re.compile(r"(data_type_codes\.(go|rs)|DataTypeCode\.java|tables\.hpp|abi\.py)$")
    found = [path for path, text in texts.items() if tables.search(path) and "wide_float" in text]
    assert len(found) == 5, found
    assert "kDLWideFloat = 19," in texts["cpp/include/fletching/dlpack.h"]
    assert re.search(
        r"#if DLPACK_MINOR_VERSION >= \d+\n(?:FLETCHING_ASSERT_VALUE\(\w+, \d+\);\n)*?"
        r"FLETCHING_ASSERT_VALUE\(kDLWideFloat, 19\);\n",
        texts["cpp/include/fletching/dlpack.h"],
    )


def test_sync_inserts_code_in_order(sync: Sync, scratch: Scratch, dlpack: Path) -> None:
    path = scratch.root / "spec" / "dlpack.yaml"
    whole = path.read_text(encoding="utf-8")
    # One entry of several lines and one of a single line.
    cut = re.sub(r"      - name: kDLOpaqueHandle\n(        .*\n)*", "", whole)
    cut = re.sub(r"      - {name: kDLBool,.*\n", "", cut)
    path.write_text(cut, encoding="utf-8")
    types = scratch.root / "spec" / "tensor-types.yaml"
    rows = types.read_text(encoding="utf-8")
    types.write_text(re.sub(r"  - {code: kDLBool,.*\n", "", rows), encoding="utf-8")
    assert sync(dlpack)[0] == 0
    values = sorted(code.value for code in scratch.load().data_type_codes.known)
    assert values == list(range(len(values)))
    labels = re.findall(r"label: (\w+)", path.read_text(encoding="utf-8"))
    assert labels == re.findall(r"label: (\w+)", whole)


REFUSED_CODES = {
    "renumbered": ("kDLBool = 6U", "kDLBool = 99U", "kDLBool: is 99, but the spec has it as 6"),
    "removed": ("kDLBool = 6U,", "", "kDLBool: is not in the header, but the spec has it as 6"),
    "two names for one number": (LAST_CODE, f"{LAST_CODE} kDLA = 17,", "has the number 17 of kDL"),
    "the number of a known code": ("kDLBool = 6U", "kDLTruth = 6U", "number 6 of 'bool' in the"),
    "outside uint8": (
        LAST_CODE,
        f"{LAST_CODE} kDLA = 256,",
        "256 does not fit; hint: a data-type code",
    ),
    "a label that is taken": (LAST_CODE, f"{LAST_CODE} kDLBOOL = 19,", "'bool' is a duplicate"),
}


@pytest.mark.parametrize("name", REFUSED_CODES)
def test_sync_rejects_invalid_code_without_writing(
    name: str, sync: Sync, scratch: Scratch, upstream_with: Callable[[str, str], Path]
) -> None:
    old, new, expected = REFUSED_CODES[name]
    before = spec_texts(scratch)
    header = upstream_with(old, new)
    # Another device is new: it is not written either.
    text = header.read_text(encoding="utf-8").replace(
        "kDLTrn = 18,", "kDLTrn = 18, kDLNext = 4242,"
    )
    header.write_text(text, encoding="utf-8")
    code, said = sync(header)
    assert code == 1
    assert expected in said
    assert spec_texts(scratch) == before


# --- DLPack's main branch ------------------------------------------------------------------------

MAIN = {
    "kDLTrn = 18,": "kDLTrn = 18, kDLTPU = 19, kDLTPUHost = 20, kDLAscend = 21,",
    LAST_CODE: f"{LAST_CODE} kDLBcomplex = 18U,",
}


@pytest.fixture
def main_header(dlpack: Path, tmp_path: Path) -> Callable[..., Path]:
    """Returns the header of DLPack's main branch: the last release's version, and new entries."""

    def make(**replaced: str) -> Path:
        text = dlpack.read_text(encoding="utf-8")
        for old, new in (MAIN | replaced).items():
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / "main.h"
        path.write_text(text, encoding="utf-8")
        return path

    return make


def test_sync_with_main_has_no_changes(
    sync: Sync, scratch: Scratch, main_header: Callable[..., Path]
) -> None:
    before = spec_texts(scratch)
    code, text = sync(main_header())
    assert (code, spec_texts(scratch)) == (0, before), text
    assert "every device and every data-type code" in text


def test_sync_reserves_new_numbers_of_main(
    sync: Sync, scratch: Scratch, main_header: Callable[..., Path]
) -> None:
    before = generate.render_all(scratch.load())
    header = main_header(
        kDLAscend="kDLMadeUp = 4242, kDLAscend", kDLBcomplex="kDLB = 200, kDLBcomplex"
    )
    code, text = sync(header)
    assert code == 0, text
    assert "kDLMadeUp = 4242 added to spec/devices.yaml as 'madeup', unreleased\n" in text
    assert "kDLB = 200 added to spec/dlpack.yaml as 'b', unreleased\n" in text
    assert "write 'since' in the place of 'unreleased'" in text
    spec = scratch.load()
    assert [d.name for d in spec.unreleased_devices] == ["tpu", "tpu_host", "ascend", "madeup"]
    assert not any(device.name == "madeup" for device in spec.devices)
    after = generate.render_all(spec)
    assert after["cpp/include/fletching/dlpack.h"] == before["cpp/include/fletching/dlpack.h"]
    assert '"unreleased(madeup, 4242)"' in after["cpp/include/fletching/tables.hpp"]
    assert sync(header)[0] == 0


def test_sync_with_release_completes_reserved_numbers(
    sync: Sync, scratch: Scratch, main_header: Callable[..., Path]
) -> None:
    code, text = sync(newer(main_header()))
    assert code == 0, text
    assert "kDLTPU = 19 completed in spec/devices.yaml as 'tpu', since DLPack 1." in text
    assert "kDLBcomplex = 18 completed in spec/dlpack.yaml as 'bcomplex', since DLPack 1." in text
    spec = scratch.load()
    assert (spec.unreleased_devices, spec.data_type_codes.unreleased) == ((), ())
    reserved = ("tpu", "tpu_host", "ascend")
    major, minor = spec_version(spec)
    since = {d.since_dlpack for d in spec.devices if d.name in reserved}
    assert since == {f"{major}.{minor + 1}"}
    texts = generate.render_all(spec)
    assert "kDLAscend = 21,\n" in texts["cpp/include/fletching/dlpack.h"]


OTHER_MEANINGS = {
    "kDLTPU = 40,": "kDLTPU: is 40, but the spec has it as 19; hint: correct the entry",
    "kDLMACA = 19,": "kDLMACA: has the number 19 of 'tpu' in the spec, which is reserved until",
}


@pytest.mark.parametrize("wrong", OTHER_MEANINGS)
def test_sync_rejects_other_meaning_of_reserved_number(
    wrong: str, sync: Sync, scratch: Scratch, upstream_with: Callable[[str, str], Path]
) -> None:
    before = spec_texts(scratch)
    code, text = sync(upstream_with("kDLTrn = 18,", f"kDLTrn = 18, {wrong}"))
    assert code == 1
    assert OTHER_MEANINGS[wrong] in text
    assert spec_texts(scratch) == before
