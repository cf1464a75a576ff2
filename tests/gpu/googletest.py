"""The GoogleTests of cpp/tests/gpu as rows, one per suite, skipped test and failed test."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from running import Findings, Row, how_it_ended, run, show

PROGRAMS = (
    "fletching_events_gpu_test",
    "fletching_capture_gpu_test",
    "fletching_deferred_gpu_test",
    "fletching_exchange_gpu_test",
)
# Every test runs once per entry. FLETCHING_TEST_CURRENT selects the current context.
CURRENT = {"own": "", "none": ", no context", "other": ", another device current"}
NOT_BUILT = (
    "not built, CMake found no GoogleTest: --programs names a folder with it, which "
    "tests/gpu/build-programs makes"
)


def googletest_findings(
    program: Path, environment: Mapping[str, str], current: str = "own"
) -> Findings:
    rows, hangs = _rows(program, {**environment, "FLETCHING_TEST_CURRENT": current})
    if current != "own":
        rows = list(_again(rows, CURRENT[current]))
    for row in rows:
        show(row)
    return Findings(rows=rows, hung=program.name if hangs else "")


def _rows(program: Path, environment: Mapping[str, str]) -> tuple[list[Row], bool]:
    """The rows of the program, and whether it hung."""
    if not program.exists():
        return [Row(program.name, "absent", 0, NOT_BUILT)], False
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [str(program), f"--gtest_output=xml:{report}"]
        code, output, _ = run(command, environment)
        text = report.read_text(encoding="utf-8") if report.exists() else ""
    if code is None:
        reason = how_it_ended(code, output)
        return [*read_output(output), Row(program.name, "FAILED", 0, reason)], True
    rows = list(read_report(text)) if text else []
    has_failed = any(row.verdict == "FAILED" for row in rows)
    if not rows or code not in (0, 1) or (code == 1 and not has_failed):
        rows.append(Row(program.name, "FAILED", 0, how_it_ended(code, output)))
    return rows, False


def _again(rows: list[Row], suffix: str) -> Iterator[Row]:
    """The rows of another run of the tests, without the reasons of the first run."""
    told = {row.name for row in rows if row.verdict == "ok"}
    for row in rows:
        suite = row.name.partition(": ")[0]
        if row.verdict != "absent" or (suite not in told and "two devices" in row.reason):
            yield replace(row, name=f"{row.name}{suffix}")


def read_output(text: str) -> Iterator[Row]:
    """The completed tests in the output of a program that hung and wrote no report."""
    passed = Counter(re.findall(r"^\[       OK \] (.+)\.\w+", text, re.MULTILINE))
    for suite, count in passed.items():
        yield Row(f"GoogleTest {suite}", "ok", count, "tests, before it hung")
    for test in dict.fromkeys(re.findall(r"^\[  FAILED  \] (.+?) \(", text, re.MULTILINE)):
        yield Row(test, "FAILED", 0, "no report was written")


def read_report(text: str) -> Iterator[Row]:
    """Reads the report that a program writes for --gtest_output=xml."""
    for suite in ElementTree.fromstring(text).iter("testsuite"):
        name = suite.get("name", "unknown")
        passed = 0
        skipped: dict[str, list[str]] = {}  # tests by reason
        for case in suite.iter("testcase"):
            test = case.get("name", "unknown")
            failure, skip = case.find("failure"), case.find("skipped")
            if failure is not None:
                yield Row(f"{name}.{test}", "FAILED", 0, _without_place(failure.get("message")))
            elif skip is not None:
                skipped.setdefault(_without_place(skip.get("message")), []).append(test)
            else:
                passed += 1
        if passed:
            yield Row(f"GoogleTest {name}", "ok", passed, "tests")
        for reason, tests in skipped.items():
            which = ", ".join(tests) if len(tests) <= 3 else f"{len(tests)} tests"
            yield Row(f"GoogleTest {name}: {which}", "absent", 0, reason)


def _without_place(message: str | None) -> str:
    """The message without the file and line at its start."""
    lines = (message or "no reason").splitlines()
    return " ".join(lines[1:] if len(lines) > 1 else lines)
