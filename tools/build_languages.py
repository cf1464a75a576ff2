"""Builds what the tests run: the homes of the languages, and fletching-extract.

    tools/build [--gpu FOLDER]
    tools/build [--with-needed] [--mutants] [LANGUAGE... | extract | languages]

All by default. --with-needed: also the homes whose build a named one needs. --mutants: those whose
build the mutants use. --gpu: what travels to a GPU machine, into FOLDER. Goes on after a failure
and says at the end what did not build.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from languages import ROOT, Language, environment, load, succeeds

LOGS = ROOT / "build" / "logs"
SHOWN_LINES = 40
# The reader of C headers is the generator's, not a language's.
EXTRACT = "extract"
_EXTRACT = r"""
cmake -S generator/extract -B build/extract -DCMAKE_BUILD_TYPE=Release \
  -DFLETCHING_EXTRACT_OUTPUT_DIRECTORY="$PWD/build/bin" \
  -DFLETCHING_UPSTREAM_INCLUDE="$PWD/.venv/upstream" &&
  cmake --build build/extract -j"$(nproc)"
"""


def main() -> int:
    known = load()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help=f"{', '.join(known)}, {EXTRACT}, or languages")
    parser.add_argument("--with-needed", action="store_true")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--gpu", type=Path)
    options = parser.parse_args()
    unknown = [n for n in options.name if n not in (*known, EXTRACT, "languages")]
    if unknown:
        parser.error(f"no language '{unknown[0]}': expected one of {', '.join(known)}, {EXTRACT}")
    (ROOT / "build" / "lib").mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    if options.gpu:
        failed = [name for name, each in known.items() if not build_gpu(name, each, options.gpu)]
    else:
        failed = [name for name in chosen(known, options) if not build(name, known.get(name))]
    if failed:
        print(f"build: failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def chosen(known: Mapping[str, Language], options: argparse.Namespace) -> list[str]:
    """In the order of the builds."""
    names = set(options.name) or (set() if options.mutants else {*known, EXTRACT})
    if "languages" in names:
        names |= known.keys()
    if options.mutants:
        names |= {n for n, each in known.items() if any(m.uses for m in each.mutants)}
    if options.with_needed:
        names |= {other for n in names if n in known for other in needed(n, known)}
    return [name for name in (*known, EXTRACT) if name in names]


def needed(name: str, known: Mapping[str, Language]) -> Sequence[str]:
    after = known[name].build.after
    return [*after, *(further for other in after for further in needed(other, known))]


def build(name: str, language: Language | None) -> bool:
    if language is None:
        return _succeeds(name, _EXTRACT, ".", {})
    return _succeeds(name, language.build.command, language.folder, environment(language))


def build_gpu(name: str, language: Language, folder: Path) -> bool:
    """What travels to a GPU machine, if anything does; the toolchain may be missing."""
    if language.gpu is None:
        return True
    if not succeeds(language, language.toolchain.check):
        print(f"build: {name} is left out: {language.toolchain.hint}")
        return True
    variables = {**environment(language), "OUT": str(folder.resolve())}
    return _succeeds(f"{name}-gpu", language.gpu.build, language.folder, variables)


def _succeeds(name: str, command: str, folder: str, variables: Mapping[str, str]) -> bool:
    """Runs one build and prints a line about it, with the end of its output if it failed."""
    log = LOGS / f"build-{name}.log"
    print(f"build: {name:7} ", end="", flush=True)
    start = time.monotonic()
    with log.open("wb") as file:
        code = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=ROOT / folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    seconds = time.monotonic() - start
    if code == 0:
        print(f"ok ({seconds:.0f} s)", flush=True)
        return True
    print(f"FAILED ({seconds:.0f} s); the end of {log.relative_to(ROOT)}:")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    print(*(f"    {line}" for line in lines[-SHOWN_LINES:]), sep="\n", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
