"""Tests of the ratios, the page and the plots, on small results that no run measured."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import bench
import languages
import page
import plots
from rows import BY_HAND, LIBRARY, ROOT, WITHOUT, Limit, Peer, Row

ROW = Row(
    "Ownership",
    "one leaf",
    "nanoseconds",
    {"Fletching": ("a",), "raw C": ("b",), "nanoarrow": ("c",)},
    (Limit("raw C", 1.5, 1.1, "it reports errors"),),
    goal=100,
    reason="it locks",
)


def runs(*values: tuple[float, float, float]) -> list[bench.Run]:
    return [
        {who: {"nanoseconds": each} for who, each in zip(ROW.programs, run, strict=True)}
        for run in values
    ]


# The median of the times is 120 and 100, so their ratio would be 1.2.
RUNS = runs((100, 100, 400), (120, 60, 600), (200, 200, 1000))


def test_ratio_is_taken_within_a_run() -> None:
    ours, raw, nanoarrow = bench.cells_of("C++", ROW, RUNS)
    assert (ours.value, ours.ratio, ours.goal) == (120, None, 100)
    assert (raw.value, raw.ratio) == (100, (1, 1, 2))
    assert (raw.limit, raw.goal, raw.reason) == (1.5, 1.1, "it reports errors")
    assert (nanoarrow.ratio, nanoarrow.limit) == ((0.2, 0.2, 0.25), None)


@pytest.mark.parametrize(("at_most", "ok"), [(1, True), (0.99, False), (None, True)])
def test_limit_applies_to_the_ratio(at_most: float | None, ok: bool) -> None:
    row = replace(ROW, limits=(Limit("raw C", at_most),))
    assert [cell.ok for cell in bench.cells_of("C++", row, RUNS)] == [True, ok, True]


@pytest.mark.parametrize(("at_most", "ok"), [(120, True), (119, False)])
def test_limit_applies_to_our_value(at_most: float, ok: bool) -> None:
    row = replace(ROW, at_most=at_most)
    assert next(bench.cells_of("C++", row, RUNS)).ok == ok


def test_times_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row has its first run before the second run of another row."""
    order: list[str] = []

    def run(_: object, program: tuple[str, ...], row: Row, __: bool) -> dict[str, float]:
        order.append(program[0])
        return {row.measure: 1}

    monkeypatch.setattr(bench, "_run", run)
    timed = replace(ROW, repeats=2, programs={"Fletching": ("a",), "raw C": ("b",)})
    counted = replace(ROW, measure="instructions", programs={"Fletching": ("c",)})
    found = bench._measure(ROOT, [("C++", timed), ("C++", counted), ("Go", timed)])
    assert order == ["c", "a", "b", "a", "b", "a", "b", "a", "b"]
    assert [len(each) for each in found] == [2, 1, 2]


def test_counts_are_those_of_the_further_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"10": bench.Count(1_700, 25), "30": bench.Count(3_700, 65)}
    monkeypatch.setattr(bench, "_callgrind", lambda program, _: counts[program[-1]])
    found = bench._instructions(("case",), (10, 30), None, 1, ())
    assert found == {"instructions": 100, "allocations": 2}


def test_count_is_the_minimum_of_the_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"10": [1_900, 1_700, 1_800], "30": [3_900, 4_000, 3_700]}

    def callgrind(program: tuple[str, ...], _: object) -> bench.Count:
        return bench.Count(counts[program[-1]].pop(0), 0)

    monkeypatch.setattr(bench, "_callgrind", callgrind)
    found = bench._instructions(("noisy",), (10, 30), None, 3, ())
    assert (found["instructions"], counts) == (100, {"10": [], "30": []})


PRINTED = {"/bin/a 10": '{"ns": 5}', "/bin/counter 10": '{"allocations": 2, "locks": 1, "ns": 9}'}


@pytest.mark.parametrize(
    ("first", "expected"),
    [(True, {"nanoseconds": 5, "allocations": 2, "locks": 1}), (False, {"nanoseconds": 5})],
)
def test_counter_runs_in_the_first_turn(
    monkeypatch: pytest.MonkeyPatch, first: bool, expected: dict[str, float]
) -> None:
    monkeypatch.setattr(bench, "_output", lambda program, _: PRINTED[" ".join(program)])
    row = replace(ROW, programs={"Fletching": ("a", "10")}, counter="counter")
    found = bench._turn(Path("/bin"), row, first)
    assert found == {"Fletching": expected}
    (cell,) = bench.cells_of("C++", row, [found, {"Fletching": {"nanoseconds": 7}}])
    assert (cell.allocations, cell.locks) == ((2, 1) if first else (None, None))


@pytest.mark.parametrize("measure", ["nanoseconds", "bytes"])
@pytest.mark.parametrize("output", ["", "1", "[1]", '{"other": 1}'])
def test_wrong_output_names_row_and_program(
    monkeypatch: pytest.MonkeyPatch, measure: str, output: str
) -> None:
    monkeypatch.setattr(bench, "_output", lambda *_: output)
    bench._printed_once.cache_clear()
    row = replace(ROW, measure=measure, programs={"Fletching": ("a", "10")})
    with pytest.raises(ValueError, match=r"one leaf: /bin/a 10: .* with (ns|bytes), got"):
        bench._turn(Path("/bin"), row, True)


