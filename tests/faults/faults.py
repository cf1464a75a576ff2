"""Makes every vendor call of the kit fail once, and prints the outcome.

Writes build/faults.json, and with --write docs/measured/faults.md.
Exit codes: 0 all failures handled, 1 some not handled, 2 could not run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import report
from backends import BACKENDS, SPECIALS, Backend, Special, environment
from coverage import called, of_producer, table

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 300  # seconds; a run that hangs counts as a failure
CANNOT_RUN = 2


@dataclass
class Row:
    """The outcome of one function on one backend."""

    backend: str
    runtime: str
    function: str
    reported: int = 0  # calls whose failure was reported
    silent: Counter[str] = field(default_factory=Counter)  # failures without a report, by step
    cannot_fail: bool = False
    problems: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return self.reported + self.silent.total()


def main() -> int:
    options = _parse()
    backends = [b for b in BACKENDS if not options.backend or b.name in options.backend]
    missing = sorted({b.library for b in backends if not _library(options, b).exists()})
    if not options.program.exists() or missing:
        what = ", ".join(missing) or options.program
        print(f"faults: {what} is not built; run `make build`", file=sys.stderr)
        return CANNOT_RUN
    tables = {backend.runtime: table(ROOT, backend.runtime) for backend in backends}
    if "vulkan" in tables:
        tables["vulkan"] = {**of_producer(ROOT), **tables["vulkan"]}
    jobs = [(b, function) for b in backends for function in tables[b.runtime]]
    if options.sample:
        jobs = _sample(jobs)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda job: _run(options, *job), jobs))
        specials = [s for s in SPECIALS if any(s.backend == b.name for b in backends)]
        outcomes = list(pool.map(lambda special: _run_special(options, special), specials))
    if not options.sample:
        for runtime, members in tables.items():
            _look_for_uncalled(runtime, members, rows)
    result = report.Result(rows, outcomes, options.sample)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report.as_json(result), indent=1) + "\n", encoding="utf-8")
    if options.write:
        page = ROOT / "docs" / "measured" / "faults.md"
        page.write_text(report.as_page(result), encoding="utf-8")
    print(report.as_text(result), end="")
    return 0 if result.is_fine else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", nargs="*", help="some of them (default: all)")
    parser.add_argument("--sample", action="store_true", help="every sixth function only")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--write", action="store_true", help="write docs/measured/faults.md")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "faults.json")
    parser.add_argument(
        "--program", type=Path, default=ROOT / "build" / "cmake" / "bin" / "fletching_faults"
    )
    parser.add_argument("--libraries", type=Path, default=ROOT / "build" / "lib")
    return parser.parse_args()


def _library(options: argparse.Namespace, backend: Backend) -> Path:
    return Path(options.libraries / backend.folder / backend.library)


def _sample(jobs: list[tuple[Backend, str]]) -> list[tuple[Backend, str]]:
    """Every sixth job. No backend's function count is a multiple of 6, so the samples differ."""
    return jobs[::6]


def _lines(
    options: argparse.Namespace, env: dict[str, str], *arguments: str
) -> tuple[list[dict[str, object]], str]:
    """The program's output, and the problem, or "" if it succeeded."""
    command = [options.program, *arguments]
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return [], f"did not end within {TIMEOUT} seconds"
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode in (0, 1) and (done.returncode == 0 or any("problem" in x for x in lines)):
        return lines, ""
    return lines, f"ended with {done.returncode}: {done.stderr.strip()[-2000:]}"


def _run(options: argparse.Namespace, backend: Backend, function: str) -> Row:
    env = environment(options.libraries, backend, backend.folder, {})
    lines, end = _lines(options, env, "fault", backend.name, function)
    row = Row(backend.name, backend.runtime, function)
    for line in lines:
        if "problem" in line:
            row.problems.append(
                f"call {line.get('n')} in {line.get('step')}: {line['problem']} ({line['text']})"
            )
        if line["outcome"] == "cannot fail":
            row.cannot_fail = True
        elif line["outcome"] == "silent":
            row.silent[str(line["step"])] += 1
        else:
            row.reported += 1
            row.texts.append(str(line["text"]))
    if end:
        row.problems.append(end)
    return row


def _run_special(options: argparse.Namespace, special: Special) -> report.Outcome:
    backend = next(b for b in BACKENDS if b.name == special.backend)
    folder = backend.folder if special.folder is None else special.folder
    env = environment(options.libraries, backend, folder, special.environment)
    lines, problem = _lines(options, env, "special", special.name, special.backend)
    text = str(lines[-1]["text"]) if lines else ""
    if lines and "problem" in lines[-1]:
        problem = str(lines[-1]["problem"])
    elif not problem and special.says not in text:
        problem = f"does not say {special.says}"
    return report.Outcome(special.title, special.backend, text, problem)


def _look_for_uncalled(runtime: str, members: dict[str, str], rows: Iterable[Row]) -> None:
    """Marks functions that the kit uses and no scenario calls as gaps in the scenarios."""
    named = called(ROOT, members)
    for function, files in named.items():
        mine = [row for row in rows if row.runtime == runtime and row.function == function]
        if any(row.calls or row.cannot_fail for row in mine) or not mine:
            continue
        where = ", ".join(files)
        mine[0].problems.append(f"{where} calls it, and no step of the scenario does")


if __name__ == "__main__":
    sys.exit(main())
