"""The merged results and the text of the page, for made-up libraries."""

from __future__ import annotations

import datetime
import os
import select
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import page
import table

LIBRARY = {
    "version": "1.2.0",
    "released": "2026-01-02",
    "producers": {"array": "feather:Array()", "table": "feather:Table()"},
    "consumers": {"take": "stream-consumer feather:take"},
    "skip": {"stream.slow": "takes an hour"},
}
DATA = {"libraries": {"feather": LIBRARY, "quill": {"released": "2026-01-03", "suite": "quill"}},
        "absent": {"goose": "needs a GPU"}}  # fmt: skip
DAY = datetime.date(2026, 1, 4)
URL = f"{table.REPOSITORY}docs/reference/rules/pycapsule.md#capsule.names"
SUITES = {"quill": {"version": "3.0.1", "groups": {"arrays": {"right": 7}}, "wrong": {"a": {}}}}


def _finding(**different: Any) -> dict[str, Any]:
    return {
        "rule": "capsule.names",
        "severity": "error",
        "party": "producer",
        "path": "",
        "message": "__call__: expected arrow_schema, got a|b at 0x7fffdeadbeef",
        "case": "array-producer/capsule-names",
        "more_cases": 0,
        "url": URL,
        **different,
    }


def _report(*findings: dict[str, Any], **different: Any) -> dict[str, Any]:
    case = {"name": "array-producer/capsule-names", "verdict": "wrong"}
    return {
        "target": "feather",
        "cases": [case, case],
        "waits": [],
        "findings": list(findings),
        "incomplete": None,
        **different,
    }


def _summary(*findings: dict[str, Any]) -> dict[str, Any]:
    return table.summary(LIBRARY, {"array": _report(*findings), "table": _report(*findings)})


def _results(*findings: dict[str, Any]) -> dict[str, Any]:
    return {"measured": "2026-11-30", "libraries": {"feather": _summary(*findings)}}


def test_summary_merges_findings_of_one_rule() -> None:
    found = _summary(_finding(), _finding(message="another", more_cases=2))
    assert found["cases"] == {"array-producer": 4}
    (row,) = found["findings"]
    assert (row["cases"], row["targets"]) == (8, ["array", "table"])
    assert row["found"] == "__call__: expected arrow_schema, got a|b at <address>"
    assert row["link"] == "../reference/rules/pycapsule.md#capsule.names"


def test_summary_puts_errors_first() -> None:
    found = _summary(_finding(severity="note"), _finding(rule="a.b"), _finding())
    kinds = [(row["severity"], row["rule"]) for row in found["findings"]]
    assert kinds == [("error", "a.b"), ("error", "capsule.names"), ("note", "capsule.names")]


def test_summary_has_separate_row_for_broken_structs() -> None:
    broken = _finding(message="the process has crashed, given a broken struct")
    assert [row["cases"] for row in _summary(broken, _finding())["findings"]] == [2, 2]


def test_summary_has_no_address_in_message() -> None:
    (row,) = _summary(_finding(path="array", message="got 140737488355327\nand 7"))["findings"]
    assert row["found"] == "array: got <address> and 7"


def test_summary_rejects_incomplete_run() -> None:
    with pytest.raises(table.TableError, match="feather: incomplete: ended early"):
        table.summary(LIBRARY, {"array": _report(incomplete="ended early")})


def test_changes_name_each_difference() -> None:
    before, now = {"feather": _summary(_finding())}, {"feather": _summary()}
    assert list(table.changes(before, before)) == []
    assert [change.partition(": {")[0] for change in table.changes(before, now)] == [
        "feather: no longer, or not the same"
    ]
    assert [change.partition(": {")[0] for change in table.changes(now, before)] == ["feather: new"]
    newer = {"feather": {**now["feather"], "version": "1.3.0"}}
    assert list(table.changes(now, newer)) == ["feather: version: expected 1.2.0, got 1.3.0"]