def test_left_out_program_has_no_limit() -> None:
    assert bench._without(ROW, ["c"]).limits == ROW.limits
    without = bench._without(ROW, ["b"])
    assert (list(without.programs), without.limits) == (["Fletching", "nanoarrow"], ())


def test_row_without_programs_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench.py", "cpp", "--without", "a", "b", "c"])
    monkeypatch.setattr(bench, "_file", lambda _: {"ROWS": [ROW]})
    assert list(bench._rows(languages.load()["cpp"], bench._parse())) == []


@pytest.mark.parametrize(("rows", "raw", "code"), [([ROW], 100, 0), ([ROW], 60, 1), ([], 100, 2)])
def test_exit_code_says_whether_a_limit_is_exceeded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: list[Row], raw: float, code: int
) -> None:
    (tmp_path / "build").mkdir()
    monkeypatch.setattr("sys.argv", ["bench.py", "cpp", "--no-build"])
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    monkeypatch.setattr(bench, "_rows", lambda *_: rows)
    monkeypatch.setattr(bench, "_measure", lambda *_: [runs((100, raw, 400)) for _ in rows])
    monkeypatch.setattr(bench, "_versions", lambda _: {})
    monkeypatch.setattr(bench, "_report", lambda *_: {})
    assert bench.main() == code


