"""Proves that the tests of the tables can fail: derives wrong specs, builds every language from
each, and runs its test against the good oracle, or against the vendors' libraries for facts about
events. The test must name the mistake.

Exit codes: 0 every mutant was killed or is a known equivalent, 1 some survived, 2 could not run.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# This repository's generator instead of an installed one.
sys.path.insert(0, str(ROOT / "generator"))

import event_mutations  # noqa: E402
import mutations  # noqa: E402
import report  # noqa: E402
import verdicts  # noqa: E402
from builds import BUILDS, LANGUAGES, Build  # noqa: E402
from mutations import Documents, Mutant  # noqa: E402
from scratch import LIBRARIES, Outcome, Tree, generated  # noqa: E402
from verdicts import Verdict  # noqa: E402

RESULTS = ROOT / "build" / "mutants.json"
# The fixed sample. `make test` takes the first eight, each with a different kind of mistake.
SAMPLE = (
    "swap:ArrowDeviceArray.device_id+device_type",
    "drop:ArrowDeviceArray.sync_event",
    "width:ArrowArray.null_count-int32",
    "value:ARROW_DEVICE_ROCM",
    "signature:ArrowAsyncProducer.request.n-int32",
    "add:ArrowSchema.extra-last",
    "name:kDLTrn",
    "event:opencl-object",
    "page:ArrowAsyncProducer.release",
    "pointer:ArrowArrayStream.get_last_error-void*",
    "mail:ArrowDeviceArray-whole",
    "swap:DLManagedTensorVersioned.deleter+flags",
    "drop:ARROW_DEVICE_CUDA_HOST",
    "width:ArrowDeviceArray.reserved-int64[2]",
    "swap:ArrowAsyncTask.extract_data+private_data",
    "signature:DLPackExchangeAPI.current_work_stream.device_id-int64",
)


class CannotRunError(Exception):
    """The message names the missing part and the fix."""


class Run:
    """The mutants of one run and their results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.good = mutations.read(ROOT / "spec")
        self.derived = derive(self.good)
        self.order = [mutant.id for mutant in self.derived]
        self.mutants = _chosen(self.derived, options)
        self.languages = options.language or list(LANGUAGES)
        self.equivalents = verdicts.Equivalents(Path(__file__).with_name("equivalents.yaml"))
        self.in_turn = options.in_turn
        self.kept = self._kept() if options.keep else []
        self.verdicts: list[Verdict] = []
        self.control: dict[str, int] = {}  # exit code of the good spec, by language
        self._texts: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def run(self) -> None:
        with ThreadPoolExecutor(max_workers=2) as pool:
            wanted = [b for b in BUILDS if any(name in self.languages for name in b.runs)]
            futures = [pool.submit(self._run_build, b, self._mutants_of(b, wanted)) for b in wanted]
            wait(futures, return_when=FIRST_EXCEPTION)
            self._stop.set()  # a language that cannot run stops the others
        for future in futures:
            future.result()

    def _mutants_of(self, build: Build, builds: list[Build]) -> list[Mutant]:
        mutants = [mutant for mutant in self.mutants if mutant.kind == build.kind]
        if not self.in_turn:
            return mutants
        same = [b for b in builds if b.kind == build.kind]
        return mutants[same.index(build) :: len(same)]

    def _run_build(self, build: Build, mutants: list[Mutant]) -> None:
        if self._stop.is_set() or not mutants:
            return
        languages = [name for name in build.runs if name in self.languages]
        tree = Tree(build)
        start = time.monotonic()
        prepared = tree.prepare()
        if prepared.code != 0:
            raise CannotRunError(f"{languages[0]}: cannot prepare:\n{prepared.output}")
        self._check_control(tree, languages)
        for number, mutant in enumerate(mutants, 1):
            if self._stop.is_set():
                return
            self._try(tree, build, languages, mutant)
            if number % 10 == 0 or number == len(mutants):
                minutes = (time.monotonic() - start) / 60
                done = f"{number} of {len(mutants)} mutants, {minutes:.1f} min"
                print(f"{build.name}: {done}", flush=True)

    def _check_control(self, tree: Tree, languages: list[str]) -> None:
        """Requires the good spec to pass; otherwise a mutant's failure is not a detection."""
        outcome = self._build(tree, "good", self.good)
        for language in languages:
            run = tree.run(language) if outcome.code == 0 else outcome
            self.control[language] = run.code
            if run.code != 0:
                raise CannotRunError(f"{language}: the good spec fails:\n{run.output[-4000:]}")

    def _try(self, tree: Tree, build: Build, languages: list[str], mutant: Mutant) -> None:
        outcome = self._build(tree, mutant.id, mutant.documents)
        for language in languages:
            if outcome.code != 0:
                verdict = verdicts.of_build_error(mutant, language, outcome)
            else:
                run = tree.run(language)
                verdict = verdicts.of_run(mutant, language, run, build.failed, self.equivalents)
            with self._lock:
                self.verdicts.append(verdict)
                self._save()
            if verdict.result not in verdicts.GOOD:
                last = verdict.line.splitlines()[-1:] or [""]
                print(f"{language}: {mutant.id}: {verdict.result}: {last[0]}", flush=True)

    def results(self) -> list[Verdict]:
        return report.in_order([*self.kept, *self.verdicts], self.order)

    def _save(self) -> None:
        """Writes after every verdict, so that an interrupted run keeps its results."""
        text = json.dumps([asdict(verdict) for verdict in self.results()], indent=1)
        RESULTS.write_text(text + "\n", encoding="utf-8")

    def _kept(self) -> list[Verdict]:
        """Results of an earlier run that this run does not repeat."""
        if not RESULTS.is_file():
            return []
        found = [Verdict(**entry) for entry in json.loads(RESULTS.read_text("utf-8"))]
        anew = {(mutant.id, language) for mutant in self.mutants for language in self.languages}
        return [v for v in found if v.mutant in self.order and (v.mutant, v.language) not in anew]

    def _build(self, tree: Tree, key: str, documents: Documents) -> Outcome:
        with self._lock:
            if key not in self._texts:
                self._texts[key] = generated(documents)
        return tree.build(documents, self._texts[key])


