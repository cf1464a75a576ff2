"""Runs the test suites of suites.py with CTest: every step, even after a failure.

    tools/suite.py [--all] [SUITE...] [-- CTEST_OPTION...]

`make test` and `make test-all` call this. A step is a CTest test of the name "SUITE: TITLE" and the
label SUITE, so that `-- -R vet` runs some of them and `-- -V` prints all output while it runs.
CTest cannot print why a test inside of a step was skipped; this lists the reasons at the end.
Exit codes: 0 all passed, 1 something failed, 2 could not run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from skipped import of_build
from suites import SUITES, Step

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "suites"
USAGE = "suite.py [--all] [SUITE...] [-- CTEST_OPTION...]"
CORES = 2
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
    (folder / "CTestTestfile.cmake").write_text("".join(tests(suites)), encoding="utf-8")
    command = ["ctest", "--test-dir", str(folder), "-j", str(CORES), "--output-on-failure"]
    command += ["--no-label-summary", "--no-tests=error", "--output-junit", "results.xml", *more]
    results = folder / "results.xml"
    results.write_text("<testsuite/>", encoding="utf-8")
    start = results.stat().st_mtime
    code = subprocess.run(command, stderr=subprocess.STDOUT, check=False).returncode
    skipped = of_build(folder)
    for build in sorted({step.ctest for steps in suites.values() for step in steps if step.ctest}):
        skipped += of_build(ROOT / build, start)
    print("\nSkipped tests:" if skipped else "\nNo test was skipped.", *skipped, sep="\n    ")
    print(*verdicts(results), sep="\n", flush=True)
    return 1 if code else 0


def verdicts(results: Path) -> Iterator[str]:
    """One line per suite, from CTest's JUnit file, and one for all."""
    cases = defaultdict(list)
    for case in ElementTree.parse(results).iter("testcase"):
        cases[case.attrib["name"].partition(": ")[0]].append(case.attrib)
    failed = 0
    for name, of_suite in cases.items():
        wrong = [case["name"] for case in of_suite if case["status"] != "run"]
        failed += bool(wrong)
        minutes = sum(float(case["time"]) for case in of_suite) / 60
        word = f"FAILED: {', '.join(wrong)}" if wrong else "passed"
        yield f"{name:12} {minutes:5.1f} min  {len(of_suite)} steps  {word}"
    yield f"{len(cases) - failed} passed, {failed} failed"


def tests(suites: Mapping[str, Sequence[Step]]) -> Iterator[str]:
    """CTestTestfile.cmake, one test per step, in the order of the steps."""
    cost = sum(map(len, suites.values()))  # CTest starts the test of the highest cost first
    for name, steps in suites.items():
        needed: list[str] = []
        for number, step in enumerate(steps):
            properties = {
                "COST": cost,
                "ENVIRONMENT": ";".join(
                    f"{key}={value}" for key, value in step.environment.items()
                ),
                "FIXTURES_REQUIRED": ";".join(needed),
                "FIXTURES_SETUP": f"{name}-{number}" if step.needed else "",
                "LABELS": name,
                "PROCESSORS": step.cores,
                "TIMEOUT": HANGING,
                "WORKING_DIRECTORY": ROOT / step.folder,
            }
            title = _quoted(f"{name}: {step.title}")
            yield f"add_test({title} bash -c {_quoted(step.command)})\n"
            listed = " ".join(
                f"{key} {_quoted(value)}" for key, value in properties.items() if value
            )
            yield f"set_tests_properties({title} PROPERTIES {listed})\n"
            needed += [f"{name}-{number}"] if step.needed else []
            cost -= 1


def _quoted(text: object) -> str:
    return f"[==[{text}]==]"


if __name__ == "__main__":
    sys.exit(main())
