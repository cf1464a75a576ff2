"""Tries mutants of the packages of Go and writes what became of each to $RESULTS
(tests/mutants_code/README.md).

tools/mutants puts all mutants into one build of the tests, where an environment variable chooses
one. Each test runs first without a mutant, which shows the mutants that it reaches and how long it
takes. A mutant is tried on the tests that reach it.
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
SAMPLE = {20: 8, 99: 2, 7: 8, 11: 5}  # by seed: so many of each file, at most
MOST_MUTANTS = 1 << 16  # as in tools/mutants
MOST_MEMORY = 14 << 30  # of a process: a mutant may allocate without end; stand-ins map 8 GiB
# They compile the C code without a mutant, and thread sanitizer needs more memory than that.
LEFT_OUT = ("TestBlockCountsAreAtomic", "TestBlockCountsThatAreNotAtomicAreReported")
SLOW = 0.1  # seconds: such tests come after all others
LONGEST = 5  # seconds, and three times as long as without a mutant
_FAILED = re.compile(r"^\s*--- FAIL: ([^\s/]+)", re.MULTILINE)
_RUNNING = re.compile(r"^=== RUN +([^\s/]+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant(results.Mutant):
    number: int  # that chooses it


@dataclass(frozen=True)
class Test:
    program: str  # of FOLDERS
    name: str
    seconds: float
    reached: bytes  # not 0 at the number of each mutant


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
    """Builds the tests with every mutant in them."""
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
    """Every test, the quickest first. Each has to pass without a mutant."""
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
    """The result and the test that noticed. The tests of its own package come first."""
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
    """The test that failed, and else the last that ran: it crashed or hung."""
    if failed := _FAILED.search(text):
        return failed[1]
    running = _RUNNING.findall(text)
    return running[-1] if running else "ended"


def call(program: str, *arguments: str, limit: float = 60, **environment: str) -> tuple[bool, str]:
    """Whether it passed, and what it printed. One that hangs is ended with what it started."""
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
    resource.prlimit(process, resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))  # of what it prints
    resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
