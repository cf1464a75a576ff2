"""Runs cargo-mutants on the crate `fletching`, in a copy of this folder, and writes the result of
each mutant to $RESULTS (tests/mutants_code/README.md).

Runs the tests of a mutant's module first and, if they pass, all tests.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import results
from results import KILLED, NO_BUILD, SURVIVED

HOME = Path(__file__).resolve().parent
ROOT = HOME.parents[1]
SCRATCH = ROOT / "build" / "rust-mutants"
TREE = SCRATCH / "tree" / "bindings" / "rust"
CARGO_MUTANTS = "27.1.0"
SAMPLE = {19: 5}  # by seed: the maximum number per file
MOST_MEMORY = 16 << 30  # per process: a mutant may allocate endlessly
ALL = ("--all-features", "--tests")
# The first pattern that matches a file selects the tests most likely to fail.
TESTS = {
    r"src/arrow/": ("--test=arrow",),
    r"src/async_stream/": ("--lib", "--test=async", "--test=conformance"),
    r"src/dlpack/": ("--test=dlpack", "--test=standin_dlpack", "--test=conformance"),
    r"src/cuda_array_interface/": ("--lib", "--test=cuda_array_interface"),
    r"src/(runtime|c_core)/": ("--test=waiter", "--test=standin_events", "--test=conformance"),
    r"src/": (
        "--lib",
        "--test=core",
        "--test=stream",
        "--test=allocations",
        "--test=conformance",
    ),
}
OUTCOMES = {
    "CaughtMutant": KILLED,
    "MissedMutant": SURVIVED,
    "Timeout": KILLED,
    "Unviable": NO_BUILD,
}
_NAME = re.compile(r"(?P<file>[^:]+):(?P<line>\d+):\d+: (?P<change>.*)")
_DOUBTFUL = re.compile(r"default\(\)|::from(?:_iter)?\(|(?<!String)::new\(")
_RUNNING = re.compile(r"^ +Running `\S*/deps/(\w+)-[0-9a-f]+`", re.MULTILINE)
_FAILED = re.compile(r"^(?:test (\S+) \.\.\. FAILED|    (\w+(?:::\w+)*))$", re.MULTILINE)
_SIGNAL = re.compile(r"\(signal: \d+, (\w+)")

Results = dict[results.Key, results.Result]


@dataclass(frozen=True)
class Mutant(results.Mutant):
    name: str  # the name that cargo-mutants prints, with line and column

    @property
    def is_doubtful(self) -> bool:
        """Whether the mutant rarely compiles."""
        return bool(_DOUBTFUL.search(self.change))


def main() -> int:
    install()
    copy()
    everything = of_names(listed())
    chosen = results.requested(everything)
    if os.environ.get("SAMPLE"):
        chosen = results.sample(chosen, SAMPLE, lambda mutant: mutant.is_doubtful)
    found = results.kept()
    chosen = results.untried(chosen, found)
    for pattern, tests in TESTS.items():
        left = [m for m in chosen if first_fit(m.file) == pattern]
        for arguments in (("--all-features", *tests), ALL):
            found |= attempt(left, everything, arguments)
            left = [m for m in left if found[m.key][0] == SURVIVED]
        write(everything, found)
    write(everything, found)
    return 0


def write(everything: Sequence[Mutant], found: Results) -> None:
    results.write(f"cargo-mutants {CARGO_MUTANTS}", everything, found)


def install() -> None:
    tools = ROOT / "build" / "rust-tools"
    if f'"cargo-mutants {CARGO_MUTANTS} ' not in read(tools / ".crates.toml"):
        command = ["cargo", "install", "--locked", "--root", str(tools)]
        subprocess.run([*command, "cargo-mutants", "--version", CARGO_MUTANTS], check=True)


def copy() -> None:
    """Updates the copy to the state of this folder. Unchanged files are kept, so they are not
    rebuilt; changes that an aborted run left behind are overwritten."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    output = subprocess.run(listed, cwd=HOME, capture_output=True, check=True).stdout.decode()
    names = {name for name in output.split("\0") if (HOME / name).is_file()}
    for name in names:
        source, target = HOME / name, TREE / name
        if not target.is_file() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    for path in [p for p in TREE.rglob("*") if p.is_file()]:
        if path.relative_to(TREE).as_posix() not in names:
            path.unlink()
    link = SCRATCH / "tree" / "build"  # where the tests look for libraries
    if not link.is_symlink():
        link.symlink_to(ROOT / "build")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def listed() -> list[str]:
    return call("--list", capture=True).stdout.splitlines()


def of_names(names: Iterable[str]) -> list[Mutant]:
    counts: Counter[tuple[str, str]] = Counter()
    mutants = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            raise SystemExit(f"cargo-mutants: expected FILE:LINE:COLUMN: CHANGE, got {name}")
        key = match["file"], match["change"]
        counts[key] += 1
        mutants.append(Mutant(key[0], int(match["line"]), key[1], counts[key], name))
    return mutants


def first_fit(file: str) -> str:
    return next(pattern for pattern in TESTS if re.search(pattern, file))


def attempt(
    mutants: Sequence[Mutant], everything: Sequence[Mutant], arguments: Sequence[str]
) -> Results:
    """Returns the result of each mutant and the test that failed."""
    if not mutants:
        return {}
    print(f"{len(mutants)} mutants with {' '.join(arguments)}", flush=True)
    # The name filter of cargo-mutants does not exclude mutants of fields, so the other mutants are
    # listed as caught, which skips them.
    out = SCRATCH / "mutants.out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    by_name = {mutant.name: mutant for mutant in mutants}
    others = {mutant.name for mutant in everything} - set(by_name)
    (out / "caught.txt").write_text("\n".join(others), encoding="utf-8")
    done = call("--iterate", *(f"--cargo-arg={test}" for test in arguments))
    # 2: a mutant survived; 3: one hung.
    if done.returncode not in (0, 2, 3):
        raise SystemExit(f"cargo-mutants: exit code {done.returncode}")
    found = {}
    for outcome in json.loads((out / "outcomes.json").read_text(encoding="utf-8"))["outcomes"]:
        if outcome["scenario"] != "Baseline":
            result = OUTCOMES[outcome["summary"]]
            log = (out / outcome["log_path"]).read_text(encoding="utf-8", errors="replace")
            text = noticed(log, outcome["summary"] == "Timeout") if result == KILLED else ""
            found[by_name[outcome["scenario"]["Mutant"]["name"]].key] = result, text
    return found


def noticed(log: str, hangs: bool) -> str:
    """Returns the test that failed, such as "core: shared::view_has_fields_of_struct"."""
    program = (_RUNNING.findall(log) or ["build"])[-1]
    if hangs:
        return f"{program}: hangs"
    if failed := _FAILED.search(log):
        return f"{program}: {failed[1] or failed[2]}"
    signal = _SIGNAL.search(log)
    return f"{program}: {signal[1] if signal else 'ended'}"


def call(*arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {
        "FLETCHING_LIB_DIR": str(ROOT / "build" / "lib"),
        **os.environ,
        "PATH": f"{ROOT / 'build/rust-tools/bin'}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(SCRATCH / "target"),
        "CARGO_BUILD_JOBS": "1",
        "CARGO_INCREMENTAL": "1",
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    fixed = ["--package=fletching", "--in-place", "--colors=never", f"--output={SCRATCH}"]
    return subprocess.run(
        ["cargo", "mutants", *fixed, *arguments],
        cwd=TREE,
        env=environment,
        stdout=subprocess.PIPE if capture else None,
        text=True,
        check=capture,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY)),
    )


if __name__ == "__main__":
    sys.exit(main())
