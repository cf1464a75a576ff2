"""Tests `fletching check-header`: differences between a header and the spec, as text, per
target."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ABI, PINNED_DLPACK, REPOSITORY

from fletching_generator.cli import main
from fletching_generator.headers.facts import TARGETS
from fletching_generator.spec.layout import LAYOUT_CLASSES

OURS = REPOSITORY / "cpp" / "include" / "fletching" / "abi.h"
EACH_LAYOUT_CLASS = (
    "x86_64-linux-gnu,aarch64-linux-gnu,armv7-linux-gnueabihf,i686-linux-gnu,i386-unknown-freebsd"
)
ONE_TARGET = ("--targets", "x86_64-linux-gnu")

Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs the command; returns the exit code and the output."""

    def run(header: Path, *arguments: str) -> tuple[int, str]:
        code = main(["--root", str(REPOSITORY), "check-header", str(header), *arguments])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., Path]:
    """Returns a modified copy of the generated header, without its assertions."""

    def make(*changes: tuple[str, str]) -> Path:
        text = OURS.read_text(encoding="utf-8")
        start, end = text.index("// Assertions for"), text.rindex("#ifdef __cplusplus")
        text = text[:start] + text[end:]
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / "copy.h"
        path.write_text(text, encoding="utf-8")
        return path

    return make


def the_header(text: str) -> dict[str, Any]:
    """Returns the only header of the JSON."""
    whole = json.loads(text)
    (header,) = whole["headers"]
    assert header["ok"] == whole["ok"]
    return dict(header)


def test_targets_cover_every_layout_class_windows_and_big_endian() -> None:
    assert len(TARGETS) >= 12
    assert any("windows" in target for target in TARGETS)
    assert any(target.startswith(("s390x", "mips-", "powerpc-")) for target in TARGETS)


@pytest.mark.parametrize("header", [OURS, ABI], ids=["ours", "upstream"])
def test_valid_headers_agree_on_all_targets(header: Path, check: Check) -> None:
    code, text = check(header)
    assert code == 0, text
    assert f"read as c and c++ on {len(TARGETS)} targets" in text
    assert text.count(": agrees\n") == 5
    assert "note" not in text


def test_header_with_leading_dash_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "-abi.h").write_bytes(ABI.read_bytes())
    monkeypatch.chdir(tmp_path)
    command = ["--root", str(REPOSITORY), "check-header", "./-abi.h"]
    assert main([*command, *ONE_TARGET]) == 0


CPU = "#define ARROW_DEVICE_CPU 1\n//"
CANCEL = "  void (*cancel)"