def test_page_has_verdict_of_each_device() -> None:
    devices = {"cuda": "waits", "vulkan": "refuses", "opencl": "waits"}
    waits = [{"device": name, "verdict": verdict} for name, verdict in devices.items()]
    found = table.summary(LIBRARY, {"take": _report(waits=waits), "array": _report()})
    assert found["waits"] == {"take": "waits: cuda, opencl; refuses: vulkan"}
    results = {"measured": "", "libraries": {"feather": found}}
    lines = page.page(DATA, results, {}, SUITES).splitlines()
    assert "| feather | take | waits: cuda, opencl; refuses: vulkan |" in lines
    assert list(table.changes({"feather": _summary()}, {"feather": found})) == [
        "feather: waits: expected None, got {'take': 'waits: cuda, opencl; refuses: vulkan'}"
    ]


def test_unjudged_names_missing_and_superfluous_entries() -> None:
    results = {"feather": _summary(_finding(), _finding(rule="a.note", severity="note"))}
    assert page.unjudged(results, {"feather": {"error capsule.names": {"report": "a.md"}}}) == []
    assert page.unjudged(results, {"feather": {"error capsule.names": {}}}) == [
        "findings.yaml: expected a report of feather: error capsule.names"
    ]
    assert page.unjudged(results, {"quill": {"error x.y": {}}}) == [
        "findings.yaml: expected an entry feather: error capsule.names",
        "findings.yaml: no such finding: quill: error x.y",
    ]


def test_broken_structs_have_separate_judgement() -> None:
    broken = _finding(severity="warning", message="the process has crashed, given a broken struct")
    results = {"feather": _summary(broken, _finding(severity="warning"))}
    judged: dict[str, Any] = {"feather": {"warning capsule.names": {"judgement": "Confirmed."}}}
    key = "warning capsule.names, given a broken struct"
    text = f"findings.yaml: expected an entry feather: {key}"
    assert page.unjudged(results, judged) == [text]
    judged["feather"][key] = {"judgement": "By design."}
    assert page.unjudged(results, judged) == []
    lines = page.page(DATA, {"measured": "", "libraries": results}, judged, SUITES).splitlines()
    rows = [line for line in lines if line.startswith("| feather | warning")]
    assert [row.count("Confirmed.") for row in rows] == [0, 1]
    assert [row.count("By design.") for row in rows] == [1, 0]


def test_page_has_library_finding_command_and_report() -> None:
    judged = {"feather": {"error capsule.names": {"judgement": "Confirmed.", "report": "names.md"}}}
    lines = page.page(DATA, _results(_finding()), judged, SUITES).splitlines()
    assert "| feather | 1.2.0 | 2026-01-02 | array-producer 4 | 1 | 0 | 0 |  |" in lines
    suite = "[3.0.1: 7 right, 1 wrong](conformance-peers.md#quill-301)"
    assert f"| quill | 3.0.1 | 2026-01-03 |  |  |  |  | {suite} |" in lines
    (row,) = [line for line in lines if line.startswith("| feather | error")]
    for part in (
        "[capsule.names](../reference/rules/pycapsule.md#capsule.names)",
        r"array, table: \_\_call\_\_: expected arrow_schema, got a\|b at \<address> (2 cases)",
        "**Judgement:** Confirmed. [Report](../reports/names.md)",
        "`fletching validate --python 'feather:Array()' --case capsule-names`",
    ):
        assert part in row
    take = "fletching validate --python feather:take --consumes --as stream-consumer"
    take += " --skip stream.slow"
    assert f"| feather | take | `{take}` |" in lines
    assert "| feather, consumers, case stream.slow | takes an hour |" in lines
    assert "| goose | needs a GPU |" in lines


def test_command_starts_with_variables() -> None:
    assert page.command(["--case", "a b"], {"X": "1"}) == "X=1 fletching validate --case 'a b'"


def test_functions_of_library_are_targets() -> None:
    library = {"functions": {"f": "array-producer a.so:f --skip leak"}}
    options = ["a.so:f", "--as", "array-producer", "--skip", "leak"]
    assert [*page.targets(library)] == [("f", options)]