@pytest.mark.parametrize(
    "options", ["", "--curves cpp", "--curves --only bytes", "--curves --case leaf"]
)
def test_part_of_the_rows_does_not_write_the_page(
    monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    monkeypatch.setattr("sys.argv", ["bench.py", "--write-docs", *options.split()])
    with pytest.raises(SystemExit) as ended:
        bench._parse()
    assert ended.value.code == 2


def test_callgrind_output_is_parsed() -> None:
    text = "fn=(1) main\ncfn=(2) malloc\ncalls=3 0\ncfn=(3) puts\ncalls=9 0\nsummary: 42\n"
    assert bench._parse_callgrind(text) == bench.Count(42, 3)
    with pytest.raises(ValueError, match="counted nothing"):
        bench._parse_callgrind("fn=(1) main\nsummary: 0\n")


CURVE = [
    replace(each, topic=topic, size=size, value=size * each.value, measure="instructions")
    for topic in ("Handoff of columns", "Streams")
    for size in (1, 10)
    for each in bench.cells_of("C++", replace(ROW, case="handoff"), RUNS)
]
*_, LAST = bench.cells_of("C++", ROW, RUNS)
CELLS = [
    *bench.cells_of("C++", ROW, RUNS),
    *CURVE,
    *(replace(each, language="Python") for each in CURVE),
    replace(LAST, language="Go", who="a queue", ratio=(3, 3, 3), reason="it crosses to C"),
    replace(LAST, language="Go", case="two threads", ratio=(7, 7, 7), between_threads=True),
    *(
        replace(each, measure="bytes", topic="Memory", goal=None)
        for each in bench.cells_of("Go", ROW, runs((64, 32, 640)))
    ),
]
REPORT: dict[str, Any] = {
    "date": "2026-01-02",
    "cpu": "a processor",
    "machine": "2 cores",
    "turns": 3,
    "minutes": 27,
    "load": "0.1",
    "versions": {"C++": "c++ 12"},
    "peers": [
        asdict(Peer("raw C", "", "It checks nothing.", BY_HAND)),
        asdict(Peer("nanoarrow", "0.9.0", "Its buffers can grow.")),
        asdict(Peer("a queue", "", "It passes no struct.", WITHOUT)),
    ],
    "cells": [asdict(cell) for cell in CELLS],
}
TEXT = page.text(REPORT)
KINDS = page._kinds(REPORT)


def test_page_names_processor_and_duration() -> None:
    assert "(a processor, 2 cores)" in TEXT
    assert "took 27 minutes" in TEXT


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.parametrize(
    ("title", "line"),
    [
        # The ratios of this language to hand-written code: 1 (nanoseconds).
        ("Result", "| C++ | hand-written code | 1 | 1.00 | 1.00 | 1.00 |"),
        ("Result", "| Go | other libraries | 1 | 0.10 | 0.10 | 0.10 |"),
        ("Ownership", "| C++ | one leaf | Fletching | 120 | ns |  |  |  |  |"),
        ("Ownership", "| C++ | one leaf | raw C | 100 | ns |  |  | 1.00 (1.00 to 2.00) | 1.5 |"),
        ("Handoff of columns", "| size | Fletching | raw C | nanoarrow |"),
        ("Handoff of columns", "| 10 | 1,200 | 1,000 (1.00) | 6,000 (0.20) |"),
        ("Memory", "| Go | one leaf | raw C | 32 | bytes |  |  | 2.00 | 1.5 OVER |"),
        ("Result", "| Go | code without the interface | 1 | 3.00 | 3.00 | 3.00 |"),
        ("Other programs", "| raw C | hand-written code | It checks nothing. |"),
        ("Other programs", "| nanoarrow 0.9.0 | other libraries | Its buffers can grow. |"),
        ("Goals", "| C++ | one leaf | ns | 120 ns | 100 ns | no | it locks |"),
        ("Goals", "| C++ | one leaf | nanoseconds, as a multiple of raw C | 1.00 | 1.1 | yes |  |"),
    ],
)
def test_section_has_line(title: str, line: str) -> None:
    assert line in section(title).splitlines()


def test_lost_comparisons_are_listed() -> None:
    assert [line for line in section("Where Fletching costs more").splitlines() if "|" in line] == [
        "| language | case | measure | compared with | Fletching / this | reason |",
        "|---|---|---|---|---|---|",
        "| Go | one leaf | nanoseconds | a queue | 3.00 | it crosses to C |",
        "| Go | two threads | nanoseconds | nanoarrow | 7.00 | not known yet |",
        "| Go | one leaf | bytes | raw C | 2.00 | it reports errors |",
    ]


def test_lost_curve_is_one_line() -> None:
    lost = [
        replace(each, ratio=(1, number, 9), reason="")
        for number, each in enumerate(CURVE, 2)
        if each.topic == "Streams" and each.who == "raw C"
    ]
    for points in (lost, lost[::-1]):
        (_, line) = page._lost(points)
        assert line[-3:] == ["raw C", "9.00 to 12.00", "not known yet"]


def test_ratio_that_rounds_to_one_is_not_lost() -> None:
    (_, raw, _) = bench.cells_of("C++", ROW, RUNS)
    assert len(page._lost([replace(raw, ratio=(1, 1.004, 1.1))])) == 1
    assert len(page._lost([replace(raw, ratio=(1, 1.006, 1.1))])) == 2


def test_goal_is_reached_at_its_value() -> None:
    cell = replace(next(bench.cells_of("C++", ROW, RUNS)), value=100)
    assert page._goals([cell])[1][-2:] == ["yes", ""]


def test_compile_cost_is_in_millions() -> None:
    cell = replace(next(bench.cells_of("C++", ROW, RUNS)), measure="compile", value=1.5e9)
    assert page._rows([cell])[1][3:5] == ["1,500", "million instructions"]


def test_summary_has_only_other_code() -> None:
    (_, raw, _) = bench.cells_of("C++", ROW, RUNS)
    assert raw.in_summary
    assert not replace(raw, who="the same with 64 rows").in_summary
    assert not replace(raw, size=10).in_summary
    (_, raw, _) = bench.cells_of("C++", replace(ROW, between_threads=True), RUNS)
    assert not raw.in_summary


def test_page_shows_every_plot() -> None:
    for plot in plots.PLOTS:
        assert f"]({plot.file})" in TEXT


@pytest.mark.parametrize("plot", plots.PLOTS, ids=lambda plot: plot.file)
def test_plot_is_the_same_in_every_run(plot: plots.Plot) -> None:
    drawn = plots.draw(plot, CELLS, KINDS)
    assert drawn == plots.draw(plot, CELLS, KINDS)
    assert "<dc:date>" not in drawn
    shown = {"".join(each.itertext()).strip() for each in ElementTree.fromstring(drawn).iter()}
    assert any("nanoarrow" in each or "raw C" in each for each in shown)


def test_plots_of_ratios_show_only_their_kind() -> None:
    """Neither shows code without the interface, nor times between threads."""
    by_hand, libraries = (plots.draw(plot, CELLS, KINDS) for plot in plots.PLOTS[:2])
    assert "one leaf / raw C" in by_hand and "one leaf / nanoarrow" not in by_hand
    assert "one leaf / nanoarrow" in libraries and "one leaf / raw C" not in libraries
    assert not any("queue" in each or "two threads" in each for each in (by_hand, libraries))


def test_plot_has_colors_for_dark_screens() -> None:
    drawn = plots.draw(plots.PLOTS[2], CELLS, KINDS)
    for number, (light, dark) in enumerate(plots.DARK.items()):
        assert drawn.count(light) == drawn.count(dark) == 1  # in the style only
        assert f"--c{number}:{light}" in drawn and f"--c{number}:{dark}" in drawn
    assert "var(--c2)" in drawn


def test_rows_of_all_languages_have_a_topic_and_peers() -> None:
    """Every program that Fletching is compared with is in the table of the page."""
    for name in bench._having_rows():
        file = bench._file(languages.load()[name])
        known = {peer.name for peer in (*file["PEERS"], *bench_peers("cpp"))}
        for row in file["ROWS"]:
            others = set(row.programs) - {row.ours}
            assert row.topic
            assert {limit.other for limit in row.limits} <= others, row.case
            assert all(who in known or who.startswith("the same") for who in others), row.case
        assert all((peer.kind == LIBRARY) == bool(peer.version) for peer in file["PEERS"])


def bench_peers(name: str) -> tuple[Peer, ...]:
    peers: tuple[Peer, ...] = bench._file(languages.load()[name])["PEERS"]
    return peers
