"""Proves that a new device reaches every language from a dlpack.h alone.

Adds two devices, one with a value and one without, and a data-type code to the pinned copy of
DLPack's header, as if in its next release. In a scratch copy of the repository, each language first
prints their numbers as unknown. After `fletching sync` and `fletching generate`, it must print
their names and pass its tests.
Exit codes: 0 all languages did, 1 one did not, 2 could not run.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow

ROOT = Path(__file__).resolve().parents[2]
# This repository's generator instead of an installed one.
sys.path.insert(1, str(ROOT / "generator"))

from builds import BUILDS, HOMES, LANGUAGES, Build, probes, used  # noqa: E402
from fletching_generator.spec.load import load_spec  # noqa: E402
from fletching_generator.spec.model import Spec  # noqa: E402
from mutations import ABI  # noqa: E402
from scratch import Tree  # noqa: E402

PROBES = probes(HOMES)
SCRATCH = ROOT / "build" / "new_device"
UPSTREAM = Path(pyarrow.get_include()) / "arrow" / "c" / "dlpack_abi.h"
_DEVICES, _CODES = "} DLDeviceType;", "} DLDataTypeCode;"
# Headers and libraries that the tests need.
_BUILT = (
    *used(HOMES),
    ROOT / "build" / "bin" / "fletching-extract",
)

Names = Mapping[str, str]  # {"device:39": "nextchip", "code:19": "nextcode"}


class StepError(Exception):
    """A required command failed; the message contains the end of its output."""


@dataclass(frozen=True)
class Verdict:
    language: str
    problem: str  # empty if there is none
    seconds: float


def new_names(spec: Spec) -> Names:
    """The new names: the device after the last one, a device farther away, and a code."""
    device = max(device.value for device in (*spec.devices, *spec.unreleased_devices))
    code = max(code.value for code in spec.data_type_codes.known)
    return {
        f"device:{device + 18}": "nextchip",
        f"device:{device + 19}": "otherchip",
        f"code:{code + 1}": "nextcode",
    }


def header_with(text: str, names: Names) -> str:
    """DLPack's header of the next release. One new device has no value and follows the other."""
    values = [key.partition(":")[2] for key in names]
    first, second, code = (f"kDL{name.title()}" for name in names.values())
    text = _with_enumerators(text, _DEVICES, f"  {first} = {values[0]},\n  {second},\n")
    text = _with_enumerators(text, _CODES, f"  {code} = {values[2]},\n")
    version = re.compile(r"(#define DLPACK_MINOR_VERSION )(\d+)")
    return version.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", text)


def _with_enumerators(text: str, end: str, added: str) -> str:
    before, found, after = text.partition(end)
    if not found or not before.rstrip().endswith(","):
        raise ValueError(f"{UPSTREAM} does not end its list with a comma and '{end}'")
    return f"{before}{added}{found}{after}"


def _unknown(names: Names) -> Names:
    return {key: f"unknown({key.partition(':')[2]})" for key in names}


def difference(printed: str, names: Names) -> str:
    """The difference between a probe's output and the names, as text."""
    lines = printed.splitlines()
    if len(lines) != len(names):
        return f"the probe printed {len(lines)} lines instead of {len(names)}:\n{printed}"
    wrong = [
        f"{key} prints as {line}, not as {name}"
        for line, (key, name) in zip(lines, names.items(), strict=True)
        if line != name
    ]
    return "; ".join(wrong)


def check_build(build: Build, names: Names) -> Iterator[Verdict]:
    """Tries the languages of one build in a scratch tree. They share the time evenly."""
    start = time.monotonic()
    tree = Tree(build, SCRATCH)
    unknown = _unknown(names)
    problems = dict.fromkeys(build.runs, "")
    try:
        outcome = tree.prepare()
        if outcome.code != 0:
            raise StepError(f"cannot prepare the scratch tree:\n{_end(outcome.output)}")
        for language in build.runs:
            problems[language] = _without_sync(tree, build, language, unknown)
        _must(tree, "sync and generate", _generate_command(), ".")
        for language in build.runs:
            problems[language] = problems[language] or _with_sync(tree, build, language, names)
    except StepError as error:
        problems = {language: problem or str(error) for language, problem in problems.items()}
    seconds = (time.monotonic() - start) / len(build.runs)
    yield from (Verdict(language, problem, seconds) for language, problem in problems.items())


def _without_sync(tree: Tree, build: Build, language: str, unknown: Names) -> str:
    found = difference(_probe(tree, build, language, unknown), unknown)
    return f"before the sync, {found}" if found else ""


def _with_sync(tree: Tree, build: Build, language: str, names: Names) -> str:
    found = difference(_probe(tree, build, language, names), names)
    if found:
        return f"after the sync, {found}"
    _must(tree, "the ABI tests", build.runs[language])
    _must(tree, "the tests of the device types", PROBES[language].tests)
    return ""


def _probe(tree: Tree, build: Build, language: str, names: Names) -> str:
    _must(tree, "building the ABI tests", build.build)
    _must(tree, "building the probe", PROBES[language].build)
    return _must(tree, "the probe", f"{PROBES[language].run} {' '.join(names)}")


def _must(tree: Tree, what: str, command: str, folder: str | None = None) -> str:
    outcome = tree.bash(command, folder)
    if outcome.code != 0:
        raise StepError(f"{what}: exit code {outcome.code}:\n{_end(outcome.output)}")
    return outcome.output


def _end(output: str) -> str:
    return "\n".join(f"    {line}" for line in output.splitlines()[-30:])


def _generate_command() -> str:
    fletching = (
        f'PYTHONPATH="$ROOT/generator" FLETCHING_EXTRACT="$ROOT/build/bin/fletching-extract" '
        f"{sys.executable} -m fletching_generator.cli --root ."
    )
    return f"{fletching} sync {SCRATCH / 'dlpack.h'} && {fletching} generate"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="may be repeated")
    wanted = parser.parse_args().language or list(LANGUAGES)
    missing = [path for path in _BUILT if not path.is_file()]
    if missing:
        name = missing[0].relative_to(ROOT)
        hint = "run 'tools/build'"
        print(f"new_device: {name} is not there; {hint}", file=sys.stderr)
        return 2
    names = new_names(load_spec(ROOT))
    SCRATCH.mkdir(parents=True, exist_ok=True)
    text = header_with(UPSTREAM.read_text(encoding="utf-8"), names)
    (SCRATCH / "dlpack.h").write_text(text, encoding="utf-8")
    return report(list(_verdicts(wanted, names)), names)


def _verdicts(wanted: list[str], names: Names) -> Iterator[Verdict]:
    of_abi = [build for build in BUILDS if build.kind == ABI]
    builds = [build for build in of_abi if any(language in wanted for language in build.runs)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        for found in pool.map(lambda build: list(check_build(build, names)), builds):
            yield from (verdict for verdict in found if verdict.language in wanted)


def report(verdicts: list[Verdict], names: Names) -> int:
    """Prints one line per language and returns the exit code."""
    unknown = _unknown(names)
    good = ", ".join(f"{unknown[key]}, then {name}" for key, name in names.items())
    for verdict in sorted(verdicts, key=lambda v: LANGUAGES.index(v.language)):
        said = f"FAILED: {verdict.problem}" if verdict.problem else f"passed: {good}"
        print(f"{verdict.language:10}{verdict.seconds:5.0f} s  {said}")
    failed = sum(bool(verdict.problem) for verdict in verdicts)
    print(f"{len(verdicts) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
