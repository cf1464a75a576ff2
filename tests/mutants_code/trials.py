"""Runs the tests on mutants, and records which tests reach and which detect each mutant."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cpp_mutants import CannotRunError
from tree import FOLDERS, Tree

_MOST_SECONDS = 600  # for a test without a mutant
_SHORTEST_LIMIT = 30
_VALIDATE = "[!e]*"  # without test_environment.py, which runs programs of other languages
# The name of the failed test in the output of GoogleTest and pytest.
_FAILED = re.compile(r"^(?:\[  FAILED  \] (\w+[./]\S+?)(?:,| \(|$)|FAILED (\S+))", re.MULTILINE)
_SANITIZER = re.compile(r"^SUMMARY: \w+Sanitizer: (?:\d+ byte\(s\) (leak)ed|(\S+))", re.MULTILINE)
_LAST_BEGUN = re.compile(r"^(?:\d+: )?\[ RUN      \] (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Test:
    name: str  # "owner_cpp"
    command: tuple[str, ...]
    folder: Path
    seconds: float = 0  # duration without a mutant
    reached: frozenset[int] = frozenset()

    @property
    def limit(self) -> float:
        """Seconds until the test counts as hung. The limit decides no other verdict."""
        return max(10 * self.seconds, _SHORTEST_LIMIT)


@dataclass(frozen=True)
class Trial:
    killed_by: str  # "owner_cpp: Owner.MovesOnce"; empty if no test detected it
    tests: int  # number of tests that reached it


def of_cpp(tree: Tree, names: str = "") -> list[Test]:
    """The ctest tests that run a program. `names` is a regular expression."""
    tests = []
    for folder in FOLDERS:
        build = str(tree.build / folder)
        listed = subprocess.run(
            ["ctest", "--test-dir", build, "--show-only=json-v1"],
            capture_output=True,
            check=True,
        ).stdout
        for entry in json.loads(listed)["tests"]:
            name = entry["name"]
            # Others call a compiler, which does not contain the mutants.
            if re.search(names, name) and entry["command"][0].startswith(str(tree.build)):
                chosen = ("-R", f"^{name}$", "--output-on-failure", "--no-tests=error")
                tests.append(Test(name, ("ctest", "--test-dir", build, *chosen), tree.build))
    return tests


def of_python(tree: Tree, names: str = "") -> list[Test]:
    """The test files of the generator and of its command `validate`."""
    # A driver that the Vulkan loader unloads leaks memory that no suppression can name.
    generator = _of_files(tree.folder / "generator" / "tests", "*", ("VK_ICD_FILENAMES=none",))
    validate = _of_files(tree.folder / "tests" / "validate", _VALIDATE)
    return [test for test in (*generator, *validate) if re.search(names, test.name)]


def _of_files(folder: Path, files: str, variables: Sequence[str] = ()) -> list[Test]:
    pytest = str(folder.parents[1] / ".venv" / "bin" / "pytest")
    command = ("env", *variables, pytest, "-q", "-x", "-p", "no:cacheprovider")
    return [
        Test(path.stem, (*command, path.name), folder)
        for path in sorted(folder.glob(f"test_{files}.py"))
    ]


def record(tests: Sequence[Test], environment: Mapping[str, str], scratch: Path) -> list[Test]:
    """Runs each test once without a mutant; it must pass. The result is sorted by duration."""
    scratch.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda test: _record(test, environment, scratch / test.name), tests)
        return sorted(done, key=lambda test: test.seconds)


def _record(test: Test, environment: Mapping[str, str], seen: Path) -> Test:
    seen.unlink(missing_ok=True)
    begin = time.monotonic()
    code, output = _run(test, {**environment, "FLETCHING_MUTANTS_SEEN": str(seen)}, _MOST_SECONDS)
    if code != 0:
        raise CannotRunError(f"{test.name} fails without a mutant:\n{output[-4000:]}")
    numbers = seen.read_text().split() if seen.exists() else []
    return Test(
        *(test.name, test.command, test.folder),
        time.monotonic() - begin,
        frozenset(map(int, numbers)),
    )


def attempt(number: int, tests: Sequence[Test], environment: Mapping[str, str]) -> Trial:
    """Runs a mutant against every test that reaches it, until one fails."""
    reaching = [test for test in tests if number in test.reached]
    for test in reaching:
        code, output = _run(test, {**environment, "FLETCHING_MUTANT": str(number)}, test.limit)
        if code is None:
            return Trial(f"{test.name}: hangs{_last(output)}", len(reaching))
        if code != 0:
            return Trial(f"{test.name}: {_sign(output)}", len(reaching))
    return Trial("", len(reaching))


def _run(test: Test, environment: Mapping[str, str], seconds: float) -> tuple[int | None, str]:
    """The exit code, or None if the test and its child processes were killed."""
    # Uses a separate temporary folder, because two runs of pytest delete each other's.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        process = subprocess.Popen(
            test.command,
            cwd=test.folder,
            env={**environment, "TMPDIR": scratch, "GTEST_FAIL_FAST": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output.decode("utf-8", "replace")
        return process.returncode, output.decode("utf-8", "replace")


def _sign(output: str) -> str:
    """The failed test or the sanitizer's report."""
    if found := _FAILED.search(output):
        return found[1] or found[2]
    if found := _SANITIZER.search(output):
        return f"{found[1] or found[2]}{_last(output)}"
    return f"ended{_last(output)}"


def _last(output: str) -> str:
    begun = _LAST_BEGUN.findall(output)
    return f" in {begun[-1]}" if begun else ""
