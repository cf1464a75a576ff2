"""Plain C functions in each role: a correct library has no finding, a broken one has its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import validate

Library = Callable[[str], Path]

PRODUCERS = {
    "array-producer": "count_array",
    "device-array-producer": "count_device_array",
    "stream-producer": "count_stream",
    "async-producer": "count_async",
    "tensor-producer": "count_tensor",
}
CONSUMERS = {
    "array-consumer": "sum_array",
    "device-array-consumer": "sum_device_array",
    "stream-consumer": "sum_stream",
    "async-consumer": "sum_async",
    "tensor-consumer": "sum_tensor",
    "legacy-tensor-consumer": "sum_legacy_tensor",
}


@pytest.mark.parametrize("role", PRODUCERS)
def test_correct_producer_has_no_finding(library: Library, role: str) -> None:
    run = validate(f"{library('CORRECT')}:{PRODUCERS[role]}", "--as", role, "--json")
    assert (run.code, run.report["findings"], run.report["incomplete"]) == (0, [], None)
    assert {case["verdict"] for case in run.report["cases"]} == {"right"}
    assert len(run.report["cases"]) >= 3


@pytest.mark.parametrize(
    ("role", "rules"),
    [
        ("array-producer", {"array.buffers-null-only-when", "release.marks-released"}),
        (
            "device-array-producer",
            {
                "array.buffers-null-only-when",
                "device-array.reserved-zero",
                "release.marks-released",
            },
        ),
        (
            "stream-producer",
            {
                "array.buffers-null-only-when",
                "check.call-fails",
                "release.marks-released",
                "stream.errno-codes",
            },
        ),
        (
            "async-producer",
            {
                "async-next.null-task-is-end",
                "async-next.only-release-after-failure",
                "async-schema.first-and-once",
            },
        ),
        ("tensor-producer", {"dlpack.strides-not-null"}),
    ],
)
def test_broken_producer_has_its_rules(library: Library, role: str, rules: set[str]) -> None:
    run = validate(f"{library('BROKEN')}:{PRODUCERS[role]}", "--as", role, "--json")
    assert (run.code, run.rules()) == (1, rules)
    assert {finding["party"] for finding in run.report["findings"]} == {"producer"}


def test_finding_has_path_calls_and_link(library: Library) -> None:
    run = validate(f"{library('BROKEN')}:count_stream", "--as", "stream-producer", "--json")
    (found,) = (f for f in run.report["findings"] if f["rule"] == "stream.errno-codes")
    assert (found["path"], found["severity"]) == ("get_next[2]", "warning")
    assert found["message"] == "result is not an errno value: expected 0 to 4095, got -5"
    assert found["history"][-1] == "get_next[2] returned -5"
    assert found["url"].endswith("/docs/reference/rules/c-stream.md#stream.errno-codes")


def test_level_protocol_reads_no_members(library: Library) -> None:
    target = f"{library('BROKEN')}:count_array"
    run = validate(target, "--as", "array-producer", "--level", "protocol", "--json")
    assert (run.code, run.rules()) == (1, {"release.marks-released"})


def test_crash_is_finding_with_last_call(library: Library) -> None:
    run = validate(f"{library('CRASHES')}:count_stream", "--as", "stream-producer", "--json")
    assert (run.code, run.rules()) == (1, {"check.crash"})
    first = run.report["findings"][0]
    assert first["message"] == "the process has crashed: Aborted; last call: get_next[2]"
    names = [case["name"] for case in run.report["cases"]]
    assert names[-1] == "stream-producer/leak", "the run goes on after a crash"


def test_hang_is_finding_with_last_call(library: Library) -> None:
    options = ["--as", "stream-producer", "--case", "read", "--timeout", "5", "--json"]
    run = validate(f"{library('HANGS')}:count_stream", *options)
    assert (run.code, run.rules()) == (1, {"check.hang"})
    assert run.report["findings"][0]["message"].endswith("last call: get_next[2]")


@pytest.mark.parametrize("role", ["array-producer", "stream-producer"])
def test_leak_of_producer_is_finding(library: Library, role: str) -> None:
    run = validate(f"{library('LEAKS')}:{PRODUCERS[role]}", "--as", role, "--json")
    assert (run.code, run.rules()) == (1, {"check.leak"})


@pytest.mark.parametrize("function", ["count_array_cached", "count_array_grows"])
def test_other_memory_is_no_leak(library: Library, function: str) -> None:
    target = f"{library('CORRECT')}:{function}"
    run = validate(target, "--as", "array-producer", "--case", "leak", "--json")
    assert (run.code, run.report["findings"]) == (0, [])


@pytest.mark.parametrize("role", CONSUMERS)
def test_correct_consumer_has_only_notes(library: Library, role: str) -> None:
    run = validate(f"{library('CORRECT')}:{CONSUMERS[role]}", "--as", role, "--json")
    assert (run.code, run.rules(), run.report["incomplete"]) == (0, set(), None)
    verdicts = {case["verdict"] for case in run.report["cases"]}
    assert verdicts <= {"right", "not-supported", "absent"}  # absent: a device
    assert len(run.report["cases"]) >= 29


@pytest.mark.parametrize(
    ("variant", "role", "rules"),
    [
        ("LEAKS", "array-consumer", {"check.account"}),
        ("LEAKS", "tensor-consumer", {"check.account"}),
        ("LEAKS", "legacy-tensor-consumer", {"check.account"}),
        ("BROKEN", "array-consumer", {"check.account"}),
        ("BROKEN", "stream-consumer", {"check.account", "stream.get-last-error-only-after-error"}),
    ],
)
def test_broken_consumer_has_its_rules(
    library: Library, variant: str, role: str, rules: set[str]
) -> None:
    # A case waits for two seconds for a struct that is not released.
    case = "array.good" if role == "array-consumer" else "tensor.good" if "tensor" in role else "*"
    target = f"{library(variant)}:{CONSUMERS[role]}"
    run = validate(target, "--as", role, "--case", case, "--json")
    assert (run.code, run.rules("error")) == (1, rules)
    assert {finding["party"] for finding in run.report["findings"]} == {"consumer"}


def test_consumer_that_extracts_no_task_is_found(library: Library) -> None:
    options = ["--as", "async-consumer", "--case", "producer.good", "--timeout", "20", "--json"]
    run = validate(f"{library('LEAKS')}:sum_async", *options)
    assert (run.code, run.rules()) == (1, {"check.account"})


def test_crash_on_broken_struct_is_warning(library: Library) -> None:
    run = validate(f"{library('CRASHES')}:sum_array", "--as", "array-consumer", "--json")
    assert (run.code, run.rules("error"), run.rules("warning")) == (1, set(), {"check.crash"})


def test_crash_without_callback_is_warning(library: Library) -> None:
    options = ["--as", "stream-consumer", "--case", "stream.last-error-null", "--json"]
    run = validate(f"{library('CRASHES')}:read_error", *options)
    assert (run.code, run.rules("error"), run.rules("warning")) == (1, set(), {"check.crash"})


def test_release_of_remains_of_failed_call_is_warning(library: Library) -> None:
    options = ["--as", "stream-consumer", "--case", "stream.next-partial", "--json"]
    run = validate(f"{library('BROKEN')}:sum_stream", *options)
    assert (run.code, run.rules("error"), run.rules("warning")) == (1, set(), {"check.account"})


def test_refusal_is_note(library: Library) -> None:
    options = ["--as", "array-consumer", "--case", "boolean.whole", "--json"]
    run = validate(f"{library('CORRECT')}:sum_array", *options)
    assert (run.code, run.rules("note")) == (0, {"check.refuses-valid"})


def test_subject_is_played_with_its_groups(library: Library) -> None:
    run = validate("--subject", library("CORRECT"), "--group", "schemas", "--json")
    assert (run.code, run.report["findings"]) == (0, [])
    assert len(run.report["cases"]) > 200


def test_broken_subject_has_findings(library: Library) -> None:
    options = ["--group", "schemas", "--case", "format.empty", "--json"]
    run = validate("--subject", library("BROKEN"), *options)
    assert (run.code, run.rules()) == (1, {"check.answer"})
    assert "schema.flags: expected 2, got 0" in run.report["findings"][0]["message"]


def test_text_shows_finding_for_people(library: Library) -> None:
    target = f"{library('BROKEN')}:count_stream"
    run = validate(target, "--as", "stream-producer", "--case", "read")
    assert run.output.startswith("error: array.buffers-null-only-when (producer)\n  get_next[0]")
    assert "\n  case: stream-producer/read\n  calls:\n" in run.output
    assert run.output.endswith("as stream-producer: 1 case: 2 errors, 2 warnings, 0 notes\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--subject", "libc.so.6"], "undefined symbol: FletchingConformanceSubject"),
        (["--subject", "a.so", "b.so:f"], "two targets: expected one of"),
        ([], "no target: expected LIBRARY:FUNCTION"),
        (
            ["libc.so.6:puts", "--as", "stream-producer", "--case", "reed"],
            "(--case) is unknown: expected a name such as 'read', got 'reed'",
        ),
        (["--replay", "a", "--python", "a:b"], "two targets: expected one of"),
        (["libc.so.6:puts"], "no role: expected --as"),
        (["no/such.so:f", "--as", "stream-producer"], "no/such.so: no such file"),
        (["libc.so.6:no_such", "--as", "stream-producer"], "undefined symbol: no_such"),
        (["libc.so.6", "--as", "stream-producer"], "expected LIBRARY:FUNCTION, got 'libc.so.6'"),
    ],
)
def test_unusable_target_exits_2(arguments: list[str], text: str) -> None:
    run = validate(*arguments)
    assert (run.code, run.output) == (2, "")
    assert text in run.errors


FUNCTION = ["libc.so.6:puts", "--as", "stream-producer"]
PYTHON, REPLAY, SUBJECT = ["--python", "a:b"], ["--replay", "a"], ["--subject", "libc.so.6"]


@pytest.mark.parametrize(
    ("target", "option", "value", "needed"),
    [
        *((each, "--as", "array-consumer", "LIBRARY:FUNCTION or --python --consumes")
          for each in (PYTHON, REPLAY, SUBJECT)),
        *((each, "--level", "shape", "LIBRARY:FUNCTION or --python")
          for each in (REPLAY, SUBJECT)),
        *((each, "--group", "schemas", "--subject") for each in (FUNCTION, PYTHON, REPLAY)),
        *((each, "--interpreter", "python3", "--python") for each in (FUNCTION, REPLAY, SUBJECT)),
        *((REPLAY, option, "read", "LIBRARY:FUNCTION or --python, or --subject")
          for option in ("--case", "--skip", "--record")),
    ],
)  # fmt: skip
def test_option_without_effect_exits_2(
    target: list[str], option: str, value: str, needed: str
) -> None:
    run = validate(*target, option, value)
    expected = f"fletching: validate: {option}: expected it with {needed}\n"
    assert (run.code, run.output, run.errors) == (2, "", expected)


def test_skipped_case_is_not_played(library: Library) -> None:
    target = f"{library('CORRECT')}:count_tensor"
    run = validate(target, "--as", "tensor-producer", "--skip", "read", "--skip", "leak", "--json")
    assert [case["name"] for case in run.report["cases"]] == ["tensor-producer/stress"]