CHANGES = {
    "swapped fields": (
        [
            ("int64_t device_id;", "PLACE;"),
            ("void* sync_event;", "int64_t device_id;"),
            ("PLACE;", "void* sync_event;"),
        ],
        "error: copy.h:{line}: ArrowDeviceArray.sync_event is at offset 80, the specification has "
        "it at 96 (on 64-bit targets)",
    ),
    "missing field": (
        [("  int64_t null_count;\n", "")],
        "ArrowArray.null_count is missing",
    ),
    "extra field": (
        [(CANCEL, f"  void (*stop)(struct ArrowAsyncProducer* self);\n{CANCEL}")],
        "ArrowAsyncProducer.stop is not a field of the specification",
    ),
    "narrow field in padding": (
        [("ArrowDeviceType device_type;\n  // NULL", "int16_t device_type;\n  // NULL")],
        "ArrowDeviceArray.device_type has type 'int16', the specification says 'ArrowDeviceType'",
    ),
    "changed signature": (
        [("self, int64_t n)", "self, int n)")],
        "ArrowAsyncProducer.request has signature 'callback(ArrowAsyncProducer*, int) -> void'",
    ),
    "wrong macro": (
        [("ARROW_DEVICE_METAL 8", "ARROW_DEVICE_METAL 9")],
        "ARROW_DEVICE_METAL is 9, the specification says 8",
    ),
    "macro with a reserved value": (
        [(CPU, f"#define ARROW_DEVICE_X 5\n{CPU}")],
        "ARROW_DEVICE_X is 5, a number that is never assigned",
    ),
    "macro with the number of another": (
        [(CPU, f"#define ARROW_DEVICE_X 8\n{CPU}")],
        "ARROW_DEVICE_X is 8, the number of 'metal'",
    ),
    "missing guard": (
        [
            ("#ifndef ARROW_C_STREAM_INTERFACE", "#if 1"),
            ("#define ARROW_C_STREAM_INTERFACE", ""),
        ],
        "ARROW_C_STREAM_INTERFACE 'ArrowArrayStream' is not inside this canonical guard",
    ),
    "changed guard": (
        [("ARROW_C_STREAM_INTERFACE", "ARROW_C_STREAMS")],
        "is not inside this canonical guard; it is under ARROW_C_STREAMS",
    ),
    "closed enum": (
        [("typedef int32_t ArrowDeviceType;", "typedef enum { kFirst = 1 } ArrowDeviceType;")],
        "ArrowDeviceType is a closed enum: expected int32",
    ),
    "something else of the same name": (
        [
            ("  int (*extract_data)", "  int (*run)"),
            (
                "  // Reserved for the producer. extract_data frees it.\n  void* private_data;\n",
                "",
            ),
        ],
        "ArrowAsyncTask is something else: it has none of the fields of the specification",
    ),
    "packed": (
        [("struct ArrowDeviceArray {", "struct __attribute__((packed)) ArrowDeviceArray {")],
        "ArrowDeviceArray is packed",
    ),
    "packed without a field that moves": (
        [("struct ArrowAsyncTask {", "struct __attribute__((packed)) ArrowAsyncTask {")],
        "ArrowAsyncTask is aligned to 1 bytes, the specification says 8 (on 64-bit targets)",
    ),
    "aligned too far": (
        [("struct ArrowDeviceArray {", "struct __attribute__((aligned(16))) ArrowDeviceArray {")],
        "ArrowDeviceArray is aligned to 16 bytes, the specification says 8 "
        "(on all targets but i686-linux-gnu, i386-unknown-freebsd)",
    ),
    "bit-field in padding": (
        [
            (
                "ArrowDeviceType device_type;\n  // NULL",
                "ArrowDeviceType device_type : 16;\n  // NULL",
            )
        ],
        "ArrowDeviceArray.device_type is a bit-field of 16 bits, the specification has none",
    ),
    "second struct outside the guard": (
        [("struct ArrowArray {", "#endif\n#if 1\nstruct ArrowArray {")],
        "ARROW_C_DATA_INTERFACE 'ArrowArray' is not inside this canonical guard",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_reports_difference(name: str, check: Check, copy: Callable[..., Path]) -> None:
    changes, expected = CHANGES[name]
    header = copy(*changes)
    code, text = check(header, "--targets", EACH_LAYOUT_CLASS)
    assert code == 1, text
    lines = header.read_text(encoding="utf-8").splitlines()
    line = next((i for i, s in enumerate(lines, 1) if "void* sync_event;" in s), 0)
    assert expected.format(line=line) in text, text


def test_error_on_one_layout_class_names_targets(check: Check, copy: Callable[..., Path]) -> None:
    header = copy(("  int64_t device_id;", "  int64_t device_id __attribute__((aligned(8)));"))
    code, text = check(header)
    assert code == 1
    assert "(on i686-linux-gnu, i386-unknown-freebsd)" in text
    assert "64-bit" not in text


def test_reports_macros_hidden_by_other_copy(check: Check, tmp_path: Path) -> None:
    first = tmp_path / "first.h"
    first.write_text(
        "#include <stdint.h>\n#ifndef ARROW_C_DEVICE_DATA_INTERFACE\n"
        "#define ARROW_C_DEVICE_DATA_INTERFACE\ntypedef int32_t ArrowDeviceType;\n"
        "#define ARROW_DEVICE_CPU 1\n#endif\n",
        encoding="utf-8",
    )
    header = tmp_path / "second.h"
    header.write_text(f'#include "first.h"\n#include "{ABI}"\n', encoding="utf-8")
    code, text = check(header, "--interface", "c-device-data")
    assert code == 1
    assert (
        "ARROW_DEVICE_METAL is hidden: another copy, included before, has defined the guard "
        "ARROW_C_DEVICE_DATA_INTERFACE" in text
    )


def test_difference_in_included_file_names_file(
    check: Check, copy: Callable[..., Path], tmp_path: Path
) -> None:
    part = copy(("int64_t null_count;", "int32_t null_count;"))
    line = 1 + part.read_text(encoding="utf-8").splitlines().index("  int32_t null_count;")
    header = tmp_path / "whole.h"
    header.write_text('#include "copy.h"\n', encoding="utf-8")
    code, text = check(header, *ONE_TARGET)
    assert code == 1
    assert f"error: {part}:{line}: ArrowArray.null_count has type 'int32'" in text
    findings = the_header(check(header, "--json", *ONE_TARGET)[1])["findings"]
    assert {(f["file"], f["line"]) for f in findings if "type" in f["text"]} == {(str(part), line)}


def test_guard_applies_in_file_and_around_include(check: Check, tmp_path: Path) -> None:
    structs = ABI.read_text(encoding="utf-8")
    guard = "ARROW_C_STREAM_INTERFACE"
    part = tmp_path / "part.h"
    part.write_text(
        structs.replace(f"#ifndef {guard}", "#if 1").replace(f"#define {guard}", ""),
        encoding="utf-8",
    )
    header = tmp_path / "whole.h"
    around = f'#ifndef {guard}\n#define {guard}\n#include "part.h"\n#endif\n'
    header.write_text(around, encoding="utf-8")
    assert check(header, "--interface", "c-stream")[0] == 0
    # An unrelated guard that spans many lines of another file.
    header.write_text('#include "part.h"\n' + "\n" * 500, encoding="utf-8")
    code, text = check(header, "--interface", "c-stream")
    assert code == 1
    assert "'ArrowArrayStream' is not inside this canonical guard" in text


STREAM = """\
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema*);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
"""
DEFINE = "#define G\n"

GUARDED = {
    "ifndef": f"#ifndef G\n{DEFINE}{STREAM}#endif\n",
    "if not defined": f"#if !defined(G)\n{DEFINE}{STREAM}#endif\n",
    "without parentheses": f"#if !defined G\n{DEFINE}{STREAM}#endif\n",
    "not around defined": f"#if !(defined G)\n{DEFINE}{STREAM}#endif\n",
    "and a macro of the project": f"#if !defined(G) && !defined(OWN)\n{DEFINE}{STREAM}#endif\n",
    "else of ifdef": f"#ifdef G\n#else\n{DEFINE}{STREAM}#endif\n",
    "elif": f"#if defined(OWN)\n#elif !defined(G)\n{DEFINE}{STREAM}#endif\n",
    "compared with 0": f"#if defined(G) == 0\n{DEFINE}{STREAM}#endif\n",
    "defined at the end": f"#ifndef G\n{STREAM}{DEFINE}#endif\n",
    "defined after a declaration": f"#ifndef G\nstruct Other;\n{DEFINE}{STREAM}#endif\n",
    "defined behind the guard": f"#ifndef G\n{STREAM}#endif\n#ifndef G\n{DEFINE}#endif\n",
    "in a guard of the project": f"#ifndef OWN\n#define OWN\n#ifndef G\n{DEFINE}{STREAM}#endif\n"
    "#endif\n",
    "by a macro that is derived": f"#ifdef G\n#define HAS 1\n#else\n#define HAS 0\n#endif\n"
    f"#if !HAS\n{DEFINE}{STREAM}#endif\n",
}
AGAIN = "'ArrowArrayStream' is not inside this canonical guard"
UNDEFINED = "'ArrowArrayStream' is inside this canonical guard, which nothing defines"
UNGUARDED = {
    "no guard": (STREAM, AGAIN),
    "defined without a test": (f"{DEFINE}{STREAM}", AGAIN),
    "a guard of the project alone": (f"#ifndef OWN\n#define OWN\n{DEFINE}{STREAM}#endif\n", AGAIN),
    "or a macro of the project": (
        f"#if !defined(G) || !defined(OWN)\n{DEFINE}{STREAM}#endif\n",
        AGAIN,
    ),
    "tested and closed again": (f"#ifndef G\n{DEFINE}#endif\n{STREAM}", AGAIN),
    "never defined": (f"#ifndef G\n{STREAM}#endif\n", UNDEFINED),
    "undefined again": (f"#ifndef G\n{DEFINE}{STREAM}#endif\n#undef G\n", UNDEFINED),
}


def check_stream(check: Check, header: Path, text: str) -> tuple[int, str]:
    """Uses a single target, to keep the tests fast."""
    header.write_text(re.sub(r"\bG\b", "ARROW_C_STREAM_INTERFACE", text), encoding="utf-8")
    return check(header, "--interface", "c-stream", *ONE_TARGET)


@pytest.mark.parametrize("style", GUARDED)
def test_accepts_guard_in_any_style(style: str, check: Check, tmp_path: Path) -> None:
    code, text = check_stream(check, tmp_path / "copy.h", GUARDED[style])
    assert (code, text.count("c-stream: agrees\n")) == (0, 1), text


@pytest.mark.parametrize("style", UNGUARDED)
def test_rejects_copy_without_working_guard(style: str, check: Check, tmp_path: Path) -> None:
    body, expected = UNGUARDED[style]
    code, text = check_stream(check, tmp_path / "copy.h", body)
    assert code == 1
    assert f"ARROW_C_STREAM_INTERFACE {expected}" in text


def test_copy_in_namespace_names_namespace(check: Check, tmp_path: Path) -> None:
    inner = "struct ArrowSchema;\nstruct ArrowArray;\n"
    body = f"namespace their {{ namespace abi {{\n{inner}{GUARDED['ifndef']}}} }}\n"
    code, text = check_stream(check, tmp_path / "copy.hpp", body)
    assert code == 1
    assert (
        "ArrowArrayStream is in the namespace 'their::abi', and another type than the one of C; "
        "declare it outside of every namespace" in text
    )
    assert text.count("error: ") == 1, text
    wrong = body.replace("void* private_data;", "int private_data;")
    text = check_stream(check, tmp_path / "copy.hpp", wrong)[1]
    assert "ArrowArrayStream.private_data has type 'int'" in text


@pytest.mark.parametrize(
    "content", ["", "struct Other { int a; };\n", "struct MyArrowArray { int64_t length; };\n"]
)
def test_rejects_header_without_comparable_declarations(
    content: str, check: Check, tmp_path: Path
) -> None:
    header = tmp_path / "nothing.h"
    header.write_text(f"#include <stdint.h>\n{content}", encoding="utf-8")
    code, text = check(header, *ONE_TARGET)
    assert code == 2
    assert text.count(": not declared\n") == 6
    assert "nothing was compared: is it the right file" in text
    assert the_header(check(header, *ONE_TARGET, "--json")[1])["ok"] is False


@pytest.mark.parametrize(
    ("macro", "code", "expected"),
    [
        ("ARROW_DEVICE_NOVA 2", 1, "ARROW_DEVICE_NOVA is 2, the number of 'cuda'"),
        ("ARROW_DEVICE_NOVA 20", 0, "is 20; the specification has it on DLPack's main branch only"),
        ("ARROW_DEVICE_NOVA 4290", 0, "is 4290; the specification does not know this device"),
    ],
)
def test_compares_single_device_macro(
    macro: str, code: int, expected: str, check: Check, tmp_path: Path
) -> None:
    header = tmp_path / "nova.h"
    header.write_text(f"#define {macro}\n", encoding="utf-8")
    found, text = check(header, *ONE_TARGET)
    assert found == code
    assert expected in text
    assert "is not declared, though" not in text


def test_rejects_absence_of_requested_interface(check: Check) -> None:
    one = [*ONE_TARGET, "--interface", "dlpack"]
    both = [*one, "--interface", "c-data"]
    code, text = check(ABI, *both)
    assert code == 1
    assert "dlpack: not declared, though asked for by name" in text
    assert the_header(check(ABI, *both, "--json")[1])["ok"] is False
    assert check(ABI, *one)[0] == 2


def test_rejects_empty_list_of_languages(check: Check) -> None:
    code, text = check(ABI, "--as", "")
    assert (code, text) == (2, "fletching: --as takes c or c++, not ''\n")


def test_missing_and_newer_devices_are_notes(check: Check, copy: Callable[..., Path]) -> None:
    define, ifndef = "#define ARROW_DEVICE_HEXAGON 16\n", "#ifndef ARROW_DEVICE_HEXAGON\n"
    header = copy((define, ""), (ifndef + "#endif\n", "#define ARROW_DEVICE_NEXT 4299\n"))
    code, text = check(header)
    assert code == 0
    assert "note: lags behind the specification by ARROW_DEVICE_HEXAGON" in text
    assert "ARROW_DEVICE_NEXT is 4299; the specification does not know this device" in text


def test_reports_numbers_under_other_names(
    check: Check, copy: Callable[..., Path], tmp_path: Path
) -> None:
    header = tmp_path / "dlpack.h"
    text = PINNED_DLPACK.read_text(encoding="utf-8")
    assert "  kDLMetal = 8,\n" in text
    more = "  kDLA = 5,\n  kDLB = 8,\n  kDLC = 4299,\n"
    header.write_text(text.replace("  kDLMetal = 8,\n", "  kDLMetal = 8,\n" + more), "utf-8")
    code, text = check(header, *ONE_TARGET)
    assert code == 1
    assert "kDLA is 5, a number that is never assigned" in text
    assert "kDLB is 8, the number of kDLMetal" in text
    assert "kDLC is 4299; the specification does not know it" in text
    code, text = check(copy((CPU, f"#define ARROW_DEVICE_MAIA 17\n{CPU}")), *ONE_TARGET)
    assert code == 0
    assert "ARROW_DEVICE_MAIA is 17; the specification has it in DLPack only, as 'maia'" in text
    code, text = check(copy((CPU, f"#define ARROW_DEVICE_TPU 19\n{CPU}")), *ONE_TARGET)
    assert code == 0
    assert "ARROW_DEVICE_TPU is 19; the specification has it on DLPack's main branch only" in text


def test_numbers_of_dlpack_main_and_forks(check: Check, tmp_path: Path) -> None:
    header = tmp_path / "dlpack.h"
    text = PINNED_DLPACK.read_text(encoding="utf-8")
    header.write_text(text.replace("  kDLTrn = 18,", "  kDLTrn = 18, kDLTPUHost = 20,"), "utf-8")
    code, said = check(header)
    assert code == 0, said
    note = "note: dlpack.h:115: kDLTPUHost is 20; DLPack's main branch has it, and no release does"
    assert note in re.sub(r":\d+:", ":115:", said)
    more = "  kDLTrn = 18, kDLMACA = 19, kDLMACAHost = 22, kDLTPUHost = 23,"
    header.write_text(text.replace("  kDLTrn = 18,", more), "utf-8")
    code, said = check(header)
    assert code == 1
    assert (
        "kDLMACA is 19, the number of kDLTPU on DLPack's main branch, which no release has yet; "
        "MetaX's fork of DLPack has it so" in said
    )
    assert "kDLMACAHost is 22; the specification does not know it\n" in said
    assert "kDLTPUHost is 23; DLPack's main branch has it as 20, and no release does" in said


def test_json_lists_differences(check: Check, copy: Callable[..., Path]) -> None:
    header = copy(("ARROW_DEVICE_METAL 8", "ARROW_DEVICE_METAL 9"))
    code, text = check(header, "--json", "--as", "c", "--targets", "s390x-linux-gnu")
    assert code == 1
    found = the_header(text)
    assert found["ok"] is False
    assert found["runs"] == [{"language": "c", "target": "s390x-linux-gnu"}]
    assert found["findings"][0]["subject"] == "ARROW_DEVICE_METAL"


def test_reads_cpp_header_as_cpp(check: Check, tmp_path: Path) -> None:
    header = tmp_path / "only.hpp"
    header.write_text(f'namespace a {{ class B; }}\n#include "{ABI}"\n', encoding="utf-8")
    code, text = check(header)
    assert code == 0
    assert f"read as c++ on {len(TARGETS)} targets" in text


def test_reads_every_layout_class(check: Check) -> None:
    _, text = check(OURS, "--json")
    targets = {run["target"] for run in the_header(text)["runs"]}
    assert targets == set(TARGETS)
    assert len(LAYOUT_CLASSES) == 3
