"""The cases of each rule of spec/rules/ that a validator or a test checks, as a table.

    rule_cases.py

A rule has a case that violates it and a similar valid one. They are, in this order:
- a case of tests/corpus: `-bad` and `-good`, `misspelling.` and `spelling.`;
- a subject of tests/conformance/breaks with the fault, and the case that finds it, which passes
  without the fault;
- a call in the tables of the layer's tests, each with the nearest valid one;
- a language's test of that name, which plays both.
For a rule without cases, `no_case` of the spec gives the reason.
Exit codes: 0 no case is missing, 1 one is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fletching_generator.rules.rulebook import Rule, load_rulebook
from fletching_generator.spec.load import load_spec

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from languages import ROOT, load
from rule_tables import BREAKS, find_tests, letters

CORPUS = "tests/corpus"
# Each entry violates a rule, and has the nearest valid call.
PAIRS = ("async_rules_test", "stream_rules_test")
# Each change violates a rule for the same valid members.
CHANGES = "members_test"

Cases = Mapping[str, tuple[str, str]]  # by the rule's letters: the violating and the valid case

_TEST = re.compile(r"^TEST\((\w+), (\w+)\) (\{.*\}\n|\{\n[\s\S]*?^\}\n)", re.MULTILINE)
_CASE = re.compile(r'"([a-z0-9-]+\.[a-z0-9.-]+)"')
_PLAIN_CASE = re.compile(r'"([a-z0-9_]+)"')  # a case of the catalogue
_HELPER = re.compile(r"\{ (\w+)\(\); \}")
_FINDING = re.compile(r'"([a-z-]+\.[a-z0-9-]+) (?:error|warning)')
_OF_STREAM = re.compile(r'\{"((?:-result)?\.[a-z0-9-]+)"')


def corpus_cases(root: Path) -> Cases:
    files = sorted((root / CORPUS).glob("*.json"))
    listed = [json.loads(path.read_text("utf-8")).get("cases", []) for path in files]
    cases = {case["name"]: case for each in listed for case in each}
    found: dict[str, tuple[str, str]] = {}
    for name, case in cases.items():
        valid = re.sub(r"^misspelling(\..*)-\d+$", r"spelling\1", re.sub(r"-bad$", "-good", name))
        keeps = valid != name and cases.get(valid, {}).get("verdict") == "accept"
        if case["verdict"] == "refuse" and keeps:
            found.setdefault(letters(case["rule"]), (f"corpus {name}", f"corpus {valid}"))
    return found


def broken_cases(root: Path) -> Cases:
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((root / BREAKS).glob("*_test.cpp")):
        text = path.read_text("utf-8")
        for group, name, body in _TEST.findall(text):
            helper = _HELPER.fullmatch(body.strip())
            code = _body(helper[1], text) if helper else body
            if case := _CASE.search(code) or _PLAIN_CASE.search(code):
                found[letters(name)] = (f"{group}.{name}", f"{group} {case[1]}")
    return found


def _body(function: str, text: str) -> str:
    return text.partition(f"void {function}() {{\n")[2].partition("\n}\n")[0]


def layer_cases(folder: Path) -> Cases:
    pairs, changes = (
        {name: (folder / f"{name}.cpp").read_text("utf-8") for name in names}
        for names in (PAIRS, (CHANGES,))
    )
    of_streams = [rule for text in pairs.values() for rule in _OF_STREAM.findall(text)]
    rules = [f"{kind}{rule}" for kind in ("stream", "device-stream") for rule in of_streams]
    rules += [rule for text in pairs.values() for rule in _FINDING.findall(text)]
    found = {letters(rule): ("layer, broken", "layer, valid") for rule in rules}
    for rule in _FINDING.findall(changes[CHANGES]):
        found.setdefault(letters(rule), ("layer, changed member", "layer, unchanged members"))
    return found


def tested(root: Path) -> Cases:
    found: dict[str, tuple[str, str]] = {}
    for language in load(root).values():
        if language.rules is not None:
            for name, path in find_tests(language, root).items():
                found.setdefault(letters(name), (f"{path} {name}",) * 2)
    return found


def sources(root: Path) -> Sequence[Cases]:
    validate = next(root.glob("*/tests/validate"))
    return corpus_cases(root), broken_cases(root), layer_cases(validate), tested(root)


def rows(rules: Sequence[Rule], found: Sequence[Cases]) -> Iterator[tuple[Rule, str, str]]:
    """Yields each rule with its two cases, or with empty strings."""
    for rule in rules:
        if rule.check in {"validator", "test"}:
            own = [cases[letters(rule.id)] for cases in found if letters(rule.id) in cases]
            yield rule, *(own[0] if own else ("", ""))


def problems(rules: Sequence[Rule], found: Sequence[Cases]) -> Iterator[str]:
    for rule, breaks, _ in rows(rules, found):
        if not breaks and rule.no_case is None:
            yield f"{rule.id}: no case: expected one that breaks it, or 'no_case' in spec/rules/"
        if breaks and rule.no_case is not None:
            yield f"{rule.id}: no_case: it has one, {breaks}: remove the reason"


def main() -> int:
    rules, found = load_rulebook(ROOT, load_spec(ROOT)).rules, sources(ROOT)
    print("| rule | case that breaks it | case that just keeps it |", "|---|---|---|", sep="\n")
    for rule, breaks, keeps in rows(rules, found):
        print(f"| {rule.id} | {breaks or f'none: {rule.no_case}'} | {keeps} |")
    missing = list(problems(rules, found))
    print(*missing, sep="\n", file=sys.stderr, end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
