"""Proves that the tests of the library and of the generator can fail: changes their code
mechanically, one place at a time, and checks whether a test detects it.

Exit codes: 0 enough were killed, 1 too few were killed or equivalents.yaml is wrong, 2 could not
run.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import cpp_mutants
import python_mutants
import report
import results
import sample
import trials
from cpp_mutants import CannotRunError
from equivalents import Equivalents, EquivalentsError
from mutant import Mutant
from report import Verdict
from tree import HOME, ROOT, Tree, numbered

SCRATCH = ROOT / "build" / "mutants-code"
RESULTS = SCRATCH / "results.json"
OF_PROGRAMS = "^test_devices$"  # the Python test of a C++ program


def main() -> int:
    options = _parse()
    try:
        mutants = find()
        known = Equivalents(HOME / "equivalents.yaml", mutants)
        chosen = choose(mutants, options)
        if options.list:
            print(*map(report.line, chosen), sep="\n")
            return 0
        verdicts = run(chosen, known, options)
    except EquivalentsError as error:
        print(f"mutants-code: {error}", file=sys.stderr)
        return 1
    except CannotRunError as error:
        print(f"mutants-code: {error}", file=sys.stderr)
        return 2
    print(report.as_text(verdicts))
    if options.write_docs:
        report.write_docs(ROOT, verdicts, len(mutants))
    killed = [v.mutant for v in verdicts if v.result == results.KILLED]
    wrong = report.problems(verdicts)
    wrong += [f"equivalents.yaml: {report.line(m)}: killed by a test" for m in known.broken(killed)]
    for problem in wrong:
        print(f"mutants-code: {problem}")
    return 1 if wrong else 0


def find() -> list[Mutant]:
    """All mutants, except those in generated files."""
    finder = cpp_mutants.build_finder(SCRATCH / "finder")
    return [
        *cpp_mutants.of_library(finder, ROOT, SCRATCH),
        *python_mutants.of_package(ROOT, ROOT / "generator" / "fletching_generator"),
    ]


def choose(mutants: Sequence[Mutant], options: argparse.Namespace) -> list[Mutant]:
    if options.file:
        chosen = [mutant for mutant in mutants if re.search(options.file, mutant.file)]
    else:
        chosen = sample.sample(mutants)
    if options.sample:
        chosen = sample.few(chosen, options.sample)
    return chosen


def run(chosen: Sequence[Mutant], known: Equivalents, options: argparse.Namespace) -> list[Verdict]:
    kept = _kept() if options.keep else {}
    tree = Tree(SCRATCH / "tree")
    by_number = numbered(chosen)
    tree.write(by_number)
    left_out = _compile(tree, by_number)
    tests = _tests(tree, by_number, options.tests)
    environment = tree.environment()
    verdicts = {m.key: Verdict(m, results.NO_BUILD, "is left out") for m in left_out}

    lock = threading.Lock()

    def judge(number: int, mutant: Mutant) -> None:
        trial = kept.get(mutant.key) or trials.attempt(number, tests, environment)
        with lock:
            verdicts[mutant.key] = _verdict(mutant, trial, known)
            _save(list(verdicts.values()), len(chosen))

    begin = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda item: judge(*item), by_number.items()))
    print(f"{len(chosen)} mutants, {(time.monotonic() - begin) / 60:.1f} min")
    return [verdicts[mutant.key] for mutant in chosen]


def _compile(tree: Tree, by_number: dict[int, Mutant]) -> list[Mutant]:
    if not any(mutant.file.startswith("cpp/") for mutant in by_number.values()):
        return []
    begin = time.monotonic()
    print(f"building the tests with {len(by_number)} mutants ...", flush=True)
    left_out = tree.compile(by_number, SCRATCH / "build.log")
    print(f"built in {(time.monotonic() - begin) / 60:.1f} min", flush=True)
    for mutant in left_out:
        print(f"does not compile: {report.line(mutant)}", flush=True)
    return left_out


def _tests(tree: Tree, by_number: dict[int, Mutant], names: str) -> list[trials.Test]:
    files = {mutant.file.split("/")[0] for mutant in by_number.values()}
    tests = [
        *(trials.of_cpp(tree, names) if "cpp" in files else ()),
        *trials.of_python(tree, names if "generator" in files else OF_PROGRAMS),
    ]
    begin = time.monotonic()
    found = trials.record(tests, tree.environment(), SCRATCH / "seen")
    print(f"{len(found)} tests pass without a mutant, {(time.monotonic() - begin) / 60:.1f} min")
    return found


def _verdict(mutant: Mutant, trial: trials.Trial, known: Equivalents) -> Verdict:
    if trial.killed_by:
        return Verdict(mutant, results.KILLED, trial.killed_by)
    if reason := known.reason(mutant):
        return Verdict(mutant, report.EQUIVALENT, reason)
    text = f"{trial.tests} tests reach it" if trial.tests else "no test reaches it"
    print(f"survived: {report.line(mutant)}: {text}", flush=True)
    return Verdict(mutant, results.SURVIVED, text)


def _save(verdicts: Sequence[Verdict], count: int) -> None:
    """Writes after every verdict, so that an interrupted run keeps its results."""
    entries = [
        {"mutant": v.mutant.key, "line": v.mutant.line, "result": v.result, "text": v.text}
        for v in verdicts
    ]
    scratch = RESULTS.with_suffix(".new")
    scratch.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    scratch.replace(RESULTS)
    if len(verdicts) % 20 == 0:
        print(f"{len(verdicts)} of {count}", flush=True)


def _kept() -> dict[str, trials.Trial]:
    """The kills of an earlier run."""
    if not RESULTS.is_file():
        return {}
    return {
        entry["mutant"]: trials.Trial(entry["text"], 0)
        for entry in json.loads(RESULTS.read_text(encoding="utf-8"))
        if entry["result"] == results.KILLED
    }


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="N of the sample, of every part")
    parser.add_argument("--file", help="all mutants of the files with this in their path")
    parser.add_argument("--tests", default="", help="only tests with this in their names")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--keep", action="store_true", help="do not repeat what was killed before")
    parser.add_argument("--jobs", type=int, default=2, help="tests at once")
    parser.add_argument(
        "--write-docs", action="store_true", help="write docs/measured/mutants-code.md as well"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
