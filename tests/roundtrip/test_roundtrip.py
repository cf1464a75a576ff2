"""Tests of the runner with fake programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import roundtrip
from cells import CellError, Key, case_key, parse_cell, peer_key, struct_key
from programs import Command, Language
from summary import MOST_LINES
from verdicts import LEGEND

EXPECTED = [
    struct_key("fake", "Struct", "layout"),
    struct_key("fake", "Struct", "c_calls"),
    struct_key("fake", "constants", "layout"),
    case_key("fake", "int32", "array"),
    case_key("fake", "int32", "stream"),
    peer_key("fake", "pyarrow", "int32", "array"),
]


def line(key: Key, **changes: Any) -> str:
    """A valid cell as a program writes it, with some values changed."""
    subject = {k: v for k, v in vars(key).items() if v}
    good = {"status": "real", "reason": "", "asserted": 3, "releases": 1, "ok": True}
    return json.dumps(subject | good | changes)


@dataclass
class Result:
    code: int
    out: str
    err: str
    cells: list[dict[str, Any]]

    def cell(self, key: Key) -> dict[str, Any]:
        subject = {k: v for k, v in vars(key).items() if v}
        return next(c for c in self.cells if c.items() >= subject.items())

    def letters(self) -> str:
        """The column of the only language, row by row."""
        body = self.out.split("structs (", maxsplit=1)[1].split("\npassed")[0]
        rows = [row.rsplit("  ", 1)[-1] for row in body.splitlines() if row.startswith("  ")]
        return "/".join(rows)


Runner = Callable[..., Result]


@pytest.fixture
def runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Runner:
    """Runs the runner with fake languages."""
    monkeypatch.setattr(roundtrip, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(
        roundtrip, "expected_cells", lambda name: [replace(key, language=name) for key in EXPECTED]
    )
    output = tmp_path / "build" / "roundtrip.json"

    def run(*languages: Language, arguments: tuple[str, ...] = (), matrix: bool = True) -> Result:
        table = {["fake", "other"][i]: language for i, language in enumerate(languages)}
        printed = ("--matrix",) if matrix else ()
        code = roundtrip.main([*printed, "--output", str(output), *arguments], table)
        out, err = capsys.readouterr()
        cells = json.loads(output.read_text("utf-8"))["cells"] if output.exists() else []
        page = output.with_suffix(".html")
        assert sorted(output.parent.glob("*")) in ([], [page, output])
        return Result(code, out, err, cells)

    return run


def fake(
    *,
    abi: str = "",
    cases: str = "",
    peers: str = "",
    on_devices: str | None = None,
    ending: str = "",
    needs: str = "true",
) -> Language:
    """A language whose programs write these lines; the program for cases then runs `ending`."""

    def program(text: str, then: str = "") -> Command:
        return Command(f'printf %s {shlex.quote(text)} >> "$FLETCHING_CELLS"; {then or "true"}')

    return Language(
        needs,
        "run `make fake`",
        program(abi),
        program(cases, ending),
        program(peers),
        None if on_devices is None else program(on_devices),
    )


def lines(*parts: str) -> str:
    return "".join(f"{part}\n" for part in parts)


GOOD = {
    "abi": lines(*map(line, EXPECTED[:3])),
    "cases": lines(*map(line, EXPECTED[3:5])),
    "peers": lines(line(EXPECTED[5])),
}


def test_all_cells_pass(runner: Runner) -> None:
    result = runner(fake(**GOOD))
    assert result.code == 0
    assert result.letters() == ".././../."
    assert [cell["ok"] for cell in result.cells] == [True] * len(EXPECTED)
    assert "6 of 6 cells are right" in result.out
    assert "Failures" not in result.out
    assert "\033" not in result.out


def test_stand_in_cell_passes_and_is_marked(runner: Runner) -> None:
    result = runner(fake(**GOOD | {"peers": lines(line(EXPECTED[5], status="stand-in"))}))
    assert result.code == 0
    assert result.letters() == ".././../s"
    assert LEGEND["s"] in result.out


def test_missing_cell_fails(runner: Runner) -> None:
    result = runner(fake(**GOOD | {"abi": lines(*map(line, EXPECTED[1:3]))}))
    assert result.code == 1
    assert result.letters() == "M././../."
    assert "fake: Struct layout: did not arrive: abi: the program ended well" in result.out
    missing = result.cell(EXPECTED[0])
    assert (missing["ok"], missing["status"], missing["asserted"]) == (False, "absent", 0)


def test_failing_cell_is_reported(runner: Runner) -> None:
    failing = line(EXPECTED[4], ok=False, reason="Struct.field: offset 8 upstream, 0 here")
    result = runner(fake(**GOOD | {"cases": lines(line(EXPECTED[3]), failing)}))
    assert result.code == 1
    assert result.letters() == ".././.F/."
    assert "fake: int32 stream: Struct.field: offset 8 upstream, 0 here" in result.out


def test_failing_cell_without_reason_is_reported(runner: Runner) -> None:
    result = runner(fake(**GOOD | {"peers": lines(line(EXPECTED[5], ok=False))}))
    assert result.code == 1
    assert "fake: pyarrow int32 array: failed without a reason" in result.out


def test_cell_without_assertions_fails(runner: Runner) -> None:
    result = runner(fake(**GOOD | {"peers": lines(line(EXPECTED[5], asserted=0))}))
    assert result.code == 1
    assert result.letters() == ".././../0"
    assert "fake: pyarrow int32 array: asserted nothing" in result.out
    assert result.cell(EXPECTED[5])["ok"] is False


def test_case_without_release_fails(runner: Runner) -> None:
    none = lines(line(EXPECTED[3], releases=0), line(EXPECTED[4]))
    abi = lines(*(line(key, releases=0) for key in EXPECTED[:3]))
    result = runner(fake(**GOOD | {"abi": abi, "cases": none}))
    assert result.code == 1
    assert result.letters() == ".././R./."
    assert "fake: int32 array: no release callback of the language ran" in result.out


def test_cell_reported_twice_fails(runner: Runner) -> None:
    twice = lines(line(EXPECTED[5]), line(EXPECTED[5]))
    result = runner(fake(**GOOD | {"peers": twice}))
    assert result.code == 1
    assert result.letters() == ".././../D"
    assert "fake: pyarrow int32 array: reported 2 times" in result.out
    assert len(result.cells) == len(EXPECTED)


def test_unexpected_cell_fails(runner: Runner) -> None:
    more = GOOD["abi"] + lines(line(struct_key("fake", "Other", "layout")))
    result = runner(fake(**GOOD | {"abi": more}))
    assert result.code == 1
    assert "fake: Other layout: unexpected cell" in result.out
    assert len(result.cells) == len(EXPECTED) + 1


def test_absent_cell_fails(runner: Runner) -> None:
    absent = line(EXPECTED[5], status="absent", reason="no GPU", asserted=0, ok=False)
    result = runner(fake(**GOOD | {"peers": lines(absent)}))
    assert result.code == 1
    assert result.letters() == ".././../A"
    assert "fake: pyarrow int32 array: no GPU" in result.out


def test_known_peer_limit_passes(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = line(EXPECTED[5], status="absent", reason="KeyError: 21", releases=0)
    monkeypatch.setattr(roundtrip, "limited_cells", lambda _: {EXPECTED[5]})
    result = runner(fake(**GOOD | {"peers": lines(limit)}))
    assert result.code == 0
    assert result.letters() == ".././../-"
    assert LEGEND["-"] in result.out
    assert result.cell(EXPECTED[5])["reason"] == "KeyError: 21"


@pytest.mark.parametrize(
    "change",
    [{"ok": False}, {"asserted": 0}, {"reason": ""}],
)
def test_peer_limit_with_wrong_report_fails(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    limit = {"status": "absent", "reason": "KeyError: 21", "releases": 0}
    monkeypatch.setattr(roundtrip, "limited_cells", lambda _: {EXPECTED[5]})
    result = runner(fake(**GOOD | {"peers": lines(line(EXPECTED[5], **limit | change))}))
    assert result.code == 1
    assert result.letters() == ".././../A"


def test_unknown_peer_limit_fails(runner: Runner) -> None:
    limit = line(EXPECTED[5], status="absent", reason="KeyError: 21", releases=0)
    result = runner(fake(**GOOD | {"peers": lines(limit)}))
    assert result.code == 1
    assert result.letters() == ".././../A"


def test_crash_fails(runner: Runner) -> None:
    half = GOOD | {"cases": lines(line(EXPECTED[3]))}
    result = runner(fake(**half, ending="echo last words; kill -SEGV $$"))
    assert result.code == 1
    assert result.letters() == ".././.M/."
    assert "fake: int32 stream: did not arrive: cases: ended by SIGSEGV; see" in result.out
    assert "last words" in result.out


def test_exit_code_with_passing_cells_fails(runner: Runner) -> None:
    result = runner(fake(**GOOD, ending="exit 3"))
    assert result.code == 1
    assert result.letters() == ".././../."
    assert "fake: cases: exit code 3; see" in result.out


@pytest.mark.parametrize(
    ("garbage", "why"),
    [
        ("garbage", "not JSON"),
        ("[1]", "not a JSON object"),
        (line(EXPECTED[3], asserted="3"), "'asserted' is missing or not of type int"),
        (line(EXPECTED[3], asserted=True), "'asserted' is missing or not of type int"),
        (line(EXPECTED[3], asserted=-1), "may not be negative"),
        (line(EXPECTED[3], status="fine"), "status 'fine' is none of real, stand-in, absent"),
        (line(EXPECTED[3], struct="Struct"), "names case, struct, not one of"),
        (line(replace(EXPECTED[3], case="")), "names no subject, not one of"),
        (line(EXPECTED[3], cases="int32"), "names case, cases, not one of"),
        (line(EXPECTED[3], language="cobol"), "language is 'cobol'"),
    ],
)
def test_garbage_line_fails(runner: Runner, garbage: str, why: str) -> None:
    result = runner(fake(**GOOD | {"cases": GOOD["cases"] + lines(garbage)}))
    assert result.code == 1
    assert result.letters() == ".././../."
    assert "line 3 of" in result.out
    assert why in result.out


def test_truncated_line_fails(runner: Runner) -> None:
    result = runner(fake(**GOOD | {"cases": GOOD["cases"][:-20]}))
    assert result.code == 1
    assert result.letters() == ".././.M/."


def test_missing_toolchain_fails(runner: Runner) -> None:
    result = runner(fake(**GOOD, needs="echo find-fake: nothing there >&2; false"))
    assert result.code == 1
    assert result.letters() == "AA/A/AA/A"
    assert "run `make fake` (find-fake: nothing there)" in result.out
    assert {cell["status"] for cell in result.cells} == {"absent"}
    assert result.out.count("fake: Struct layout and 5 more") == 1


def test_failure_does_not_affect_other_languages(runner: Runner) -> None:
    other = {step: text.replace('"fake"', '"other"') for step, text in GOOD.items()}
    result = runner(fake(**GOOD, ending="kill -KILL $$"), fake(**other))
    assert result.code == 1
    assert [cell["language"] for cell in result.cells] == ["fake"] * 6 + ["other"] * 6
    assert "other: " not in result.out.split("Failures", 1)[1]


def test_language_option_selects_one_language(runner: Runner) -> None:
    result = runner(fake(), fake(), arguments=("--language", "other"))
    assert {cell["language"] for cell in result.cells} == {"other"}
    assert len(result.cells) == len(EXPECTED)


def test_list_runs_no_program(runner: Runner) -> None:
    result = runner(fake(), arguments=("--list",))
    assert result.code == 0
    assert result.out.splitlines() == [str(key) for key in EXPECTED]
    assert result.cells == []


def test_unknown_language_is_rejected(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        runner(fake(), arguments=("--language", "cobol"))
    assert ended.value.code == 2
    assert "cobol" in capsys.readouterr().err


def test_missing_oracle_is_reported(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> list[Key]:
        raise OSError("cannot load libfletching_oracle.so; run `make`")

    monkeypatch.setattr(roundtrip, "expected_cells", fail)
    result = runner(fake(**GOOD))
    assert result.code == 2
    assert "run `make`" in result.err


def test_hanging_program_fails(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roundtrip, "LIMIT_SECONDS", 0.01)
    result = runner(fake(**GOOD, ending="tail -f /dev/null"))
    assert result.code == 1
    assert "hung, and was ended after 0.01 s" in result.out


def test_old_cells_are_not_counted(runner: Runner) -> None:
    assert runner(fake(**GOOD)).code == 0
    assert runner(fake()).letters() == "MM/M/MM/M"


def test_colors_only_on_terminal(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[32m.\033[0m" in runner(fake(**GOOD)).out


def test_cells_round_trip_through_json() -> None:
    for key in EXPECTED:
        cell = parse_cell(line(key, reason='a "reason"\nwith two lines'))
        assert parse_cell(json.dumps(cell.as_json())) == cell
        assert cell.key == key
    with pytest.raises(CellError):
        parse_cell("")


def test_summary_counts_each_group(runner: Runner) -> None:
    result = runner(fake(**GOOD | {"cases": lines(line(EXPECTED[3]))}))
    rows = [" ".join(row.split()) for row in result.out.splitlines()]
    assert "language structs cases pyarrow on a stand-in not supported not yet" in rows
    assert "fake 3/3 1/2 1/1" in rows


def test_summary_is_truncated(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [case_key("fake", f"case{i}", "array") for i in range(500)]
    monkeypatch.setattr(roundtrip, "expected_cells", lambda _: keys)
    failing = lines(*(line(key, ok=False, reason=key.case) for key in keys))
    output = runner(fake(cases=failing)).out.split("one letter per direction")[1].splitlines()[1:]
    assert len(output) == MOST_LINES
    assert "fake: case0 array: case0" in output[6]
    assert "more, in" in output[-4] and "roundtrip.html" in output[-4]
    shown = sum("fake: case" in row for row in output)
    assert f"... and {500 - shown} more, in" in output[-4]


def test_matrix_is_printed_on_request_only(runner: Runner) -> None:
    with_matrix = runner(fake(**GOOD)).out
    assert "structs (layout, c_calls)" in with_matrix
    assert "structs (" not in runner(fake(**GOOD), matrix=False).out
