"""Tests of the header with new devices and of the failures that count."""

from __future__ import annotations

from pathlib import Path

import pytest

from builds import LANGUAGES
from fletching_generator.headers.facts import extract
from fletching_generator.spec.load import load_spec
from new_device import (
    ROOT,
    UPSTREAM,
    Names,
    Verdict,
    difference,
    header_with,
    new_names,
    report,
)

NAMES: Names = {"device:39": "nextchip", "device:40": "otherchip", "code:19": "nextcode"}


def test_header_with_invented_names_is_newer_release(tmp_path: Path) -> None:
    assert new_names(load_spec(ROOT)) == NAMES
    text = header_with(UPSTREAM.read_text(encoding="utf-8"), NAMES)
    assert "  kDLNextchip = 39,\n  kDLOtherchip,\n} DLDeviceType;" in text
    assert "#define DLPACK_MINOR_VERSION 4\n" in text
    path = tmp_path / "dlpack.h"
    path.write_text(text, encoding="utf-8")
    for run in extract(path, ["c", "c++"], ["x86_64-linux-gnu"]):
        enum = next(enum for enum in run.enums if enum.name == "DLDeviceType")
        values = [(e.name, e.value) for e in enum.enumerators]
        assert values[-3:] == [("kDLTrn", 18), ("kDLNextchip", 39), ("kDLOtherchip", 40)]
        codes = next(enum for enum in run.enums if enum.name == "DLDataTypeCode").enumerators
        assert [(e.name, e.value) for e in codes[-1:]] == [("kDLNextcode", 19)]


@pytest.mark.parametrize("text", ["enum { kDLCPU = 1 } DLDeviceType;", "nothing"])
def test_rejects_other_header(text: str) -> None:
    with pytest.raises(ValueError, match="does not end its list with a comma"):
        header_with(text, NAMES)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("nextchip\notherchip\nnextcode\n", ""),
        (
            "unknown(39)\notherchip\nnextcode\n",
            "device:39 prints as unknown(39), not as nextchip",
        ),
        (
            "nextchip\nnextcode\notherchip\n",
            "device:40 prints as nextcode, not as otherchip; "
            "code:19 prints as otherchip, not as nextcode",
        ),
        ("nextchip\n", "the probe printed 1 lines instead of 3:\nnextchip\n"),
    ],
)
def test_difference_of_probe_output(printed: str, expected: str) -> None:
    assert difference(printed, NAMES) == expected


def test_problem_fails_run(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = Verdict(LANGUAGES[1], "", 2.0), Verdict(LANGUAGES[0], "the probe: exit code 1", 1.0)
    assert report([good], NAMES) == 0
    assert report([good, bad], NAMES) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        f"{LANGUAGES[0]:10}    1 s  FAILED: the probe: exit code 1",
        f"{LANGUAGES[1]:10}    2 s  passed: unknown(39), then nextchip, unknown(40), then "
        "otherchip, unknown(19), then nextcode",
        "1 passed, 1 failed",
    ]
