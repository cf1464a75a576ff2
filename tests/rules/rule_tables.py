"""Every rule of spec/rules/ has a test in each language with `[rules]`, or a reason in its table.

    elsewhere:
      why: it is about Python's objects
      rules: [capsule.*, cai.entries]

A test belongs to `async-request.positive` if its name has the same letters and digits:
`async_request_positive`, `AsyncRequestPositive`. A test in tests/conformance/breaks counts for each
language whose subject plays its group. A rule that the spec calls not checkable needs neither.
For the reason `core`, the language named by `core` has the test.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from fletching_generator.rules.rulebook import Rule
from languages import FILE, ROOT, Language, LanguageError, read

# The reasons, with the values of `check` in the spec that they are allowed for.
REASONS = {
    "compiler": {"compile"},
    "core": {"test", "static", "validator"},
    "elsewhere": {"test", "static", "validator"},
    "never": {"test", "static", "validator"},
    "user": {"test"},
    "validator": {"validator"},
}

Tests = Mapping[str, str]  # {"async_request_positive": "cpp/tests/async_consumer_test.cpp"}

BREAKS = "tests/conformance/breaks"  # subjects that violate a rule, which the suite must find
_BREAK = re.compile(r"^TEST\((\w+), (\w+)\)", re.MULTILINE)


def problems(language: Language, rules: Sequence[Rule], root: Path = ROOT) -> Iterator[str]:
    """One line per problem. Raises LanguageError for an unreadable file."""
    if language.rules is None:
        return
    table = f"{language.folder}/{language.rules.table}"
    tests = find_tests(language, root)
    broken = find_breaks(language, root)
    known, tested = {letters(rule.id) for rule in rules}, {letters(name) for name in tests}
    found = tested | {letters(name) for name in broken}
    for name, path in (*tests.items(), *broken.items()):
        if letters(name) not in known:
            yield f"{path}: {name}: no such rule: expected the name of a rule of spec/rules/"
    excused: dict[str, str] = {}
    for reason, pattern in entries(root / table, table):
        matching = [rule for rule in rules if fnmatchcase(rule.id, pattern)]
        if not matching:
            yield f"{table}: {pattern}: no such rule: expected the id of a rule of spec/rules/"
        for rule in matching:
            if rule.check == "not_checkable" and "*" in pattern:
                continue
            if rule.id in excused:
                yield f"{table}: {rule.id}: duplicate: expected one reason"
            if letters(rule.id) in (tested if "*" in pattern else found):
                yield f"{table}: {rule.id}: it has a test: remove it here"
            if rule.check not in REASONS[reason]:
                checks = " or ".join(sorted(REASONS[reason]))
                yield f"{table}: {rule.id}: {reason}: expected check {checks}, got {rule.check}"
            excused[rule.id] = reason
    for rule in rules:
        checkable = rule.check != "not_checkable"
        if checkable and rule.id not in excused and letters(rule.id) not in found:
            yield f"{table}: {rule.id}: no test: expected one of that name, or a reason here"
    left = [rule_id for rule_id, reason in excused.items() if reason == "core"]
    yield from without_core_test(table, language.rules.core, left, root)


def without_core_test(
    table: str, core: str | None, left: Sequence[str], root: Path
) -> Iterator[str]:
    """The rules with the reason `core` that have no test of that name in the core."""
    tested = set(map(letters, find_tests(read(root / core / FILE, root), root))) if core else set()
    for rule_id in left:
        if letters(rule_id) not in tested:
            yield f"{table}: {rule_id}: core: expected a test in {core or 'rules.core'}"


def letters(name: str) -> str:
    """The common form of a rule's names in all languages."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_tests(language: Language, root: Path) -> Tests:
    assert language.rules is not None
    where, home = f"{language.folder}/{FILE}: rules", root / language.folder
    try:
        pattern = re.compile(language.rules.test)
    except re.error as error:
        raise LanguageError(f"{where}.test: expected a regular expression: {error}") from error
    if pattern.groups != 1:
        raise LanguageError(f"{where}.test: expected one group, got {pattern.groups}")
    found: dict[str, str] = {}
    for files in language.rules.files:
        for name in sorted(glob.glob(files, root_dir=home, recursive=True)):
            path = (home / name).resolve()
            for test in pattern.findall(path.read_text(encoding="utf-8")):
                found[test] = path.relative_to(root.resolve()).as_posix()
    return found


def find_breaks(language: Language, root: Path) -> Tests:
    """The tests of BREAKS for the groups that the language's subject plays."""
    assert language.rules is not None
    not_played = language.rules.not_played
    if not_played is None:
        return {}
    without = {letters(group) for group in not_played}
    return {
        test: path.relative_to(root).as_posix()
        for path in sorted((root / BREAKS).glob("*_test.cpp"))
        for group, test in _BREAK.findall(path.read_text(encoding="utf-8"))
        if letters(group) not in without
    }


def entries(path: Path, where: str) -> list[tuple[str, str]]:
    """Returns the reason and the pattern of each table entry."""
    try:
        table: Any = YAML(typ="safe").load(path)
    except (OSError, YAMLError) as error:
        raise LanguageError(f"{where}: {error}") from error
    if not isinstance(table, dict) or not set(table) <= set(REASONS):
        got = ", ".join(map(str, table)) if isinstance(table, dict) else table
        raise LanguageError(f"{where}: expected some of {', '.join(REASONS)}, got {got}")
    for reason, entry in table.items():
        if not isinstance(entry, dict) or set(entry) != {"why", "rules"}:
            raise LanguageError(f"{where}: {reason}: expected 'why' and 'rules', got {entry}")
        if not (entry["why"] and isinstance(entry["rules"], list)):
            raise LanguageError(f"{where}: {reason}: expected a text and a list, got {entry}")
    return [(reason, pattern) for reason, entry in table.items() for pattern in entry["rules"]]
