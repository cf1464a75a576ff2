"""Runs the tests on mutants of the Go packages and writes the results to $RESULTS
(tests/mutants_code/README.md).

tools/mutants builds the tests once with all mutants, of which an environment variable selects one.
Each test first runs without a mutant, which records its duration and the mutants that it reaches. A
mutant is then run with the tests that reach it.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import results
from results import KILLED, SURVIVED

HOME = Path(__file__).resolve().parent
ROOT = HOME.parents[1]
SCRATCH = ROOT / "build" / "mutants-go"
FOLDERS = {"fletching": ".", "callbacks": "abi/callbacks", "arrowgo": "arrowgo"}
SAMPLE = {20: 8, 99: 2, 7: 8, 11: 5}  # seed: maximum number of mutants per file
MOST_MUTANTS = 1 << 16  # as in tools/mutants
MOST_MEMORY = 14 << 30  # per process: a mutant may allocate without end; stand-ins map 8 GiB
# They compile the C code without mutants, and thread sanitizer needs more memory than MOST_MEMORY.
LEFT_OUT = ("TestBlockCountsAreAtomic", "TestNonAtomicBlockCountsAreReported")
SLOW = 0.1  # seconds: slower tests run last
LONGEST = 5  # seconds, plus three times the duration without a mutant
_FAILED = re.compile(r"^\s*--- FAIL: ([^\s/]+)", re.MULTILINE)
_RUNNING = re.compile(r"^=== RUN +([^\s/]+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant(results.Mutant):
    number: int  # selects it


@dataclass(frozen=True)
class Test:
    program: str  # a key of FOLDERS
    name: str
    seconds: float
    reached: bytes  # nonzero at the number of each reached mutant


def main() -> int:
    everything = build()
    chosen = results.requested(everything)
    if os.environ.get("SAMPLE"):
        chosen = results.sample(chosen, SAMPLE)
    found = results.kept()
    chosen = results.untried(chosen, found)
    tests = measured()
    print(f"{len(chosen)} of {len(everything)} mutants, {len(tests)} tests", flush=True)
    for number, mutant in enumerate(chosen, 1):
        own = [test for test in tests if test.reached[mutant.number]]
        result, _ = found[mutant.key] = attempt(mutant, own)
        results.write("bindings/go/tools/mutants", everything, found)
        if result == SURVIVED or number % 50 == 0:
            print(f"{number} of {len(chosen)}: {mutant.place}: {result}", flush=True)
    return 0


def build() -> list[Mutant]:
    """Builds the tests with all mutants."""
    finder = SCRATCH / "finder"
    go("build", "-C", "tools", "-o", str(finder), "./mutants")
    subprocess.run([str(finder), str(SCRATCH), *FOLDERS.values()], cwd=HOME, check=True)
    overlay = f"-overlay={SCRATCH / 'overlay.json'}"
    for program, folder in FOLDERS.items():
        go("test", "-C", folder, "-c", "-vet=off", overlay, "-o", str(SCRATCH / program), ".")
    entries = json.loads((SCRATCH / "mutants.json").read_text(encoding="utf-8"))
    return [Mutant(number=number, **entry) for number, entry in enumerate(entries)]


def go(command: str, *arguments: str) -> None:
    subprocess.run(["go", command, *arguments], cwd=HOME, check=True)


def measured() -> list[Test]:
    """Returns all tests, fastest first. Each must pass without a mutant."""
    tests = []
    seen = SCRATCH / "seen"
    for program in FOLDERS:
        names = re.findall(r"^[TEF]\w+$", call(program, "-test.list=.")[1], re.MULTILINE)
        for name in (name for name in names if name not in LEFT_OUT):
            seen.write_bytes(bytes(MOST_MUTANTS))
            start = time.monotonic()
            passed, text = call(program, f"-test.run=^{name}$", FLETCHING_MUTANTS_SEEN=str(seen))
            if not passed:
                raise SystemExit(f"{program}: {name}: expected it to pass without a mutant\n{text}")
            tests.append(Test(program, name, time.monotonic() - start, seen.read_bytes()))
    return sorted(tests, key=lambda test: test.seconds)


def attempt(mutant: Mutant, tests: Sequence[Test]) -> results.Result:
    """Returns the result and the test that detected it. Tests of the mutated package run first."""
    own = next((p for p, folder in FOLDERS.items() if mutant.file.startswith(folder)), "fletching")
    groups: defaultdict[tuple[bool, bool, str], list[Test]] = defaultdict(list)
    for test in tests:
        groups[test.seconds > SLOW, test.program != own, test.program].append(test)
    for (*_, program), group in sorted(groups.items()):
        names = "|".join(test.name for test in group)
        limit = LONGEST + 3 * sum(test.seconds for test in group)
        arguments = ("-test.v", "-test.failfast", f"-test.run=^({names})$")
        passed, text = call(program, *arguments, limit=limit, FLETCHING_MUTANT=str(mutant.number))
        if not passed:
            return KILLED, f"{program}: {noticed(text)}"
    return SURVIVED, ""


def noticed(text: str) -> str:
    """Returns the failed test, or else the last test that ran, which crashed or hung."""
    if failed := _FAILED.search(text):
        return failed[1]
    running = _RUNNING.findall(text)
    return running[-1] if running else "ended"


def call(program: str, *arguments: str, limit: float = 60, **environment: str) -> tuple[bool, str]:
    """Returns whether the run passed, and its output. Kills a run that hangs, with its children."""
    output = SCRATCH / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [str(SCRATCH / program), *arguments],
            cwd=HOME / FOLDERS[program],
            env={"FLETCHING_LIB_DIR": str(ROOT / "build" / "lib"), **os.environ, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        limit_memory(process.pid)
        try:
            passed = process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            passed = False
    with output.open(encoding="utf-8", errors="replace") as printed:
        return passed, printed.read(1 << 20)


def limit_memory(process: int) -> None:
    resource.prlimit(process, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    resource.prlimit(process, resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))  # limits the output
    resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
