"""Tests of the tool with a tiny library and a tiny module."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import cpp_mutants
import mutants_code
import python_mutants
import report
import sample
import trials
from cpp_mutants import CannotRunError
from equivalents import Equivalents, EquivalentsError
from mutant import Mutant, distinct, insert
from tree import HOME, ROOT, Tree, numbered

TINY = HOME / "tiny"
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture(scope="session")
def found() -> list[Mutant]:
    finder = cpp_mutants.build_finder(mutants_code.SCRATCH / "finder")
    return distinct(cpp_mutants.of_unit(finder, TINY, TINY, TINY / "tiny.hpp", []))


@pytest.fixture(scope="session")
def program(found: list[Mutant], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The check program of the tiny library, built with every mutant."""
    folder = tmp_path_factory.mktemp("tiny")
    text, _ = insert((TINY / "tiny.hpp").read_bytes(), list(enumerate(found)))
    (folder / "tiny.hpp").write_bytes(text)
    (folder / "check.cpp").write_bytes((TINY / "tiny_check.cpp").read_bytes())
    asks = ["-include", str(HOME / "fletching_mutant.h"), "-Wno-parentheses"]
    subprocess.run(
        ["clang++-19", *FLAGS, *asks, f"-I{folder}", folder / "check.cpp", "-o", folder / "check"],
        check=True,
    )
    return folder / "check"


def _test(program: Path) -> trials.Test:
    return trials.Test("tiny", (str(program),), program.parent)


def test_names_a_header_without_the_folders_of_its_include(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "one.hpp").write_text("inline int one() { return 1; }\n")
    (tmp_path / "tables" / "all.hpp").write_text('#include "../one.hpp"\n')
    finder = cpp_mutants.build_finder(mutants_code.SCRATCH / "finder")
    mutants = cpp_mutants.of_unit(finder, tmp_path, tmp_path, tmp_path / "tables" / "all.hpp", [])
    assert {mutant.file for mutant in mutants} == {"one.hpp"}


def test_finds_each_kind_in_cpp(found: list[Mutant]) -> None:
    changes = {(m.kind, m.before, m.after) for m in found}
    assert changes >= {
        ("relation", "i < to", "i <= to"),
        ("relation", "low <= value", "low < value"),
        ("relation", "value > high", "value >= high"),
        ("relation", "value == other", "value != other"),
        ("logic", "low <= value && !(value > high)", "low <= value || !(value > high)"),
        ("not", "!wanted", "wanted"),
        ("condition", "i < to", "!(i < to)"),
        ("condition", "number > 0", "!(number > 0)"),
        ("arithmetic", "left - right", "left + right"),
        ("arithmetic", "given * 2", "given / 2"),
        ("arithmetic", "++i", "--i"),
        ("arithmetic", "sum += i + 2", "sum -= i + 2"),
        ("constant", "0", "1"),
        ("constant", "1", "0"),
        ("constant", "2", "2 + 1"),
        ("statement", "text.clear();", ";"),
        ("statement", "sum += i + 2;", ";"),
        ("arguments", "difference(left, right)", "difference(right, left)"),
        ("return", "first", "nullptr"),
        ("return", "sum", "(sum) + 1"),
        ("return", "return text;", "return {};"),
        ("exit", "return nullptr;", ";"),
    }


def test_ignores_compile_time_code(found: list[Mutant]) -> None:
    lines = (TINY / "tiny.hpp").read_text().splitlines()
    constant = ("kSize", "static_assert", "kRed", "requires", "if constexpr", "counts[sizeof")
    touched = {lines[m.line - 1].strip() for m in found if m.kind not in ("exit", "constant")}
    assert [line for line in touched if any(word in line for word in constant)] == []
    assert not any("sizeof" in mutant.before for mutant in found)


def test_one_build_contains_all_mutants(found: list[Mutant], program: Path) -> None:
    """Every mutant is killed, except in the untested function."""
    tests = trials.record([_test(program)], os.environ, program.parent / "seen")
    outcomes = {m: trials.attempt(n, tests, os.environ) for n, m in enumerate(found)}
    survived = [report.line(m) for m, trial in outcomes.items() if not trial.killed_by]
    assert [text for text in survived if "untested" not in text] == []
    assert len(survived) == 3
    assert {trial.killed_by for trial in outcomes.values()} >= {"tiny: Tiny.IsRight"}


def test_unreached_mutant_is_not_run(found: list[Mutant], program: Path) -> None:
    seen = trials.Test("tiny", (str(program),), program.parent, 0, frozenset())
    assert trials.attempt(0, [seen], os.environ) == trials.Trial("", 0)


