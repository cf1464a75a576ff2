"""Runs cargo-mutants on the crate `fletching`, in a copy of this folder, and writes what became of
each mutant to $RESULTS (tests/mutants_code/README.md).

A mutant is tried on the tests of its module first and, when they pass, on all tests.
"""

from __future__ import annotations

import hashlib
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

HOME = Path(__file__).resolve().parent
ROOT = HOME.parents[1]
SCRATCH = ROOT / "build" / "rust-mutants"
TREE = SCRATCH / "tree" / "bindings" / "rust"
VERSION = "27.1.0"
SEED = 19
PER_FILE = 5  # at most, in a sample
MOST_MEMORY = 16 << 30  # of a process: a mutant may allocate without end
ALL = ("--all-features", "--tests")
# What is compiled only without another feature.
WITHOUT = {"fletching/src/dlpack/stream.rs": ("--features=dlpack", "--test=dlpack")}
# The first that fits a file has the tests that are the likeliest to notice.
TESTS = {
    r"src/arrow/": ("--test=arrow",),
    r"src/async_stream/": ("--lib", "--test=async"),
    r"src/dlpack/": ("--test=dlpack", "--test=standin_dlpack"),
    r"runtime/(?:mod|waiter)": ("--test=waiter", "--test=standin_broken", "--test=standin_events"),
    r"runtime/opencl": ("--test=opencl_failures", "--test=gated_events"),
    r"runtime/(?:vendor|vulkan)": ("--test=gated_events", "--test=waiter"),
    r"runtime/reaper": ("--test=standin_events", "--test=standin_failures"),
    r"runtime/": ("--test=standin_contexts", "--test=standin_captures", "--test=standin_failures"),
    r"src/": ("--lib", "--test=core", "--test=owner", "--test=stream", "--test=allocations"),
}
RESULTS = {
    "CaughtMutant": "killed",
    "MissedMutant": "survived",
    "Timeout": "killed",
    "Unviable": "does not compile",
}
_NAME = re.compile(r"(?P<file>[^:]+):(?P<line>\d+):\d+: (?P<change>.*)")
_DOUBTFUL = re.compile(r"default\(\)|::from(?:_iter)?\(|(?<!String)::new\(")
_RUNNING = re.compile(r"^ +Running `\S*/deps/(\w+)-[0-9a-f]+`", re.MULTILINE)
_FAILED = re.compile(r"^(?:test (\S+) \.\.\. FAILED|    (\w+(?:::\w+)*))$", re.MULTILINE)
_SIGNAL = re.compile(r"\(signal: \d+, (\w+)")

Results = dict[str, tuple[str, str]]  # by the name: the result, and the test that noticed


@dataclass(frozen=True)
class Mutant:
    name: str  # as cargo-mutants prints it, with line and column
    file: str
    line: int
    change: str
    nth: int  # of the same change in the file

    @property
    def key(self) -> tuple[str, str, int]:
        return self.file, self.change, self.nth

    @property
    def rank(self) -> tuple[bool, str]:
        """By a hash of what it is: a change elsewhere leaves a sample as it was. Last are those
        that hardly ever compile."""
        is_doubtful = bool(_DOUBTFUL.search(self.change))
        return is_doubtful, hashlib.sha256(f"{SEED} {self.key}".encode()).hexdigest()


def main() -> int:
    install()
    copy()
    everything = of_names(listed())
    chosen = [m for m in everything if re.search(os.environ.get("FILES", ""), m.file)]
    if os.environ.get("SAMPLE"):
        chosen = sample(chosen)
    names = {m.name for m in everything}
    found = kept(everything)
    chosen = [m for m in chosen if found.get(m.name, ("survived",))[0] == "survived"]
    for pattern, tests in TESTS.items():
        left = [m for m in chosen if first_fit(m.file) == pattern]
        for arguments in (("--all-features", *tests), ALL):
            found |= attempt(left, names, arguments)
            left = [m for m in left if found[m.name][0] == "survived"]
        for file, arguments in WITHOUT.items():
            found |= attempt([m for m in left if m.file == file], names, arguments)
        write(everything, found)
    write(everything, found)
    return 0


def install() -> None:
    tools = ROOT / "build" / "rust-tools"
    if f'"cargo-mutants {VERSION} ' not in read(tools / ".crates.toml"):
        command = ["cargo", "install", "--locked", "--root", str(tools)]
        subprocess.run([*command, "cargo-mutants", "--version", VERSION], check=True)


def copy() -> None:
    """Brings the copy to the state of this folder. What is the same stays: nothing is built for it,
    and what a run that was ended has left of a mutant is overwritten."""
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
        mutants.append(Mutant(name, key[0], int(match["line"]), key[1], counts[key]))
    return mutants


def sample(mutants: Sequence[Mutant]) -> list[Mutant]:
    """So many of each file."""
    counts: Counter[str] = Counter()
    taken = set()
    for mutant in sorted(mutants, key=lambda m: m.rank):
        counts[mutant.file] += 1
        if counts[mutant.file] <= PER_FILE:
            taken.add(mutant)
    return [mutant for mutant in mutants if mutant in taken]


def kept(everything: Sequence[Mutant]) -> Results:
    """The earlier results, when $KEEP is set; what survived is tried again."""
    path = Path(os.environ["RESULTS"])
    if not os.environ.get("KEEP") or not path.is_file():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))["mutants"]
    known = {
        (e["file"], e["change"], e["nth"]): (e["result"], e["text"]) for e in entries if e["result"]
    }
    return {m.name: known[m.key] for m in everything if m.key in known}


def first_fit(file: str) -> str:
    return next(pattern for pattern in TESTS if re.search(pattern, file))


def attempt(mutants: Sequence[Mutant], names: set[str], arguments: Sequence[str]) -> Results:
    """The result of each and the test that noticed."""
    if not mutants:
        return {}
    print(f"{len(mutants)} mutants with {' '.join(arguments)}", flush=True)
    # Its filter by name lets mutants of fields pass; what an earlier run has caught is left out.
    out = SCRATCH / "mutants.out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    (out / "caught.txt").write_text("\n".join(names - {m.name for m in mutants}), encoding="utf-8")
    done = call("--iterate", *(f"--cargo-arg={test}" for test in arguments))
    # 2: a mutant survived; 3: one hung.
    if done.returncode not in (0, 2, 3):
        raise SystemExit(f"cargo-mutants: exit code {done.returncode}")
    found = {}
    for outcome in json.loads((out / "outcomes.json").read_text(encoding="utf-8"))["outcomes"]:
        if outcome["scenario"] != "Baseline":
            result = RESULTS[outcome["summary"]]
            log = (out / outcome["log_path"]).read_text(encoding="utf-8", errors="replace")
            text = noticed(log, outcome["summary"] == "Timeout") if result == "killed" else ""
            found[outcome["scenario"]["Mutant"]["name"]] = result, text
    return found


def noticed(log: str, hangs: bool) -> str:
    """The test that failed: "core: shared::a_view_is_the_same"."""
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


def write(everything: Sequence[Mutant], found: Results) -> None:
    entries = [
        {"file": m.file, "line": m.line, "change": m.change, "nth": m.nth}
        | dict(zip(("result", "text"), found.get(m.name, ("", "")), strict=True))
        for m in everything
    ]
    table = {"tool": f"cargo-mutants {VERSION}", "mutants": entries}
    path = Path(os.environ["RESULTS"])
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
