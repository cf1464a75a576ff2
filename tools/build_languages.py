"""Builds the programs of the tests: the homes of the languages, and fletching-extract.

    tools/build [--roundtrip] [--with-needed] [LANGUAGE... | extract]

Builds all by default, in parallel. --roundtrip: only the parts that the round trip runs, without
fletching-extract. --with-needed: also the homes that a named one needs. Continues after a failure,
and lists the failed builds at the end.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from languages import ROOT, Build, Language, Toolchain, environment, load
from progress import Progress, showing

LOGS = ROOT / "build" / "logs"
SHOWN_LINES = 40
EXTRACT = "extract"
# The reader of C headers, which belongs to the generator, is built like a language.
_READER = Language(
    "fletching-extract",
    Toolchain(check="true", hint="", version=""),
    Build(r"""
cmake -S generator/extract -B build/extract -DCMAKE_BUILD_TYPE=Release \
  -DFLETCHING_EXTRACT_OUTPUT_DIRECTORY="$PWD/build/bin" \
  -DFLETCHING_UPSTREAM_INCLUDE="$PWD/.venv/upstream" &&
  cmake --build build/extract -j"$(nproc)"
"""),
    name=EXTRACT,
    folder=".",
)
# Progress output: "[30/90]" of ninja, "[2/6]" of Maven, "Building [=> ] 12/80: name" of cargo.
_DONE = re.compile(rb"[\[ ](\d+)/(\d+)[\]:]")


def main() -> int:
    known = {**load(), EXTRACT: _READER}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help=f"some of {', '.join(known)}")
    parser.add_argument("--roundtrip", action="store_true")
    parser.add_argument("--with-needed", action="store_true")
    options = parser.parse_args()
    unknown = [n for n in options.name if n not in known]
    if unknown:
        parser.error(f"no language '{unknown[0]}': expected one of {', '.join(known)}")
    (ROOT / "build" / "lib").mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    with showing("build") as progress:
        built = build_all(progress, chosen(known, options), known, options.roundtrip)
    failed = [name for name, done in built.items() if not done]
    if failed:
        print(f"build: failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def chosen(known: Mapping[str, Language], options: argparse.Namespace) -> list[str]:
    """The homes to build, in the order of the languages."""
    names = set(options.name) or {*known} - ({EXTRACT} if options.roundtrip else set())
    if options.with_needed:
        names |= {other for n in names for other in needed(n, known)}
    return [name for name in known if name in names]


def needed(name: str, known: Mapping[str, Language]) -> list[str]:
    direct = (*known[name].build.after, *known[name].build.loads)
    return [*direct, *(further for other in direct for further in needed(other, known))]


def build_all(
    progress: Progress, names: list[str], known: Mapping[str, Language], roundtrip: bool
) -> dict[str, bool]:
    """Returns whether each language was built. `names` must be in the order of the languages, so
    that each language follows the languages that it waits for."""
    builds: dict[str, Future[bool]] = {}
    with ThreadPoolExecutor(max(len(names), 1)) as pool:
        for name in names:
            before = [builds[other] for other in known[name].build.after if other in builds]
            builds[name] = pool.submit(build, progress, known[name], roundtrip, before)
    return {name: done.result() for name, done in builds.items()}


def build(
    progress: Progress, language: Language, roundtrip: bool, before: Iterable[Future[bool]]
) -> bool:
    """Prints a line about the build, with the end of its output if it failed."""
    for other in before:
        other.result()
    name = language.name
    command = (roundtrip and language.build.roundtrip) or language.build.command
    log = LOGS / f"build-{name}.log"
    start = time.monotonic()
    with log.open("wb") as file, progress.task(name, lambda: steps_done(log)):
        code = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=ROOT / language.folder,
            env={**os.environ, **environment(language)},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    seconds = time.monotonic() - start
    if code == 0:
        progress.line(f"build: {name:7} ok ({seconds:.0f} s)")
        return True
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    progress.line(
        f"build: {name:7} FAILED ({seconds:.0f} s); the end of {log.relative_to(ROOT)}:",
        *(f"    {line}" for line in lines[-SHOWN_LINES:]),
    )
    return False


def steps_done(log: Path) -> tuple[int, int] | None:
    """The current step and the number of steps in a build tool's output."""
    if not log.exists():
        return None
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        found = _DONE.findall(file.read())
    return (int(found[-1][0]), int(found[-1][1])) if found else None


if __name__ == "__main__":
    sys.exit(main())
