"""FLETCHING_VALIDATE in every language: plays groups of the conformance suite with its subject.

The suite's peers are the broken producers and consumers.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import languages

LIBRARY = languages.ROOT / "build" / "lib" / "libfletching.so"
MISSING = Path("/missing/libfletching.so")
COLUMNS = languages.columns(languages.load())
GOOD = ("catalogue-arrays", "catalogue-streams")
RUDE = "array-consumers"
RELEASED_TWICE = (
    "export: array: release was called again: expected one call for all copies "
    "(error, rule release.once, consumer)"
)
DELETED_TWICE = (
    "export: tensor: the deleter was called again: expected one call "
    "(warning, rule dlpack-managed.deleter-called, consumer)"
)
# The program plays two subjects of a library, each in a process.
PROCESSES = 2
# Lines for each kind of struct, by group.
FINDINGS = {
    "schemas": (
        "import: schema: text is not UTF-8: expected UTF-8 "
        "(error, rule schema.name-utf8, producer)",
        "export: schema: flags has unknown bits: expected 0 to 7, got -1 "
        "(warning, rule schema.flags-known, producer)",
    ),
    RUDE: (RELEASED_TWICE,),
    "stream-consumers": (
        "export: release: called on a released stream: expected no call after release "
        "(error, rule stream.release-like-array, consumer)",
        "export: release: called on a released stream: expected no call after release "
        "(error, rule device-stream.release-like-array, consumer)",
    ),
    "streams": (
        "import: stream.get_schema: is NULL: expected a callback "
        "(error, rule stream.callbacks-set, producer)",
        "import: get_next[0]: result is not an errno value: expected 0 to 4095, got -5 "
        "(warning, rule stream.errno-codes, producer)",
    ),
    "children": (
        "import: array: reserved is not zero: expected zeros "
        "(error, rule device-array.reserved-zero, producer)",
    ),
    "tensors": (
        "import: tensor.strides: is NULL: expected a stride for each dimension from version 1.2 on "
        "(error, rule dlpack.strides-not-null, producer)",
    ),
    "legacy-tensors": (
        "import: tensor.device: device_id of memory that the host reads: expected 0 "
        "(error, rule dlpack.device-id-of-cpu, producer)",
    ),
    "senders": (
        "import: on_error[0]: code is not an errno value: expected 1 to 4095, got 2147483647 "
        "(warning, rule async-error.errno-codes, producer)",
        "export: request[0]: n is not positive: expected 1 or more "
        "(error, rule async-request.positive, consumer)",
    ),
}


@dataclass(frozen=True)
class Run:
    code: int
    output: str
    lines: list[str]  # of FLETCHING_VALIDATE, without "fletching: "

    @property
    def is_aborted(self) -> bool:
        """Whether the subject was aborted: the suite's child process, or the suite."""
        # A shell adds 128 to the signal's number.
        aborted = (-signal.SIGABRT, 128 + signal.SIGABRT)
        return self.code in aborted or "the process has crashed: Aborted" in self.output


@pytest.fixture(params=COLUMNS)
def column(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    home, found = COLUMNS[name]
    if not found.corpus:
        pytest.skip(f"{name} does not play groups of the suite")
    if found.needs and not languages.succeeds(home, found.needs):
        pytest.skip(found.hint)
    return name


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a copy, which wraps the structs that the suite has wrapped with the original."""
    return Path(shutil.copy(LIBRARY, tmp_path_factory.mktemp("library")))


def execute(name: str, command: list[str], value: str, library: Path, **variables: str) -> Run:
    home = COLUMNS[name][0]
    done = subprocess.run(
        command,
        cwd=languages.ROOT / home.folder,
        env={
            **os.environ,
            **languages.environment(home),
            "FLETCHING_LIBRARY": str(library),
            "FLETCHING_VALIDATE": value,
            **variables,
        },
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    prefix = "fletching: "
    lines = [line for line in done.stderr.splitlines() if line.startswith(prefix)]
    return Run(done.returncode, done.stdout, [line.removeprefix(prefix) for line in lines])


def play(name: str, groups: tuple[str, ...], value: str, library: Path) -> Run:
    corpus = COLUMNS[name][1].corpus
    chosen = " ".join(f"--group {group}" for group in groups)
    return execute(name, ["bash", "-c", corpus], value, library, CORPUS=chosen)


def test_correct_program_prints_nothing(column: str, library: Path) -> None:
    run = play(column, GOOD, "abort:data", library)
    assert (run.code, run.lines) == (0, []), run.output


def test_unset_variable_prints_nothing(column: str, library: Path) -> None:
    run = play(column, (RUDE,), "", library)
    assert (run.code, run.lines) == (0, []), run.output


def test_log_prints_findings_of_every_struct(column: str, library: Path) -> None:
    run = play(column, tuple(FINDINGS), "log", library)
    missing = {line for lines in FINDINGS.values() for line in lines} - {*run.lines}
    assert not missing, run.output


def test_second_deleter_call_of_exported_tensor_is_finding(column: str) -> None:
    program = [sys.executable, str(Path(__file__).with_name("rude_consumer.py")), column]
    run = execute(column, program, "log", LIBRARY, PYTHONPATH=os.pathsep.join(sys.path))
    assert (run.code, run.lines) == (0, [DELETED_TWICE] * 2), run.output


def test_abort_ends_process_at_first_error(column: str, library: Path) -> None:
    run = play(column, (RUDE,), "abort", library)
    assert run.is_aborted, run.output
    assert RELEASED_TWICE in run.lines


def test_unknown_value_is_one_line(library: Path) -> None:
    run = play("cpp", (RUDE,), "1", library)
    assert run.code == 0, run.output
    assert {*run.lines} == {
        "FLETCHING_VALIDATE: unknown value: expected log or abort, alone or with :protocol, "
        ":shape or :data, got 1; hint: set FLETCHING_VALIDATE=log"
    }
    assert len(run.lines) <= PROCESSES


@pytest.mark.parametrize("value", ["log", "abort:data", "aborted"])
def test_missing_library_is_one_line(column: str, value: str) -> None:
    run = play(column, (RUDE,), value, MISSING)
    assert run.is_aborted == (value == "abort:data"), run.output
    for line in run.lines:
        assert line.startswith("FLETCHING_VALIDATE: cannot load ")
        assert str(MISSING) in line
        assert line.endswith("set FLETCHING_LIBRARY to its path")
    # After an abort the suite plays the next case in a new process.
    assert run.is_aborted or 1 <= len(run.lines) <= PROCESSES


OTHER_LAYOUT = """
#include <stdlib.h>
#include <string.h>
int FletchingCheckLayout(unsigned long long layout, char* message) {
  strcpy(message, "layout: others");
  return 22;
}
void FletchingValidateHandover(int direction, int kind, void* address) { abort(); }
"""


def test_library_with_other_layout_is_not_called(column: str, tmp_path: Path) -> None:
    library = tmp_path / "libother.so"
    compiler = ["cc", "-shared", "-fPIC", "-o", str(library), "-x", "c", "-"]
    subprocess.run(compiler, input=OTHER_LAYOUT, text=True, check=True)
    run = play(column, (RUDE,), "log", library)
    assert run.code == 0, run.output
    assert 1 <= len(run.lines) <= PROCESSES
    for line in run.lines:
        assert line.startswith("FLETCHING_VALIDATE: ")
        assert "layout: others" in line