def derive(good: Documents) -> list[Mutant]:
    """All mutants, in a fixed order."""
    return mutations.derive(good) + event_mutations.derive(good)


def main() -> int:
    options = parse()
    if not (LIBRARIES / "libfletching_oracle.so").is_file():
        print("mutants: build/lib has no oracle; run `make build`", file=sys.stderr)
        return 2
    try:
        run = Run(options)
        start = time.monotonic()
        run.run()
    except CannotRunError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    results = run.results()
    minutes = (time.monotonic() - start) / 60
    print(report.as_text(results))
    print(f"{len(run.mutants)} mutants, {minutes:.1f} min; {RESULTS.relative_to(ROOT)}")
    if options.write_docs:
        report.write_docs(ROOT, results, run.derived, None if options.keep else minutes)
    whole = not (options.sample or options.mutant or options.language)
    unused = list(run.equivalents.unused()) if whole else []
    for entry in unused:
        print(f"mutants: the entry '{entry}' of equivalents.yaml is not used; remove it")
    return 1 if unused or any(v.result not in verdicts.GOOD for v in results) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="may be repeated")
    parser.add_argument("--mutant", action="append", help="an id; may be repeated")
    parser.add_argument(
        "--sample", type=int, metavar="N", help=f"the first N of the fixed {len(SAMPLE)}"
    )
    parser.add_argument(
        "--in-turn", action="store_true", help="build each mutant for one language, in turn"
    )
    parser.add_argument("--list", action="store_true", help="print the ids and stop")
    parser.add_argument(
        "--keep", action="store_true", help="keep the results that this run does not make anew"
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="write docs/measured/mutants.md as well"
    )
    options = parser.parse_args()
    if options.sample is not None and not 1 <= options.sample <= len(SAMPLE):
        parser.error(f"--sample: out of range: expected 1 to {len(SAMPLE)}")
    if options.list:
        print(*(m.id for m in derive(mutations.read(ROOT / "spec"))), sep="\n")
        parser.exit()
    return options


def _chosen(mutants: list[Mutant], options: argparse.Namespace) -> list[Mutant]:
    by_id = {mutant.id: mutant for mutant in mutants}
    wanted = [*(SAMPLE[: options.sample] if options.sample else ()), *(options.mutant or ())]
    for name in wanted:
        if name not in by_id:
            raise CannotRunError(f"no mutant '{name}'; --list names them all")
    return [by_id[name] for name in wanted] if wanted else mutants


if __name__ == "__main__":
    sys.exit(main())