def test_failing_test_without_mutant_stops_run(tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match="no fails without a mutant"):
        trials.record([trials.Test("no", ("false",), tmp_path)], os.environ, tmp_path)


def test_hanging_mutant_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_SHORTEST_LIMIT", 1)
    script = (
        'echo "[ RUN      ] Tiny.Waits"; [ "$FLETCHING_MUTANT" != 3 ] || exec tail -f /dev/null'
    )
    test = trials.Test("waits", ("bash", "-c", script), tmp_path, 0, frozenset({3}))
    assert trials.attempt(3, [test], os.environ).killed_by == "waits: hangs in Tiny.Waits"


def _verdicts(found: Sequence[Mutant], known: Equivalents, killed_by: str) -> list[report.Verdict]:
    return [mutants_code._verdict(m, trials.Trial(killed_by, 1), known) for m in found]


def _entry(mutant: Mutant, reason: str = "it is the same", **other: str) -> dict[str, object]:
    parts = {k: getattr(mutant, k) for k in ("file", "function", "kind", "before", "after", "nth")}
    return {**parts, "reason": reason, **other}


def _equivalents(folder: Path, mutants: Sequence[Mutant], *entries: object) -> Equivalents:
    path = folder / "equivalents.yaml"
    path.write_text(f"equivalents: {list(entries)!r}\n")
    return Equivalents(path, mutants)


def test_survivor_is_reported(found: list[Mutant], tmp_path: Path) -> None:
    none = _equivalents(tmp_path, found)
    strict = [_moved(m, "cpp/include/fletching/owner.hpp") for m in found[:1]]
    lenient = [_moved(m, "cpp/include/fletching/format.hpp") for m in found[:20]]
    verdicts = _verdicts(strict, none, "")
    assert report.problems(verdicts)[0] == (
        f"{strict[0].place}: survived: expected killed in stratum 'owner'"
    )
    assert strict[0].place in report.as_text(verdicts)
    most = [*_verdicts(lenient[1:], none, "t"), *_verdicts(lenient[:1], none, "")]
    assert report.problems(most) == []
    fewer = [*_verdicts(lenient[2:], none, "t"), *_verdicts(lenient[:2], none, "")]
    assert report.problems(fewer) == ["killed: too few: expected at least 95%, got 18 of 20"]


def _moved(mutant: Mutant, file: str) -> Mutant:
    return replace(mutant, file=file)


def test_equivalent_is_not_survivor(found: list[Mutant], tmp_path: Path) -> None:
    one = _moved(found[0], "cpp/include/fletching/owner.hpp")
    known = _equivalents(tmp_path, [one], _entry(one))
    verdicts = _verdicts([one], known, "")
    assert [v.result for v in verdicts] == [report.EQUIVALENT]
    assert report.problems(verdicts) == []
    assert list(known.broken([])) == []
    assert list(known.broken([one])) == [one]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"after": "elsewhere"}, "no such mutant: expected one of --list"),
        ({"nth": 9}, "no such mutant"),
        ({"reason": ""}, "reason: expected a text, got none"),
        ({"more": "x"}, "keys: expected after, before, file, function, kind, reason"),
    ],
)
def test_wrong_equivalent_is_error(
    found: list[Mutant], tmp_path: Path, change: dict[str, str], expected: str
) -> None:
    with pytest.raises(EquivalentsError, match=expected):
        _equivalents(tmp_path, found, {**_entry(found[0]), **change})


def test_compile_error_is_attributed_to_mutant(tmp_path: Path) -> None:
    """The innermost mutant at the error's location, even inside another one."""
    text = b"int f() { return g(1) + 2; }\n"
    outer = Mutant("a.hpp", 17, 25, 1, 18, "outer", "f", "", "", "(M(@NUMBER@) ? 0 : ", ")")
    inner = Mutant("a.hpp", 19, 20, 1, 20, "inner", "f", "", "", "(M(@NUMBER@) ? nil : ", ")")
    tree = Tree(tmp_path / "tree")
    tree.folder.mkdir()
    tree.build.mkdir()
    written, tree._placed["a.hpp"] = insert(text, [(0, outer), (1, inner)])
    (tree.folder / "a.hpp").write_bytes(written)
    column = written.index(b"nil") + 1
    error = f"../tree/a.hpp:1:{column}: error: use of undeclared identifier\n"
    assert [m.kind for m in tree.blamed(error)] == ["inner"]
    behind = f"../tree/a.hpp:1:{written.index(b'+') + 1}: error: no operator +\n"
    assert [m.kind for m in tree.blamed(behind)] == ["outer"]
    assert list(tree.blamed("../tree/b.hpp:1:1: error: no mutant is there\n")) == []


