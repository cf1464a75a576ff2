"""The cases match case.schema.json and name existing rules and errata of the spec."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from ruamel.yaml import YAML

HERE = Path(__file__).parent
SPEC = HERE.parents[1] / "spec"
CASES: list[dict[str, Any]] = [
    case
    for file in ("public.json", "data.json", "hostile.json")
    for case in json.loads((HERE / file).read_text())["cases"]
]
SCHEMA = json.loads((HERE / "case.schema.json").read_text())


def _ids(*files: Path, key: str) -> set[str]:
    return {entry["id"] for file in files for entry in YAML(typ="safe").load(file)[key]}


def test_cases_match_schema() -> None:
    Draft202012Validator(SCHEMA).validate({"cases": CASES})


def test_rejects_unknown_key() -> None:
    with pytest.raises(ValidationError, match="lenght"):
        Draft202012Validator(SCHEMA).validate({"cases": [{**CASES[0], "lenght": 1}]})


def test_case_above_32_bit_size_is_marked() -> None:
    large = [case for case in CASES if re.search(r'"zeros": \d{10}', json.dumps(case))]
    assert large
    for case in large:
        assert case.get("pointer_bits") == 64, case["name"]


def test_names_are_unique() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))


def test_rules_and_errata_exist() -> None:
    rules = _ids(*(SPEC / "rules").glob("*.yaml"), key="rules")
    errata = _ids(SPEC / "errata.yaml", key="errata")
    assert {case["rule"] for case in CASES if "rule" in case} <= rules
    assert {case["erratum"] for case in CASES if "erratum" in case} <= errata


def test_each_layout_rule_has_case() -> None:
    rules = {
        rule for rule in _ids(SPEC / "rules" / "c-data.yaml", key="rules") if rule[:7] == "layout."
    }
    assert rules == {case["rule"] for case in CASES if case.get("rule", "")[:7] == "layout."}