def test_build_takes_place_of_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(table, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(table, "run", commands.append)
    (tmp_path / "feather").mkdir()
    table.play("feather", {"version": "1", "build": "make it", "with": ["quill==2"]}, DAY)
    _, installed, built = commands
    assert built == ["bash", "-c", "make it"]
    assert (installed[-1], "feather==1" in installed) == ("quill==2", False)


def test_unknown_package_is_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["table.py", "goose"])
    with pytest.raises(SystemExit) as ended:
        table.main()
    assert ended.value.code == 2


@pytest.mark.parametrize(("arguments", "is_kept"), [(["polars"], True), ([], False)])
def test_write_of_a_part_keeps_the_day(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], is_kept: bool
) -> None:
    monkeypatch.setattr("sys.argv", ["table.py", "--write", *arguments])
    for name in ("RESULTS", "PAGE", "REPORT"):
        monkeypatch.setattr(table, name, tmp_path / name)
    monkeypatch.setattr(table, "play", lambda *_: {})
    monkeypatch.setattr(
        table, "read", lambda name, read=table.read: {**read(name), "measured": "a day"}
    )
    table.main()
    stored = yaml.safe_load((tmp_path / "RESULTS").read_text(encoding="utf-8"))
    assert (stored["measured"] == "a day") == is_kept


@pytest.mark.parametrize("name", ["libraries.yaml", "findings.yaml"])
def test_syntax_error_names_file_and_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    for each in ("libraries.yaml", "results.yaml", "findings.yaml"):
        text = "a:\n  b: [1\n" if each == name else "{}"
        (tmp_path / each).write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["table.py"])
    monkeypatch.setattr(table, "HERE", tmp_path)
    with pytest.raises(SystemExit) as ended:
        table.main()
    assert ended.value.code == 2
    assert f'{name}", line 3' in capsys.readouterr().err


def test_time_limit_ends_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "child")
    children = []

    def expire(process: subprocess.Popen[str], timeout: float) -> None:
        child = int((tmp_path / "child").read_text(encoding="utf-8"))
        children.append(os.pidfd_open(child))
        raise subprocess.TimeoutExpired(process.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", expire)
    command = ["bash", "-c", f"sleep 600 & echo $! >{tmp_path}/child; wait"]
    with pytest.raises(table.TableError, match="expected an end within 1 s"):
        table.call(command, 1, {})
    ended, _, _ = select.select(children, [], [], 60)
    assert ended == children
    os.close(children[0])


def test_validate_without_report_is_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(table, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(table, "call", lambda *_: (1, "", "Traceback"))
    with pytest.raises(table.TableError, match="no report\nTraceback"):
        table.validate(table.HERE, [], {})


def test_temporary_files_are_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders: list[Path] = []

    def call(_: list[str], __: int, environment: dict[str, str]) -> tuple[int, str, str]:
        folders.append(Path(environment["TMPDIR"]))
        (folders[0] / "unpacked.so").touch()
        return 0, "{}", ""

    monkeypatch.setattr(table, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(table, "call", call)
    table.validate(table.HERE, [], {})
    assert folders[0].parent == tmp_path
    assert not folders[0].exists()


def test_consumer_of_device_data_gets_standins() -> None:
    found = {
        role: table.environment_of({"environment": {"A": "1"}}, ["f", "--as", role])
        for role in ("device-array-consumer", "array-consumer")
    }
    assert found == {
        "device-array-consumer": {**table.STANDINS, "A": "1"},
        "array-consumer": {"A": "1"},
    }


def test_every_expression_names_its_module() -> None:
    """Finds a mistake in libraries.yaml without an installation."""
    libraries = table.read("libraries.yaml")["libraries"]
    for library in libraries.values():
        for _, options in page.targets({**library, "functions": {}}):
            module, _, expression = options[1].partition(":")
            assert module.replace(".", "").isidentifier()
            compile(expression, options[1], "eval")


def test_stored_results_are_judged_and_on_the_page() -> None:
    results = table.read("results.yaml")["libraries"]
    libraries = table.read("libraries.yaml")["libraries"]
    versions = {
        name: each["version"]
        for name, each in libraries.items()
        if "suite" not in each or "version" in each
    }
    assert {name: each["version"] for name, each in results.items()} == versions
    assert page.unjudged(results, table.read("findings.yaml")) == []
    assert table.PAGE.read_text(encoding="utf-8") == table.page_text()