def test_inserts_adjacent_and_nested_mutants_in_order() -> None:
    def at(begin: int, end: int, name: str) -> Mutant:
        return Mutant("a", begin, end, 1, 1, name, "f", "", "", f"<{name}@NUMBER@ ", f" {name}>")

    chosen = list(
        enumerate([at(0, 1, "e"), at(0, 4, "a"), at(4, 8, "b"), at(0, 4, "c"), at(1, 2, "d")])
    )
    text, placed = insert(b"x+y;z*w;", chosen)
    assert text == b"<a1 <c3 <e0 x e><d4 + d>y; c> a><b2 z*w; b>"
    assert {p.mutant.kind: text[p.begin : p.end] for p in placed}["d"] == b"<d4 + d>"


PYTHON = b'''
"""A module."""
LIMIT = 1


class Reader:
    def read(self, text: str, flag: bool = True) -> int:
        if flag and len(text) < 3:
            self.count = 0
            return len(text) + 1
        if not flag:
            raise ValueError(f"{text!r} {1}")
        combine(text, flag)
        return sum(1 for c in text if c) if flag else 2
'''


def test_finds_each_kind_in_python() -> None:
    found = distinct(python_mutants.of_text("reader.py", PYTHON))
    assert {(m.kind, m.before, m.after) for m in found} == {
        ("logic", "flag and len(text) < 3", "flag or len(text) < 3"),
        ("condition", "flag and len(text) < 3", "not (flag and len(text) < 3)"),
        ("relation", "len(text) < 3", "len(text) <= 3"),
        ("constant", "3", "3 + 1"),
        ("statement", "self.count = 0", "pass"),
        ("constant", "0", "1"),
        ("exit", "return len(text) + 1", "pass"),
        ("return", "len(text) + 1", "None"),
        ("arithmetic", "len(text) + 1", "len(text) - 1"),
        ("constant", "1", "0"),
        ("not", "not flag", "flag"),
        ("statement", 'raise ValueError(f"{text!r} {1}")', "pass"),
        ("statement", "combine(text, flag)", "pass"),
        ("arguments", "combine(text, flag)", "combine(flag, text)"),
        ("return", "sum(1 for c in text if c) if flag else 2", "None"),
        ("condition", "flag", "not (flag)"),
        ("condition", "c", "not (c)"),
        ("constant", "2", "2 + 1"),
    }
    assert {m.function for m in found} == {"Reader.read"}


def test_python_with_all_mutants_runs_selected_mutant(tmp_path: Path) -> None:
    found = distinct(python_mutants.of_text("reader.py", PYTHON))
    text, _ = insert(PYTHON, list(enumerate(found)))
    assert text.count(b"\n") == PYTHON.count(b"\n")
    (tmp_path / "reader.py").write_bytes(text)
    check = "import reader; reader.combine = print; assert reader.Reader().read('ab') == 3"
    command = (str(ROOT / ".venv" / "bin" / "python"), "-c", check)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{HOME}"}
    tests = trials.record(
        [trials.Test("reader", command, tmp_path)], environment, tmp_path / "seen"
    )
    killed = {
        m.kind
        for n, m in numbered(found).items()
        if trials.attempt(n, tests, environment).killed_by
    }
    assert killed == {"condition", "arithmetic", "constant", "exit", "return"}


def test_sample_is_independent_of_other_code() -> None:
    mutants = [
        Mutant(f"cpp/include/fletching/{name}.hpp", i, i + 1, i, 1, "k", "f", str(i), "x", "", "")
        for name in ("owner", "format", "async_task")
        for i in range(100)
    ]
    before = sample.sample(mutants)
    assert [
        len([m for m in before if sample.stratum_of(m).name == n]) for n in ("owner", "async")
    ] == [16, 40]
    others_gone = [replace(m) for m in mutants if m in before]
    assert sample.sample(others_gone) == before
    assert {sample.stratum_of(m).name for m in sample.few(before, 3)} == {
        "owner",
        "headers",
        "async",
    }


def test_restores_sources_for_generator(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree", tmp_path / "root")
    for name in ("cpp/a.h", "generator/a.py"):
        for root, text in ((tree._root, "original"), (tree.folder, "mutated")):
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text(text)
        tree._placed[name] = []
    tree.restore("cpp/")
    assert (tree.folder / "cpp/a.h").read_text() == "original"
    assert (tree.folder / "generator/a.py").read_text() == "mutated"
