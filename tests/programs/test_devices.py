"""Tests `fletching devices`: runs the program that `make` builds."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from fletching_generator import cli

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "bin" / "fletching-inspect"


def test_every_device_type_has_entry(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--root", str(ROOT), "devices", "--json"]) == 0
    entries = json.loads(capfd.readouterr().out)
    names = [entry["name"] for entry in entries]
    assert names[:3] == ["cpu", "cuda", "cuda_host"]
    assert len(names) == 16
    for entry in entries:
        there = entry["presence"] == "real"
        assert there == bool(entry["devices"]), entry
        assert there != bool(entry["reason"]), entry


def test_text_output_has_one_line_per_device(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--root", str(ROOT), "devices"]) == 0
    assert capfd.readouterr().out.startswith("cpu           real\n")


@pytest.mark.parametrize(
    ("arguments", "code", "printed", "said"),
    [
        (["--version"], 0, r"\d+\.\d+\.\d+\n", ""),
        (["--help"], 0, r"fletching-inspect devices .*", ""),
        ([], 2, "", r"fletching-inspect devices .*"),
        (["--versions"], 2, "", r"fletching-inspect devices .*"),
    ],
)
def test_other_arguments(arguments: list[str], code: int, printed: str, said: str) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert re.fullmatch(printed, done.stdout, re.DOTALL)
    assert re.fullmatch(said, done.stderr, re.DOTALL)
