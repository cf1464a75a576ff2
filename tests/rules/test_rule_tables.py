"""Compares the rules of the spec with the tests of each language and of a fake one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fletching_generator.rules.rulebook import Rule, load_rulebook
from fletching_generator.spec.load import load_spec
from languages import ROOT, LanguageError, load, read
from rule_tables import BREAKS, letters, problems

THE_RULES = load_rulebook(ROOT, load_spec(ROOT)).rules
KNOWN = {name: each for name, each in load().items() if each.rules}
RULES = [
    Rule("bow.string-set", "producer", "error", "The string is set.", "test"),
    Rule("bow.unbroken", "producer", "error", "The bow is whole.", "compile"),
    Rule("bow.drawn", "user", "error", "Somebody draws it.", "test"),
    Rule("bow.beauty", "user", "warning", "The bow is beautiful.", "not_checkable"),
]
LANGUAGE = """
title = "Quiver"
toolchain = { check = "true", hint = "install Quiver", version = "echo Quiver 1" }
build = { command = "true" }
"""
KEYS = """
[rules]
table = "rules.yaml"
files = ["tests/*.q"]
test = 'test (\\w+)'
"""
TABLE = """
compiler: {why: a broken one does not compile, rules: [bow.u*]}
user: {why: nobody else can, rules: [bow.drawn]}
"""


@pytest.mark.parametrize("name", KNOWN)
def test_every_rule_has_test_or_reason(name: str) -> None:
    assert list(problems(KNOWN[name], THE_RULES)) == []


@pytest.mark.parametrize("name", KNOWN)
def test_not_played_names_are_suite_groups(name: str) -> None:
    suite = (ROOT / "tests" / "conformance" / "run.cpp").read_text(encoding="utf-8")
    rules = KNOWN[name].rules
    assert rules is not None and rules.not_played is not None
    assert all(f'Group{{"{group}", ' in suite for group in rules.not_played)


def test_names_of_rules_are_unambiguous() -> None:
    assert len({letters(rule.id) for rule in THE_RULES}) == len(THE_RULES) > 0


def home(root: Path, keys: str, name: str = "quiver") -> Path:
    path = root / "bindings" / name / "language.toml"
    path.parent.mkdir(parents=True)
    path.write_text(LANGUAGE + keys, encoding="utf-8")
    return path


def check(
    root: Path, table: str, tests: str, keys: str = KEYS, breaks: str | None = None
) -> list[str]:
    path = home(root, keys)
    if breaks is not None:
        (root / BREAKS).mkdir(parents=True)
        (root / BREAKS / "a_test.cpp").write_text(breaks, encoding="utf-8")
    (path.parent / "rules.yaml").write_text(table, encoding="utf-8")
    (path.parent / "tests").mkdir()
    (path.parent / "tests" / "a.q").write_text(tests, encoding="utf-8")
    return list(problems(read(path, root), RULES, root))


def test_invented_language_keeps_every_rule(tmp_path: Path) -> None:
    assert check(tmp_path, TABLE, "test BowStringSet") == []


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ("bow_drawn", []),
        (
            "bow_unbroken",
            ["bindings/quiver/rules.yaml: bow.drawn: core: expected a test in bindings/zither"],
        ),
    ],
)
def test_core_rule_requires_test_in_core(tmp_path: Path, test: str, lines: list[str]) -> None:
    tests = home(tmp_path, KEYS, "zither").parent / "tests"
    tests.mkdir()
    (tests / "b.q").write_text(f"test {test}", encoding="utf-8")
    keys = KEYS + 'core = "bindings/zither"\n'
    assert check(tmp_path, TABLE.replace("user", "core"), "test bow_string_set", keys) == lines


@pytest.mark.parametrize(
    ("not_played", "lines"), [(None, 1), ("[]", 0), ('["bow-strings"]', 1), ('["arrows"]', 0)]
)
def test_break_counts_for_languages_playing_group(
    tmp_path: Path, not_played: str | None, lines: int
) -> None:
    keys = KEYS if not_played is None else KEYS + f"not_played = {not_played}\n"
    found = check(tmp_path, TABLE, "", keys, "TEST(BowStrings, BowStringSet) {}\n")
    assert len(found) == lines


def test_break_must_name_rule(tmp_path: Path) -> None:
    keys = KEYS + "not_played = []\n"
    found = check(tmp_path, TABLE, "test bow_string_set", keys, "TEST(Bows, BowStringUnset) {}\n")
    said = "BowStringUnset: no such rule: expected the name of a rule of spec/rules/"
    assert found == [f"{BREAKS}/a_test.cpp: {said}"]


@pytest.mark.parametrize(
    ("table", "tests", "said"),
    [
        (TABLE, "", "rules.yaml: bow.string-set: no test: expected one of that name, or a reason"),
        (TABLE.replace("bow.u*", "bow.x*"), "test bow_string_set", "rules.yaml: bow.x*: no such"),
        (TABLE, "test bow_string", "tests/a.q: bow_string: no such rule: expected the name of"),
        (TABLE, "test bow_string_set\ntest bow_drawn", "bow.drawn: it has a test: remove it here"),
        (TABLE.replace("bow.u*", "bow.*"), "", "bow.drawn: compiler: expected check compile, got"),
        (TABLE.replace("bow.u*", "bow.*"), "", "bow.drawn: duplicate: expected one reason"),
    ],
)
def test_inconsistent_table_is_reported(tmp_path: Path, table: str, tests: str, said: str) -> None:
    assert any(said in line for line in check(tmp_path, table, tests))


@pytest.mark.parametrize(
    ("table", "keys", "said"),
    [
        (
            "tomorrow: {why: a, rules: []}",
            KEYS,
            "expected some of compiler, core, elsewhere, never,",
        ),
        ("user: {rules: []}", KEYS, "rules.yaml: user: expected 'why' and 'rules'"),
        ("user: {why: a, rules: bow}", KEYS, "rules.yaml: user: expected a text and a list"),
        (":", KEYS, "rules.yaml: expected some of"),
        ("[", KEYS, "rules.yaml: while parsing"),
        (TABLE, KEYS.replace("rules.yaml", "none"), "bindings/quiver/none: "),
        (TABLE, KEYS.replace("(", ""), "language.toml: rules.test: expected a regular expression"),
        (TABLE, KEYS.replace("(", "(?:"), "language.toml: rules.test: expected one group, got 0"),
        (TABLE, KEYS.replace("files", "file"), "rules.file: unknown key: expected one of table,"),
    ],
)
def test_unreadable_table_is_rejected(tmp_path: Path, table: str, keys: str, said: str) -> None:
    with pytest.raises(LanguageError) as error:
        check(tmp_path, table, "", keys)
    assert said in str(error.value)
