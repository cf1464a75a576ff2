"""The reports of a run: a recorded one is judged again, as text, SARIF, JUnit, and with known
findings left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import REPOSITORY, Run, validate

RULES = {
    "array.buffers-null-only-when",
    "check.call-fails",
    "release.marks-released",
    "stream.errno-codes",
}


@pytest.fixture(scope="module")
def record(library: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the record of the broken stream."""
    path = tmp_path_factory.mktemp("records") / "run.json"
    target = f"{library('BROKEN')}:count_stream"
    assert validate(target, "--as", "stream-producer", "--record", path).code == 1
    return path


def test_replay_has_the_findings_of_the_run(record: Path) -> None:
    run = validate("--replay", record, "--json")
    assert (run.code, run.rules()) == (1, RULES)
    assert run.report["target"].endswith("libbroken.so as stream-producer")


def test_record_has_every_call_with_its_result(record: Path) -> None:
    lines = json.loads(record.read_text("utf-8"))["lines"]
    calls = [line["call"] for line in lines if "call" in line]
    assert calls[:2] == ["stream-producer", "stream-producer returned 0"]
    assert "get_next[2] returned -5" in calls


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a file of --record"),
        ("[]", "expected a file of --record"),
        ('{"format": 1}', "expected a file of --record"),
        ('{"format": 2}', "format: expected 1, got 2"),
    ],
)
def test_replay_rejects_other_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text, "utf-8")
    run = validate("--replay", path)
    assert (run.code, run.output) == (2, "")
    assert f"run.json: {message}" in run.errors


def test_sarif_has_required_members(record: Path, tmp_path: Path) -> None:
    """The members that the schema of SARIF 2.1.0 requires, and the limits of its enums."""
    path = tmp_path / "run.sarif"
    assert validate("--replay", record, "--sarif", path).code == 1
    log: dict[str, Any] = json.loads(path.read_text("utf-8"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "fletching"
    ids = [rule["id"] for rule in driver["rules"]]
    assert (set(ids), len(set(ids))) == (RULES, len(ids))
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert ids[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("libbroken.so")
    assert {result["ruleId"] for result in run["results"]} == RULES


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("libmine.so", "libmine.so"),
        (str(REPOSITORY / "build/my lib.so"), "build/my%20lib.so"),
        ("/opt/my lib.so", "file:///opt/my%20lib.so"),
    ],
)
def test_sarif_names_file_relative_to_folder(
    record: Path, tmp_path: Path, file: str, uri: str
) -> None:
    copy, path = tmp_path / "run.json", tmp_path / "run.sarif"
    copy.write_text(json.dumps({**json.loads(record.read_text("utf-8")), "file": file}), "utf-8")
    assert validate("--replay", copy, "--sarif", path).code == 1
    (run,) = json.loads(path.read_text("utf-8"))["runs"]
    for result in run["results"]:
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_junit_has_a_case_for_each_case(record: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.xml"
    assert validate("--replay", record, "--junit", path).code == 1
    (suite,) = ElementTree.parse(path).getroot()
    cases = {each.attrib["name"]: [f.attrib["type"] for f in each] for each in suite}
    assert suite.attrib["tests"] == str(len(cases)) == "10"
    assert "stream.errno-codes" in cases["read"]
    assert cases["leak"] == []
    assert suite.attrib["failures"] == str(sum(map(bool, cases.values())))


# --- Suppressions ---


def suppressed(record: Path, folder: Path, text: str) -> Run:
    path = folder / "known.yaml"
    path.write_text(f"suppressions:\n{text}", "utf-8")
    return validate("--replay", record, "--suppress", path, "--json")


def test_suppression_removes_its_findings(record: Path, tmp_path: Path) -> None:
    run = suppressed(record, tmp_path, "  - rule: stream.errno-codes\n    reason: known\n")
    assert (run.code, run.rules()) == (1, RULES - {"stream.errno-codes"})


def test_every_finding_suppressed_exits_0(record: Path, tmp_path: Path) -> None:
    entries = "".join(f"  - rule: {rule}\n    reason: known\n" for rule in RULES)
    run = suppressed(record, tmp_path, entries)
    assert (run.code, run.report["findings"], run.report["ok"]) == (0, [], True)


def test_suppression_of_other_path_is_unused(record: Path, tmp_path: Path) -> None:
    entry = "  - rule: stream.errno-codes\n    path: get_schema*\n    reason: known\n"
    run = suppressed(record, tmp_path, entry)
    assert (run.code, run.rules()) == (1, RULES | {"check.suppression-unused"})
    entry = "  - rule: stream.errno-codes\n    path: get_next[?]\n    reason: known\n"
    assert suppressed(record, tmp_path, entry).rules() == RULES - {"stream.errno-codes"}


def test_expired_suppression_is_finding(record: Path, tmp_path: Path) -> None:
    entry = "  - rule: stream.errno-codes\n    reason: known\n    expires: 2020-01-01\n"
    run = suppressed(record, tmp_path, entry)
    assert (run.code, run.rules()) == (1, RULES | {"check.suppression-expired"})


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("  - rule: stream.errno-codes\n", "known.yaml:2: suppressions[0]: 'reason' is missing"),
        ("  - rule: no.rule\n    reason: known\n", "known.yaml:2: suppressions[0].rule: unknown"),
        (
            "  - rule: stream.errno-codes\n    reason: known\n    expires: soon\n",
            "known.yaml:4: suppressions[0].expires: ",
        ),
    ],
)
def test_wrong_suppression_exits_2(record: Path, tmp_path: Path, entry: str, text: str) -> None:
    run = suppressed(record, tmp_path, entry)
    assert (run.code, run.output) == (2, "")
    assert text in run.errors


# --- Rules ---


def test_explain_prints_rule_source_and_examples() -> None:
    run = validate("--explain", "layout.offsets-monotone")
    assert run.code == 0
    for text in ("No offset is less", "error, producer", "source: Columnar format", "page: http"):
        assert text in run.output
    assert "\nbad: " in run.output and "\ngood: " in run.output


def test_explain_rule_without_example_says_why() -> None:
    run = validate("--explain", "stream.errno-codes")
    assert (run.code, "no example: a call breaks it" in run.output) == (0, True)
    assert "CStreamInterface.html#error-codes" in run.output
    assert "did not end within" in validate("--explain", "check.hang").output


def test_explain_unknown_rule_exits_2() -> None:
    run = validate("--explain", "no.rule")
    assert (run.code, run.output) == (2, "")
    assert "no.rule: unknown rule" in run.errors
