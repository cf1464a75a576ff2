"""Tests the command line of `fletching`: version, root, help, exit codes, JSON, colors, a closed
pipe."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ABI, PINNED_DLPACK, REPOSITORY, Scratch

from fletching_generator import terminal
from fletching_generator.cli import main
from fletching_generator.spec.model import Spec


def test_version_matches_spec(spec: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(REPOSITORY), "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"fletching {spec.project.version}\n"


def test_root_is_accepted_before_and_after_command(
    scratch: Scratch, dlpack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, root = str(dlpack), ["--root", str(scratch.root)]
    assert main([*root, "sync", header, "--dry-run"]) == 0
    assert main(["sync", header, "--dry-run", *root]) == 0
    assert main(["sync", *root, header, "--dry-run"]) == 0
    assert main(["--root", "/nowhere", "sync", *root, header, "--dry-run"]) == 0
    capsys.readouterr()
    empty = tmp_path / "empty"
    (empty / "spec").mkdir(parents=True)
    assert main(["check-spec", "--root", str(empty)]) == 1
    assert "spec/project.yaml:1: (whole file): the file is missing" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check-spec", "layout", "devices"])
def test_root_without_spec_could_not_run(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for root in ("/nowhere", str(tmp_path)):
        assert main([command, "--root", root]) == 2
        expected = f"fletching: --root: {root}: expected a folder with spec/, got none\n"
        assert capsys.readouterr().err == expected


def test_invalid_spec_determines_exit_code(scratch: Scratch, dlpack: Path) -> None:
    """check-spec reports the mistake, and the other commands do not run because of it."""
    scratch.replace("devices.yaml", "value: 13", "value: thirteen")
    root = ["--root", str(scratch.root)]
    assert main(["check-spec", *root]) == 1
    for command in (["generate"], ["layout"], ["check-header", str(ABI)], ["sync", str(dlpack)]):
        assert main([*command, *root]) == 2, command


def test_closed_output_pipe_ends_command_silently() -> None:
    command = [sys.executable, "-m", "fletching_generator.cli", "layout", "--json"]
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        done = subprocess.run(
            command, cwd=REPOSITORY, stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (2, b"")


COMMANDS = (
    "generate",
    "traces",
    "check-spec",
    "layout",
    "check-header",
    "sync",
    "devices",
    "validate",
)
ONE_TARGET = ("--targets", "x86_64-linux-gnu")


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_description_and_exit_codes(
    command: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert re.search(r"\n\n[A-Z][^:]+\.\n\n", shown)
    assert "exit codes:\n  0  " in shown and "\n  2  could not run" in shown
    assert ("--json" in shown) == (command is not None)


def test_several_headers_have_verdicts_and_the_worst_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, nothing, absent = tmp_path / "wrong.h", tmp_path / "nothing.h", tmp_path / "absent.h"
    text = ABI.read_text(encoding="utf-8")
    assert "int64_t null_count;" in text
    wrong.write_text(text.replace("int64_t null_count;", "int32_t null_count;"), encoding="utf-8")
    nothing.write_text("int x;\n", encoding="utf-8")

    def check(*headers: Path) -> int:
        return main(["check-header", *map(str, headers), *ONE_TARGET])

    assert check(ABI, PINNED_DLPACK) == 0
    assert "2 headers: 2 agree, 0 differ, 0 not compared\n" in capsys.readouterr().out
    assert check(wrong, ABI) == 1
    assert "2 headers: 1 agree, 1 differ, 0 not compared\n" in capsys.readouterr().out
    assert check(absent, wrong, nothing, ABI) == 2
    captured = capsys.readouterr()
    assert captured.err == f"fletching: cannot read {absent}: No such file or directory\n"
    assert f"{wrong}: read as c and c++ on 1 target\n  c-data: 1 error\n" in captured.out
    assert captured.out.endswith("4 headers: 1 agree, 1 differ, 2 not compared\n")
    assert main(["check-header", str(absent), str(wrong), *ONE_TARGET, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["headers"][0] == {
        "file": str(absent),
        "ok": False,
        "error": f"cannot read {absent}: No such file or directory",
    }
    assert found["headers"][1]["error"] is None and found["headers"][1]["findings"]


def test_dash_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "inner.h").write_bytes(ABI.read_bytes())
    monkeypatch.chdir(tmp_path)

    def check(text: bytes, *more: str) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        return main(["check-header", "--root", str(REPOSITORY), "-", *more, *ONE_TARGET])

    assert check(b'#include "inner.h"\n') == 0
    assert capsys.readouterr().out.startswith("<stdin>: read as c and c++ on 1 target\n")
    text = ABI.read_bytes().replace(b"int64_t null_count;", b"int32_t null_count;")
    line = 1 + text.splitlines().index(b"  int32_t null_count;")
    assert check(text) == 1
    place = f"error: <stdin>:{line}: ArrowArray.null_count has type 'int32'"
    assert place in capsys.readouterr().out
    assert check(b"struct {\n", str(ABI)) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("fletching: <stdin> has ")
    assert captured.out.endswith("2 headers: 1 agree, 0 differ, 1 not compared\n")


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_json_of_check_spec(scratch: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("check-spec", "--root", str(scratch.root))
    code, found = run_json(capsys, *command)
    assert (code, found["ok"], found["mistakes"], found["texts"]) == (0, True, [], None)
    assert found["counts"]["structs"] == 16
    texts = scratch.root / "published"
    texts.mkdir()
    (texts / "abi.h").write_bytes(b"/// \\file abi.h Something else\n")
    code, found = run_json(capsys, *command, "--texts", str(texts))
    assert (code, found["ok"]) == (1, False)
    (given,) = (text for text in found["texts"] if text["given"])
    assert given["file"] == "abi.h" and given["gone"]
    line = scratch.replace("devices.yaml", "value: 13", "value: thirteen")
    code, found = run_json(capsys, *command)
    assert (code, found["ok"], found["counts"]) == (1, False, None)
    mistake = found["mistakes"][0]
    assert (mistake["file"], mistake["line"]) == ("spec/devices.yaml", line)
    assert mistake.keys() == {"file", "line", "key", "problem", "hint"}


def test_json_of_generate(scratch: Scratch, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("generate", "--root", str(scratch.root))
    header, stray = "cpp/include/fletching/abi.h", "docs/reference/old.md"
    code, found = run_json(capsys, *command)
    assert (code, found["ok"], found["removed"]) == (0, True, [])
    assert header in found["changed"] and found["files"] == len(found["changed"])
    (scratch.root / header).write_text("x\n", encoding="utf-8")
    (scratch.root / stray).write_text("x\n", encoding="utf-8")
    code, found = run_json(capsys, *command, "--check")
    assert (code, found["ok"]) == (1, False)
    assert [difference["path"] for difference in found["differences"]] == [header, stray]
    assert "\n-x\n" in found["differences"][0]["diff"]
    assert found["differences"][1]["problem"].startswith("is a stray")


def test_json_of_sync(
    scratch: Scratch, dlpack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = tmp_path / "new.h"
    text = dlpack.read_text(encoding="utf-8")
    header.write_text(text.replace("} DLDeviceType;", "  kDLNext = 90,\n} DLDeviceType;"), "utf-8")
    command = ("sync", "--root", str(scratch.root))
    code, found = run_json(capsys, *command, str(header), "--dry-run")
    assert (code, found["ok"], found["written"], found["since"]) == (0, True, False, None)
    assert found["changes"] == [
        {
            "name": "kDLNext",
            "value": 90,
            "kind": "device",
            "label": "next",
            "spec": "spec/devices.yaml",
            "new": True,
        }
    ]
    assert run_json(capsys, *command, str(header))[1]["written"] is True
    header.write_text(text.replace("kDLCUDA = 2,", "kDLCUDA = 90,"), encoding="utf-8")
    code, found = run_json(capsys, *command, str(header))
    assert (code, found["ok"]) == (1, False)
    assert "kDLCUDA" in [mistake["key"] for mistake in found["mistakes"]]


def test_json_of_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("traces", "--root", str(REPOSITORY), "--output", str(tmp_path))
    code, found = run_json(capsys, *command)
    assert code == 0 and found["files"] == len(found["changed"]) > 0
    assert run_json(capsys, *command)[1]["changed"] == []


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("choice", "environment", "stream", "colored"),
    [
        ("auto", {}, Screen(), True),
        ("auto", {}, io.StringIO(), False),
        ("auto", {"TERM": "dumb"}, Screen(), False),
        ("auto", {"NO_COLOR": "1"}, Screen(), False),
        ("auto", {"NO_COLOR": ""}, Screen(), True),
        ("auto", {"FORCE_COLOR": "1"}, io.StringIO(), True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, io.StringIO(), False),
        ("always", {"NO_COLOR": "1"}, io.StringIO(), True),
        ("never", {"FORCE_COLOR": "1"}, Screen(), False),
    ],
)
def test_color_depends_on_option_environment_and_terminal(
    choice: str,
    environment: dict[str, str],
    stream: io.StringIO,
    colored: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    expected = "\033[31mtext\033[0m" if colored else "text"
    assert terminal.painter(choice, stream)("text", "red") == expected


def test_reports_are_colored_if_requested(
    scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = ["check-header", str(ABI), *ONE_TARGET]
    assert main([*check, "--color", "always"]) == 0
    assert "c-data: \033[32magrees\033[0m\n" in capsys.readouterr().out
    assert main(check) == 0
    assert "\033" not in capsys.readouterr().out
    root = ["--root", str(scratch.root), "--color=always"]
    assert main(["generate", *root]) == 0
    (scratch.root / "cpp/include/fletching/abi.h").write_text("old\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["generate", "--check", *root]) == 1
    shown = capsys.readouterr().out
    assert "\033[31m-old\033[0m\n" in shown and "\033[32m+" in shown
