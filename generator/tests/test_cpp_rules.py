"""Every rule has a C++ test that is called after it, or a reason in cpp/tests/rules.yaml.

TEST(Rules, async_request_positive) is the test of async-request.positive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import pytest
from conftest import REPOSITORY
from ruamel.yaml import YAML

from fletching_generator.rules.rulebook import Rule, load_rulebook
from fletching_generator.spec.load import load_spec

TABLE = "cpp/tests/rules.yaml"
TEST = re.compile(r"^TEST(?:_F)?\(Rules, (\w+)\)", re.MULTILINE)
# The reasons that there are, and which rules they may be given for: their `check` in the spec.
REASONS = {
    "compiler": {"compile"},
    "python": {"test", "static", "validator"},
    "never": {"test", "static"},
    "user": {"test"},
    "validator": {"validator"},
}

Tests = Mapping[str, str]  # {"async_request_positive": "cpp/tests/async_consumer_test.cpp"}
Table = Mapping[str, Mapping[str, Any]]  # {"python": {"why": "...", "rules": ["capsule.*"]}}


def problems(rules: Sequence[Rule], tests: Tests, table: Table) -> Iterator[str]:
    ids = {_name(rule.id): rule for rule in rules}
    for test in sorted(tests.keys() - ids.keys()):
        yield f"{tests[test]}: no rule is called '{test}'; mend its name, or leave the suite Rules"
    excused: dict[str, str] = {}
    for reason, entry in table.items():
        if reason not in REASONS or set(entry) != {"why", "rules"}:
            known = ", ".join(REASONS)
            yield f"{TABLE}: '{reason}' has to be one of {known}, with 'why' and 'rules'"
            continue
        for pattern in entry["rules"]:
            matching = [rule for rule in rules if fnmatchcase(rule.id, pattern)]
            if not matching:
                yield f"{TABLE}: no rule is called '{pattern}'; remove it"
            for rule in matching:
                if rule.check == "not_checkable" and "*" in pattern:
                    continue
                yield from _check_entry(rule, reason, tests, excused)
                excused[rule.id] = reason
    for rule in rules:
        has_test = _name(rule.id) in tests
        if not has_test and rule.id not in excused and rule.check != "not_checkable":
            yield f"{rule.id}: write TEST(Rules, {_name(rule.id)}), or name the reason in {TABLE}"


def _check_entry(
    rule: Rule, reason: str, tests: Tests, excused: Mapping[str, str]
) -> Iterator[str]:
    if rule.id in excused:
        yield f"{TABLE}: '{rule.id}' stands twice"
    if _name(rule.id) in tests:
        yield f"{TABLE}: '{rule.id}' has a test in {tests[_name(rule.id)]}; remove it here"
    if rule.check not in REASONS[reason]:
        check = f"'check: {rule.check}' in the spec, which '{reason}' does not explain"
        yield f"{TABLE}: '{rule.id}' has {check}"


def _name(rule_id: str) -> str:
    return rule_id.replace("-", "_").replace(".", "_")


@cache
def the_rules() -> tuple[Rule, ...]:
    return load_rulebook(REPOSITORY, load_spec(REPOSITORY)).rules


@cache
def the_tests() -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in ("cpp", "tests"):
        for path in sorted((REPOSITORY / folder).rglob("*_test.cpp")):
            for name in TEST.findall(path.read_text(encoding="utf-8")):
                found[name] = path.relative_to(REPOSITORY).as_posix()
    return found


@cache
def the_table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = YAML(typ="safe").load(REPOSITORY / TABLE)
    return table


def test_every_rule_has_a_test_or_a_reason() -> None:
    assert not list(problems(the_rules(), the_tests(), the_table()))


def test_names_of_tests_are_names_of_one_rule() -> None:
    assert len({_name(rule.id) for rule in the_rules()}) == len(the_rules())


@pytest.mark.parametrize("path", sorted(set(the_tests().values())))
def test_the_file_is_built(path: str) -> None:
    source = REPOSITORY / path
    lists = (source.parent / "CMakeLists.txt").read_text(encoding="utf-8")
    # By its name, or as add_library_test(metadata) means metadata_test.cpp.
    word = source.stem.removesuffix("_test")
    assert re.search(rf"\b{source.name}\b|[ (]{word}[ )]", lists), path


SPOILED: dict[str, tuple[dict[str, str], dict[str, list[str]], str]] = {
    "a rule in neither": (
        {},
        {"python": ["capsule.*"]},
        "write TEST\\(Rules, async_request_positive\\)",
    ),
    "a test without a rule": (
        {"async_request": "a_test.cpp"},
        {},
        "a_test.cpp: no rule is called 'async_request'",
    ),
    "an unknown id": ({}, {"validator": ["array.nothing"]}, "no rule is called 'array.nothing'"),
    "a glob without a rule": ({}, {"python": ["capsules.*"]}, "no rule is called 'capsules.\\*'"),
    "a rule in both": (
        {"array_null_count_correct": "b_test.cpp"},
        {"validator": ["array.null-count-correct"]},
        "'array.null-count-correct' has a test in b_test.cpp",
    ),
    "a rule twice": (
        {},
        {"python": ["capsule.*", "capsule.names"]},
        "'capsule.names' stands twice",
    ),
    "an unknown reason": (
        {},
        {"tomorrow": ["capsule.*"]},
        "'tomorrow' has to be one of compiler, python,",
    ),
    "a reason that does not fit": (
        {},
        {"compiler": ["async-request.positive"]},
        "'async-request.positive' has 'check: \\w+' in the spec, which 'compiler' does not explain",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_spoiled(name: str) -> None:
    tests, rules, expected = SPOILED[name]
    table = {reason: {"why": "because", "rules": patterns} for reason, patterns in rules.items()}
    assert any(re.search(expected, line) for line in problems(the_rules(), tests, table))
