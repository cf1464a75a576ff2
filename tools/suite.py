"""Runs the test suites of suites.py with CTest: every step, even after a failure.

    tools/suite.py [--all] [SUITE...] [-- CTEST_OPTION...]

`make test` and `make test-all` call this. A step is a CTest test of the name "SUITE: TITLE" and the
label SUITE, so that `-- -R vet` runs some of them and `-- -V` prints all output while it runs.
CTest cannot print why a test inside of a step was skipped; this lists the reasons at the end.
Exit codes: 0 all passed, 1 something failed, 2 could not run.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from skipped import in_file
from suites import SUITES, Step

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "suites"
USAGE = "suite.py [--all] [SUITE...] [-- CTEST_OPTION...]"
CORES = 2
SHOWN = 15  # lines of a failed step that are repeated above the verdicts
HANGING = 6 * 3600  # seconds; CTest would end a step after 25 minutes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, usage=USAGE)
    parser.add_argument("suite", nargs="*", help=f"some of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--all", action="store_true", help="also the steps of `make test-all`")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    unknown = [name for name in options.suite if name not in SUITES]
    if unknown:
        parser.error(f"no suite '{unknown[0]}': expected some of {', '.join(SUITES)}")
    chosen = {
        name: [step for step in steps if options.all or not step.only_all]
        for name, steps in SUITES.items()
        if not options.suite or name in options.suite
    }
    if not any(chosen.values()):
        parser.error(f"{', '.join(chosen)}: only in `make test-all`: expected --all")
    return run(BUILD, chosen, words[end + 1 :])


def run(folder: Path, suites: Mapping[str, Sequence[Step]], more: Sequence[str] = ()) -> int:
    """Runs the steps with CTest in `folder`, and prints a verdict per suite."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("inner-*.log"):
        old.unlink()
    (folder / "CTestTestfile.cmake").write_text("".join(tests(suites, folder)), encoding="utf-8")
    command = ["ctest", "--test-dir", str(folder), "-j", str(CORES), "--output-on-failure"]
    command += ["--no-label-summary", "--no-tests=error", "--output-junit", "results.xml", *more]
    results = folder / "results.xml"
    results.write_text("<testsuite/>", encoding="utf-8")
    code = subprocess.run(command, stderr=subprocess.STDOUT, check=False).returncode
    log = folder / "Testing" / "Temporary" / "LastTest.log"
    skipped = [
        line for path in (log, *sorted(folder.glob("inner-*.log"))) for line in in_file(path)
    ]
    print("\nSkipped tests:" if skipped else "\nNo test was skipped.", *skipped, sep="\n    ")
    cases = list(ElementTree.parse(results).iter("testcase"))
    for case in cases:
        if case.attrib["status"] == "fail":
            print(f"\nFAILED {case.attrib['name']} (all of it: {log})")
            print(*(case.findtext("system-out") or "").splitlines()[-SHOWN:], sep="\n    ")
    if not cases:
        free = shutil.disk_usage(folder).free // 1_000_000
        print(f"\nCTest ended without results, with code {code}: {folder} has {free} MB free")
    print(*verdicts(cases), sep="\n", flush=True)
    return 2 if not cases else 1 if code else 0


def verdicts(cases: Sequence[ElementTree.Element]) -> Iterator[str]:
    """One line per suite, from CTest's JUnit file, and one for all."""
    suites = defaultdict(list)
    for case in cases:
        suites[case.attrib["name"].partition(": ")[0]].append(case.attrib)
    failed = 0
    for name, steps in suites.items():
        wrong = [step["name"] for step in steps if step["status"] != "run"]
        failed += bool(wrong)
        minutes = sum(float(step["time"]) for step in steps) / 60
        word = f"FAILED: {', '.join(wrong)}" if wrong else "passed"
        yield f"{name:12} {minutes:5.1f} min  {len(steps)} steps  {word}"
    yield f"{len(suites) - failed} passed, {failed} failed"


def tests(suites: Mapping[str, Sequence[Step]], folder: Path) -> Iterator[str]:
    """CTestTestfile.cmake, one test per step.

    DEPENDS gives the order, whether or not a step passes: a step waits for the group before it. A
    group is one step, or neighbors of one core.
    """
    before: list[str] = []
    group: list[str] = []
    cores = 0
    for name, steps in suites.items():
        needed: list[str] = []
        for number, step in enumerate(steps):
            test = f"{name}: {step.title}"
            if step.cores > 1 or cores > 1:
                before, group = group, []
            group, cores = [*group, test], step.cores
            properties = {
                "DEPENDS": ";".join(before),
                "FIXTURES_REQUIRED": ";".join(needed),
                "FIXTURES_SETUP": f"{name}-{number}" if step.needed else "",
                "LABELS": name,
                "PROCESSORS": step.cores,
                "TIMEOUT": HANGING,
                "WORKING_DIRECTORY": ROOT / step.folder,
            }
            command = _command(step, folder / f"inner-{name}-{number}.log")
            yield f"add_test({_quoted(test)} bash -c {_quoted(command)})\n"
            listed = " ".join(
                f"{key} {_quoted(value)}" for key, value in properties.items() if value
            )
            yield f"set_tests_properties({_quoted(test)} PROPERTIES {listed})\n"
            needed += [f"{name}-{number}"] if step.needed else []


def _command(step: Step, log: Path) -> str:
    """The step's command. Copies the log of its CTest to `log`, because the next CTest in that
    build folder overwrites it.
    """
    lines = [f"export {key}={shlex.quote(value)}" for key, value in step.environment.items()]
    if step.ctest:
        inner = ROOT / step.ctest / "Testing" / "Temporary" / "LastTest.log"
        lines += [f"rm -f '{inner}'", f"trap \"cp '{inner}' '{log}' 2>/dev/null\" EXIT"]
    return "\n".join([*lines, step.command])


def _quoted(text: object) -> str:
    return f"[==[{text}]==]"


if __name__ == "__main__":
    sys.exit(main())
