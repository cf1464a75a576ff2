"""Compares every runtime of the spec with the vendor's header and library, and prints the results.

Exit codes: 0 all agree, 1 one differs, 2 could not run.
"""

from __future__ import annotations

import sys
from pathlib import Path

# This repository's generator instead of an installed one.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generator"))

import vendors
from fletching_generator.runtimes.model import Runtime
from fletching_generator.spec.load import load_spec


def main() -> int:
    spec = load_spec(vendors.ROOT)
    everything = vendors.texts(spec)
    wrong = 0
    for runtime in spec.runtimes:
        if runtime.name in vendors.NO_HEADER:
            print(f"{runtime.name:8} absent: {vendors.NO_HEADER[runtime.name]}")
            continue
        try:
            found = _disagreements(runtime, vendors.of_runtime(runtime, everything))
        except vendors.CannotRunError as error:
            print(f"runtimes: {runtime.name}: {error}", file=sys.stderr)
            return 2
        wrong += len(found)
        print(*found, sep="\n", end="\n" if found else "")
        print(f"{runtime.name:8} {_verdict(runtime, found)}")
    return 1 if wrong else 0


def _disagreements(runtime: Runtime, files: dict[str, str]) -> list[str]:
    found = vendors.complaints(runtime, files)
    if runtime.header and runtime.header.per_thread:
        found += vendors.complaints(runtime, files, per_thread=True)
    if runtime.name in vendors.INSTALLED:
        library = vendors.INSTALLED[runtime.name]
        missing = set(vendors.missing_symbols(runtime, library))
        missing -= vendors.lacked(runtime)
        found += [f"{library} does not export {symbol}" for symbol in sorted(missing)]
    return found


def _verdict(runtime: Runtime, found: list[str]) -> str:
    counts = f"{len(runtime.functions)} functions, {len(runtime.types)} types, "
    counts += f"{len(runtime.constants)} constants"
    library = vendors.INSTALLED.get(runtime.name)
    where = library or f"no library: {vendors.NOT_INSTALLED.get(runtime.name)}"
    word = "agrees" if not found else f"{len(found)} DISAGREE"
    return f"{word}: {counts}; {runtime.read_from}; {where}"


if __name__ == "__main__":
    sys.exit(main())
