"""Runs every step of the test suites, even after a failure, and prints one verdict per suite.

`make test` and `make test-all` call this. Each step's output is in build/logs. Prints the end of
the output of a failed step, and the skipped tests of every step with their reasons.
Exit codes: 0 all passed, 1 something failed, 2 could not run.
"""

from __future__ import annotations

import argparse
import errno
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from skipped import in_pytest, of_ctest
from suites import SUITES, Step

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
SHOWN_LINES = 60
SHOWN_AGAIN = 15  # lines repeated above the verdicts, for readers who see only the end
AT_ONCE = 2  # steps that run in parallel


@dataclass(frozen=True)
class Verdict:
    suite: str
    failed: dict[str, Path]  # logs of failed steps, by title
    steps: int
    minutes: float


@dataclass(frozen=True)
class Outcome:
    passed: bool
    seconds: float
    began_at: float  # in the file system's time
    log: Path


def main() -> int:
    options = _parse()
    unknown = [name for name in options.suite if name not in SUITES]
    if unknown:
        print(
            f"suite: no suite '{unknown[0]}'; use some of {', '.join(SUITES)}",
            file=sys.stderr,
        )
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    chosen = {
        name: _in_tier(steps, options.all)
        for name, steps in SUITES.items()
        if not options.suite or name in options.suite
    }
    suites = {name: steps for name, steps in chosen.items() if steps}
    if not suites:
        print(
            f"suite: {', '.join(chosen)}: only in `make test-all`: expected --all", file=sys.stderr
        )
        return 2
    try:
        verdicts = [_run_suite(name, steps, options) for name, steps in suites.items()]
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"\nsuite: the disk of {ROOT} is full: free some and run this again", file=sys.stderr)
        return 2
    return _report(verdicts, "test-all" if options.all else "test")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", nargs="*", help=f"some of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--all", action="store_true", help="also the steps of `make test-all`")
    parser.add_argument("--verbose", action="store_true", help="print all output while it runs")
    return parser.parse_args()


def _in_tier(steps: tuple[Step, ...], everything: bool) -> list[Step]:
    return [step for step in steps if everything or not step.only_all]


def _run_suite(name: str, steps: list[Step], options: argparse.Namespace) -> Verdict:
    start = time.monotonic()
    failed = {}
    running: deque[Future[Outcome]] = deque()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, step in enumerate(steps):
            print(
                f"{name:10} {step.title} ...",
                end="\n" if options.verbose else " ",
                flush=True,
            )
            if not running:
                running += _start(pool, name, steps, number, options.verbose)
            outcome = running.popleft().result()
            print(f"{'ok' if outcome.passed else 'FAILED'} ({outcome.seconds:.0f} s)", flush=True)
            for line in _skipped(step, outcome.log, outcome.began_at):
                print(f"    skipped: {line}", flush=True)
            if not outcome.passed:
                failed[step.title] = outcome.log
                _show_end(outcome.log, SHOWN_LINES)
                if step.needed:
                    break
    return Verdict(name, failed, len(steps), (time.monotonic() - start) / 60)


def _start(
    pool: Executor, name: str, steps: list[Step], number: int, verbose: bool
) -> Iterator[Future[Outcome]]:
    """Starts the step of this number and the following ones that may run beside it. With
    `verbose`, starts only one."""
    for place, step in enumerate(steps[number:], number):
        if place > number and (verbose or not step.beside):
            return
        log = LOGS / f"{name}-{place}.log"
        yield pool.submit(_run_step, step, log, verbose)


def _run_step(step: Step, log: Path, verbose: bool) -> Outcome:
    began, began_at = time.monotonic(), time.time()
    passed = _succeeds(step, log, verbose)
    return Outcome(passed, time.monotonic() - began, began_at, log)


def _succeeds(step: Step, log: Path, verbose: bool) -> bool:
    environment = {**os.environ, **step.environment}
    with log.open("wb") as file:
        file.write(f"$ {step.command}\n".encode())
        file.flush()
        with subprocess.Popen(
            ["bash", "-c", step.command],
            cwd=ROOT / step.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if verbose else file,
            stderr=subprocess.STDOUT,
        ) as process:
            for line in process.stdout or ():
                file.write(line)
                sys.stdout.buffer.write(line)
                sys.stdout.flush()
        return process.returncode == 0


def _skipped(step: Step, log: Path, began_at: float) -> list[str]:
    """The skipped tests of this run. If the step did not reach its ctest, those are not counted."""
    lines = list(in_pytest(log.read_text(encoding="utf-8", errors="replace")))
    last = ROOT / step.ctest / "Testing" / "Temporary" / "LastTest.log"
    if step.ctest and last.exists() and last.stat().st_mtime >= began_at:
        lines += of_ctest(ROOT / step.ctest)
    return lines


def _show_end(log: Path, count: int) -> None:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines[-count:]:
        print(f"    {line}")
    print(f"    (the whole log: {log.relative_to(ROOT)})", flush=True)


def _report(verdicts: list[Verdict], tier: str) -> int:
    for verdict in verdicts:
        for title, log in verdict.failed.items():
            print(f"\nFAILED {verdict.suite}: {title}")
            _show_end(log, SHOWN_AGAIN)
    print()
    for verdict in verdicts:
        word = "passed" if not verdict.failed else f"FAILED: {', '.join(verdict.failed)}"
        print(f"{verdict.suite:10} {verdict.minutes:5.1f} min  {verdict.steps} steps  {word}")
    failed = sum(1 for verdict in verdicts if verdict.failed)
    print(f"all        {sum(v.minutes for v in verdicts):5.1f} min  ({'make ' + tier})")
    print(f"{len(verdicts) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
