"""Consumers of data behind a gate: those of waiting.c on each device, CUDA and HIP as stand-ins."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import INCLUDES, REPOSITORY, Run, validate

RULE = "sync-event.waited-before-access"
VENDORS = {"cuda", "cuda_host", "cuda_managed", "rocm", "rocm_host", "opencl"}
VERDICTS = {
    "wait_on_host": "waits",
    "wait_unread": "waits",
    "wait_on_stream": "waits",
    "read_early": "reads early",
    "read_early_on_stream": "reads early",
    "ignore": "ignores the event",
    "refuse": "refuses",
}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("waiting") / "libwaiting.so"
    core = REPOSITORY / "cpp" / "bundle" / "fletching_core.c"
    options = ["-std=c99", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", *INCLUDES]
    sources = [str(Path(__file__).with_name("waiting.c")), str(core)]
    libraries = ["-lOpenCL", "-ldl", "-lpthread"]
    subprocess.run(["cc", *options, "-o", str(path), *sources, *libraries], check=True)
    return path


@pytest.fixture(autouse=True)
def one_processor() -> Iterator[None]:
    """If one processor pauses, a consumer that sleeps must not seem to sleep for longer."""
    before = os.sched_getaffinity(0)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    os.sched_setaffinity(0, {sorted(before)[int(worker) % len(before)]})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(autouse=True)
def standins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(REPOSITORY / "build" / "lib" / "standin"))


def play(waiting: Path, function: str, kind: str, device: str = "*", *options: object) -> Run:
    target, role = f"{waiting}:{function}_{kind}", f"device-{kind}-consumer"
    return validate(target, "--as", role, "--case", f"wait.{device}", *options, "--json")


def verdicts(run: Run) -> dict[str, str]:
    return {wait["device"]: wait["verdict"] for wait in run.report["waits"]}


@pytest.mark.parametrize("kind", ["array", "stream"])
@pytest.mark.parametrize("function", VERDICTS)
def test_consumer_has_its_verdict_on_each_device(waiting: Path, function: str, kind: str) -> None:
    run = play(waiting, function, kind)
    # No struct carries the VkDevice that a wait needs.
    expected = {**dict.fromkeys(VENDORS, VERDICTS[function]), "vulkan": "refuses"}
    assert verdicts(run) == expected
    assert run.report["waits"][0]["about"].startswith("Fletching stand-in (no GPU) 0")
    assert run.rules("error") == ({RULE} if VERDICTS[function] == "reads early" else set())
    assert run.rules("warning", "note") == ({RULE} if function == "ignore" else set())


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        ("query_in_loop", "waits"),  # a second for each device
        ("query_and_sleep", "waits"),
        ("wait_with_signals_blocked", "waits"),
        ("hand_to_thread", "waits"),
        ("sleep_and_read_early", "reads early"),
        ("timed_wait_and_read_early", "reads early"),
        ("compute_and_read_early", "reads early"),
        ("read_early_and_refuse", "reads early"),
        ("read_column_early", "reads early"),
        ("read_early_by_call", "reads early"),
    ],
)
def test_consumer_of_host_memory_has_its_verdict(
    waiting: Path, function: str, verdict: str
) -> None:
    assert verdicts(play(waiting, function, "array", "cuda_host")) == {"cuda_host": verdict}


def test_consumer_that_waits_for_first_batch_reads_early(waiting: Path) -> None:
    run = play(waiting, "wait_for_first", "stream")
    assert verdicts(run) == {**dict.fromkeys(VENDORS, "reads early"), "vulkan": "refuses"}
    assert (run.code, run.rules()) == (1, {RULE})


def test_late_release_is_not_one_of_next_case(waiting: Path) -> None:
    run = play(waiting, "hand_to_one_thread", "stream", "cuda_*")
    assert verdicts(run) == {"cuda_host": "waits", "cuda_managed": "waits"}
    assert (run.code, run.report["findings"]) == (0, [])


def test_batch_before_last_that_is_never_released_is_error(waiting: Path) -> None:
    run = play(waiting, "keep_of_second", "stream", "opencl")
    assert (run.code, verdicts(run), run.rules()) == (1, {"opencl": "waits"}, {"check.account"})


def test_early_read_is_error_of_consumer(waiting: Path) -> None:
    run = play(waiting, "read_early", "array")
    (found,) = run.report["findings"]
    assert (run.code, found["rule"], found["severity"]) == (1, RULE, "error")
    assert (found["party"], found["case"]) == ("consumer", "device-array-consumer/wait.cuda")
    assert found["more_cases"] == len(VENDORS) - 1
    assert found["message"].startswith("the data was read while sync_event was pending")


def test_ignored_event_is_note(waiting: Path) -> None:
    run = play(waiting, "ignore", "array", "opencl")
    (found,) = run.report["findings"]
    assert (run.code, found["rule"], found["severity"]) == (0, RULE, "note")
    assert "released the data before the event: expected a wait, unless" in found["message"]


def test_device_without_watch_has_no_verdict(waiting: Path) -> None:
    run = play(waiting, "release_on_any_device", "array", "vulkan")
    assert (run.code, verdicts(run), run.report["findings"]) == (0, {"vulkan": "unknown"}, [])


def test_array_that_is_never_released_is_error(waiting: Path) -> None:
    run = play(waiting, "keep", "array", "opencl")
    assert (run.code, run.rules("error"), run.rules("note")) == (1, {"check.account"}, {RULE})
    (note,) = (each for each in run.report["findings"] if each["severity"] == "note")
    assert "kept the data until after the event" in note["message"]


def test_refused_array_that_is_never_released_is_error(waiting: Path, tmp_path: Path) -> None:
    run = play(waiting, "keep_and_refuse", "array", "opencl", "--junit", tmp_path / "run.xml")
    assert (run.code, verdicts(run), run.rules("error")) == (
        1,
        {"opencl": "refuses"},
        {"check.account"},
    )
    assert run.report["cases"][0]["verdict"] == "wrong"
    (suite,) = ElementTree.parse(tmp_path / "run.xml").getroot()
    assert [each.tag for each in suite[0]] == ["failure", "system-out"]


def test_absent_device_has_reason(waiting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLETCHING_STANDIN_DEVICES", "0")
    run = play(waiting, "wait_on_host", "array", "cuda*")
    assert set(verdicts(run).values()) == {"absent"}
    assert {wait["about"] for wait in run.report["waits"]} == {
        "cuInit: failed: got CUDA_ERROR_NO_DEVICE (100): no device (stand-in)"
    }
    assert {case["verdict"] for case in run.report["cases"]} == {"absent"}


def test_text_groups_devices_by_verdict(waiting: Path) -> None:
    target = f"{waiting}:wait_on_host_array"
    run = validate(target, "--as", "device-array-consumer", "--case", "wait.*")
    lines = run.output.splitlines()
    assert lines[0].startswith("waits: cuda, cuda_host, cuda_managed (Fletching stand-in (no GPU)")
    assert [line.partition(" (")[0] for line in lines[1:4]] == [
        "waits: rocm, rocm_host",
        "waits: opencl",
        "refuses: vulkan",
    ]
    assert lines[4].endswith("7 cases, 1 not supported: 0 errors, 0 warnings, 0 notes")


def test_reports_have_verdict_of_each_device(waiting: Path, tmp_path: Path) -> None:
    sarif, junit = tmp_path / "run.sarif", tmp_path / "run.xml"
    play(waiting, "read_early", "array", "*", "--sarif", sarif, "--junit", junit)
    (run,) = json.loads(sarif.read_text("utf-8"))["runs"]
    assert run["properties"]["waits"]["cuda_host"].startswith("reads early: Fletching stand-in")
    assert {result["ruleId"] for result in run["results"]} == {RULE}
    (suite,) = ElementTree.parse(junit).getroot()
    cases = {each.attrib["name"]: each for each in suite}
    assert [each.tag for each in cases["wait.opencl"]] == ["failure", "system-out"]
    assert (cases["wait.opencl"].findtext("system-out") or "").startswith("reads early: OpenCL")
    assert [each.tag for each in cases["wait.vulkan"]] == ["skipped", "system-out"]


@pytest.mark.parametrize(
    ("function", "kind"),
    [("wait_on_host", "array"), ("wait_on_stream", "stream"), ("read_early", "stream")],
)
def test_python_consumer_has_its_verdict(
    waiting: Path, monkeypatch: pytest.MonkeyPatch, function: str, kind: str
) -> None:
    monkeypatch.setenv("FLETCHING_WAITING", str(waiting))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    options = ["--consumes", "--as", f"device-{kind}-consumer", "--case", "wait.*", "--json"]
    run = validate("--python", f"waiting_consumers:take_{kind}('{function}')", *options)
    assert verdicts(run) == {**dict.fromkeys(VENDORS, VERDICTS[function]), "vulkan": "refuses"}
    assert run.code == (1 if function == "read_early" else 0)
