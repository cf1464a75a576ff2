"""Tests bad input of `check-header` and `sync`: a message, exit code 2, and no written file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ABI, PINNED_DLPACK, UPSTREAM, Scratch

from fletching_generator.cli import main

COMMANDS = ("check-header", "sync")
# A header with a new device, so that there is a change to write.
NEW_DEVICE = 'typedef enum {\n#include "devices.inc"\n  kDLNext = 99\n} DLDeviceType;\n'

Refused = Callable[..., str]


@pytest.fixture
def refused(scratch: Scratch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that must fail on a scratch root; returns its message."""

    def run(*arguments: str | Path) -> str:
        before = tree(scratch.root)
        assert main(["--root", str(scratch.root), *map(str, arguments)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert tree(scratch.root) == before
        return captured.err

    return run


def tree(root: Path) -> dict[str, bytes]:
    spec = root / "spec"
    return {str(path): path.read_bytes() for path in spec.rglob("*") if path.is_file()}


def new_device(scratch: Scratch) -> Path:
    """Returns a dlpack.h with all devices of the spec and a new one, outside of the spec folder."""
    lines = [f"  {device.dlpack} = {device.value},\n" for device in scratch.load().devices]
    (scratch.root / "devices.inc").write_text("".join(lines), encoding="utf-8")
    header = scratch.root / "dlpack.h"
    header.write_text(NEW_DEVICE, encoding="utf-8")
    return header


@pytest.mark.parametrize("command", COMMANDS)
def test_rejects_missing_file(command: str, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "nowhere.h"
    assert f"cannot read {path}: No such file or directory" in refused(command, path)


@pytest.mark.parametrize("command", COMMANDS)
def test_rejects_folder(command: str, refused: Refused, tmp_path: Path) -> None:
    assert f"cannot read {tmp_path}: it is a directory" in refused(command, tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", [b"\x7fELF\0\0", "struct A;".encode("utf-16")])
def test_rejects_binary_file(
    command: str, content: bytes, refused: Refused, tmp_path: Path
) -> None:
    path = tmp_path / "binary.h"
    path.write_bytes(content)
    assert f"cannot read {path}: it has NUL bytes" in refused(command, path)


@pytest.mark.parametrize("command", COMMANDS)
def test_reports_first_three_errors_with_file_and_line(
    command: str, refused: Refused, tmp_path: Path
) -> None:
    part, path = tmp_path / "part.h", tmp_path / "wrong.h"
    part.write_text("\nunknown_a x;\n", encoding="utf-8")
    path.write_text(
        '#include "part.h"\nunknown_b x;\n\nunknown_c y;\nunknown_d z;\n', encoding="utf-8"
    )
    lines = refused(command, path).splitlines()
    unknown = "error: unknown type name"
    assert lines == [
        f"fletching: {path} has 4 errors as c on x86_64-linux-gnu:",
        f"  {part}:2:1: {unknown} 'unknown_a'",
        f"  {path}:2:1: {unknown} 'unknown_b'",
        f"  {path}:4:1: {unknown} 'unknown_c'",
    ]


def test_error_on_some_targets_names_first_target(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "wide.h"
    path.write_text("#if __SIZEOF_POINTER__ == 4\n#error narrow\n#endif\n", encoding="utf-8")
    said = refused("check-header", path)
    assert said.splitlines() == [
        f"fletching: {path} has 1 error as c on armv7-linux-gnueabihf:",
        f"  {path}:2:2: error: narrow",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_include_explains_include_flag(command: str, refused: Refused) -> None:
    said = refused(command, UPSTREAM / "helpers.h")
    assert "helpers.h:25:10: fatal: 'arrow/c/abi.h' file not found" in said
    assert "name the folder of what it includes: -- -I FOLDER" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--targets", "pdp11-dec-unix"], "unknown target 'pdp11-dec-unix': clang knows no"),
        (["--targets", "s390x-linux-gnu,"], "unknown target ''"),
        (["--as", "java"], "--as takes c or c++, not 'java'"),
        (["--interface", "c-nothing"], "no interface 'c-nothing'; use one of c-data"),
        (["--", "-frobnicate"], "unknown argument: '-frobnicate'"),
    ],
)
def test_rejects_unknown_names(arguments: list[str], expected: str, refused: Refused) -> None:
    assert expected in refused("check-header", ABI, *arguments)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"devices: [\n", "spec/devices.yaml:2: (syntax): not YAML"),
        (b"devices: \xff\n", "spec/devices.yaml:1: (whole file): byte 9 is not UTF-8"),
        (None, "spec/devices.yaml:1: (whole file): cannot be read (Is a directory)"),
    ],
    ids=["syntax", "not UTF-8", "a folder"],
)
def test_rejects_unreadable_spec(
    command: str, content: bytes | None, expected: str, refused: Refused, scratch: Scratch
) -> None:
    header = new_device(scratch)
    path = scratch.root / "spec" / "devices.yaml"
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert expected in refused(command, header)


def test_closed_standard_input_is_named(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "fletching: cannot read <stdin>: it is closed" in refused("check-header", "-")


def test_full_standard_output_is_named() -> None:
    command = [sys.executable, "-m", "fletching_generator.cli", "layout"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "fletching: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("failing", ["write_bytes", "replace"])
def test_interrupted_write_keeps_old_spec(
    failing: str, refused: Refused, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails between the first byte and the last, and between writing and renaming."""
    header = new_device(scratch)

    def half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device", str(path))

    def fail(source: Path, target: Path) -> None:
        raise OSError(13, "Permission denied", str(target))

    if failing == "write_bytes":
        monkeypatch.setattr(Path, "write_bytes", half)
    else:
        monkeypatch.setattr(os, "replace", fail)
    said = refused("sync", header)
    assert "devices.yaml" in said
    assert "No space left" in said or "Permission denied" in said


def test_killed_write_keeps_old_spec(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A concurrent reader, or one after the process was killed, sees the complete old file."""
    header = new_device(scratch)
    path = scratch.root / "spec" / "devices.yaml"
    before = path.read_bytes()

    class Killed(BaseException):
        pass

    def stop(source: Path, target: Path) -> None:
        raise Killed

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(Killed):
        main(["--root", str(scratch.root), "sync", str(header)])
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert main(["--root", str(scratch.root), "sync", str(header)]) == 0
    assert b"kDLNext" in path.read_bytes()
    assert main(["--root", str(scratch.root), "check-spec"]) == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_rejects_wrong_extract_program(
    command: str, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = PINNED_DLPACK
    monkeypatch.setenv("FLETCHING_EXTRACT", "/nowhere/extract")
    assert "/nowhere/extract cannot run: No such file" in refused(command, header)
    monkeypatch.setenv("FLETCHING_EXTRACT", "/bin/true")
    said = refused(command, header)
    assert "/bin/true is not a fletching-extract of this version; run 'tools/build extract'" in said
