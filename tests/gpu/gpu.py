"""Builds and runs what is checked on an NVIDIA GPU, and prints one table.

`make test-gpu` calls it on a machine with a GPU; it needs CMake, a C++ compiler and, for the
kernel, nvcc, and installs nothing. --standin runs the same on the stand-in driver of the tests.
What cannot run is absent in the table, with its reason. --write-docs writes
docs/measured/gpu-<model>.md. --bench measures instead, for `make bench-gpu`.
Exit codes: 0 nothing failed, 1 something failed, 2 could not run: no device, or no build.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "roundtrip"))

from programs import LANGUAGES  # noqa: E402

# A check that never ends is a failure, and nothing else depends on this time.
GIVE_UP_SECONDS = 480

# A kernel that is loaded when it is first launched may wait for the device, and so for a shut gate;
# streams that share a queue of the device wait for each other.
REAL_DRIVER = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}


class CannotRunError(Exception):
    """The message says what is missing and how to mend it."""


@dataclass(frozen=True)
class Row:
    name: str
    verdict: str  # "ok", "FAILED" or "absent"
    compared: int
    reason: str


@dataclass(frozen=True)
class Cost:
    """What one round of a case costs; the first of a case is ours."""

    case: str
    who: str
    nanoseconds: float


@dataclass
class Findings:
    facts: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)


@dataclass(frozen=True)
class Build:
    """Where the programs are, and what they run with."""

    preset: str
    folder: Path
    libraries: Path
    environment: Mapping[str, str]

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name


def main() -> int:
    options = _parse()
    program = "fletching_gpu_bench" if options.bench else "fletching_gpu_test"
    try:
        build = standin_build() if options.standin else device_build()
        if not options.no_build:
            compile_programs(build, [program, *([] if options.bench else ["fletching_gpu_peers"])])
        findings = run_program([str(build.program(program))], build.environment)
        if options.standin != (findings.facts.get("status") == "stand-in"):
            raise CannotRunError(wrong_driver(options.standin))
    except CannotRunError as error:
        print(f"test-gpu: {error}", file=sys.stderr)
        return 2
    if not options.bench:
        add_peers(findings, build)
        findings.rows += other_languages(findings.facts["status"], build.environment)
    findings.facts.update(versions())
    print("\n".join(page(findings)))
    if options.write_docs:
        write_docs(findings)
    return 1 if any(row.verdict == "FAILED" for row in findings.rows) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--standin", action="store_true", help="on the stand-in driver")
    parser.add_argument("--bench", action="store_true", help="measure instead of checking")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they are")
    parser.add_argument("--write-docs", action="store_true", help="write docs/measured/gpu-*.md")
    return parser.parse_args()


def device_build() -> Build:
    folder = ROOT / "build" / "gpu"
    return Build("gpu", folder, folder / "lib", {**os.environ, **REAL_DRIVER})


def standin_build() -> Build:
    folder = str(ROOT / "build" / "lib" / "standin")
    others = os.environ.get("LD_LIBRARY_PATH")
    path = f"{folder}:{others}" if others else folder
    environment = {**os.environ, "LD_LIBRARY_PATH": path}
    return Build("default", ROOT / "build" / "cmake", ROOT / "build" / "lib", environment)


def wrong_driver(standin: bool) -> str:
    if standin:
        return "the stand-in was asked for, and another libcuda.so.1 was loaded: build it first"
    return (
        "libcuda.so.1 is the stand-in: take its folder out of LD_LIBRARY_PATH, or run "
        "make test-gpu-standin"
    )


def compile_programs(build: Build, targets: Sequence[str]) -> None:
    """Raises CannotRunError with the end of what the build said."""
    for tool in ("cmake", "c++", "make"):
        if shutil.which(tool) is None:
            raise CannotRunError(f"{tool} is missing, and without it nothing can be built")
    jobs = str(min(os.cpu_count() or 1, 16)) if build.preset == "gpu" else "2"
    for command in (
        ["cmake", "--preset", build.preset],
        ["cmake", "--build", "--preset", build.preset, f"-j{jobs}", "--target", *targets],
    ):
        print(f"$ {' '.join(command)}", flush=True)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
            raise CannotRunError(f"{' '.join(command)} failed:\n{end}")


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> Findings:
    """Runs a program that prints facts and checks (main.cpp).

    Raises CannotRunError when it says that there is no device, or is not there itself.
    """
    name = next(Path(word).name for word in command if word != sys.executable)
    code, output, errors = run(command, environment)
    if code == 2:
        raise CannotRunError(errors.strip() or f"{command[0]} exited with 2, and said nothing")
    findings = read_findings(output)
    last = errors.strip().splitlines()[-1] if errors.strip() else "before the first check"
    if code is None:
        findings.rows.append(Row(name, "FAILED", 0, f"gave up after {GIVE_UP_SECONDS} s: {last}"))
    elif code not in (0, 1) or not (findings.rows or findings.costs):
        findings.rows.append(Row(name, "FAILED", 0, f"ended with {code}, at: {last}"))
    elif code == 1 and all(row.verdict != "FAILED" for row in findings.rows):
        findings.rows.append(Row(name, "FAILED", 0, f"exited with 1: {last}"))
    return findings


def add_peers(findings: Findings, build: Build) -> None:
    """What peers.py finds with the libraries of this Python."""
    script = Path(__file__).resolve().parent / "peers.py"
    library = build.libraries / "libfletching_gpu_peers.so"
    peers = run_program([sys.executable, str(script), str(library)], build.environment)
    findings.facts.update(peers.facts)
    findings.rows += peers.rows


def run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int | None, str, str]:
    """The exit code, None for a program that did not end; stdout; stderr."""
    try:
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            try:
                output, errors = process.communicate(timeout=GIVE_UP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
                return None, output, errors
            return process.returncode, output, errors
    except OSError as error:
        raise CannotRunError(f"{command[0]} does not start: {error}") from None


def read_findings(output: str) -> Findings:
    findings = Findings()
    for line in output.splitlines():
        match line.split("\t"):
            case ["fact", name, text]:
                findings.facts[name] = text
            case ["check", name, verdict, compared, reason]:
                findings.rows.append(Row(name, verdict, int(compared), reason))
            case ["bench", case, who, nanoseconds]:
                findings.costs.append(Cost(case, who, float(nanoseconds)))
            case _:
                findings.rows.append(Row("output", "FAILED", 0, f"cannot read: {line[:200]}"))
    return findings


def other_languages(status: str, environment: Mapping[str, str]) -> list[Row]:
    """The device cells of the other languages, where they have some and can run here."""
    return [_language_row(name, status, environment) for name in LANGUAGES if name not in ("cpp",)]


def _language_row(name: str, status: str, environment: Mapping[str, str]) -> Row:
    language = LANGUAGES[name]
    if language.devices is None:
        return Row(name, "absent", 0, "this language has no device cells yet")
    if subprocess.run(["bash", "-c", language.needs], cwd=ROOT, check=False).returncode != 0:
        return Row(name, "absent", 0, language.mend)
    cells = ROOT / "build" / f"gpu-{name}.cells"
    cells.unlink(missing_ok=True)
    extra = {
        **language.devices.environment,
        "FLETCHING_CELLS": str(cells),
        **({"FLETCHING_REAL_GPU": "cuda"} if status == "real" else {}),
    }
    line = f"cd {language.devices.folder} && {language.devices.line}"
    code, _, errors = run(["bash", "-c", line], {**environment, **extra})
    compared = len(cells.read_text(encoding="utf-8").splitlines()) if cells.exists() else 0
    if code == 0 and compared > 0:
        return Row(name, "ok", compared, "device cells")
    return Row(name, "FAILED", compared, (errors.strip().splitlines() or ["said nothing"])[-1])


def versions() -> dict[str, str]:
    now = datetime.datetime.now(datetime.timezone.utc)  # 3.10 has no UTC
    return {
        "date": now.strftime("%Y-%m-%d"),
        "commit": _first_line(["git", "describe", "--always", "--dirty"]),
        "compiler": _first_line(["c++", "--version"]),
        "nvcc": _nvcc_version(),
        "CMake": _first_line(["cmake", "--version"]),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _first_line(command: Sequence[str]) -> str:
    return (_output(command).splitlines() or ["unknown"])[0]


def _output(command: Sequence[str]) -> str:
    try:
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""


def _nvcc_version() -> str:
    """Of the one that CMake found."""
    for preset in ("gpu", "cmake"):
        cache = ROOT / "build" / preset / "CMakeCache.txt"
        if not cache.exists():
            continue
        found = re.search(r"^FLETCHING_NVCC:\w+=(.*)$", cache.read_text(encoding="utf-8"), re.M)
        if found and not found[1].endswith("NOTFOUND"):
            version = re.search(r"V[\d.]+", _output([found[1], "--version"]))
            return version[0] if version else "unknown"
    return "absent"


def page(findings: Findings) -> list[str]:
    """As Markdown: the costs or the checks, then the facts."""
    lines = cost_table(findings.costs) if findings.costs else []
    lines += table(findings) if findings.rows else []
    return [*lines, "", *(f"- {name}: {text}" for name, text in findings.facts.items())]


def cost_table(costs: Sequence[Cost]) -> list[str]:
    """With the ratio of ours, the first of a case, to each other."""
    ours = {cost.case: cost.nanoseconds for cost in reversed(costs)}
    lines = [
        "",
        "| case | who | nanoseconds | per second | ours / this |",
        "|---|---|---|---|---|",
    ]
    return lines + [
        f"| {cost.case} | {cost.who} | {cost.nanoseconds:,.1f} | {1e9 / cost.nanoseconds:,.0f} "
        f"| {ours[cost.case] / cost.nanoseconds:.2f} |"
        for cost in costs
    ]


def table(findings: Findings) -> list[str]:
    """As Markdown: the checks and a verdict."""
    lines = ["", "| check | verdict | compared | reason |", "|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.verdict} | {row.compared:,} | {_cell(row.reason)} |"
        for row in findings.rows
    ]
    count = {v: sum(row.verdict == v for row in findings.rows) for v in ("ok", "absent", "FAILED")}
    status = findings.facts.get("status", "unknown")
    lines += [
        "",
        f"On {'a real device' if status == 'real' else f'the {status}, no device'}: "
        f"{count['ok']} passed, {count['absent']} absent, {count['FAILED']} failed",
    ]
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_docs(findings: Findings) -> None:
    if findings.facts.get("status") != "real":
        print("test-gpu: nothing is written: this was no device", file=sys.stderr)
        return
    model = re.sub(r"[^a-z0-9]+", "-", findings.facts["device"].lower()).strip("-")
    kind = "bench-gpu" if findings.costs else "gpu"
    path = ROOT / "docs" / "measured" / f"{kind}-{model}.md"
    command = "make bench-gpu" if findings.costs else "make test-gpu"
    intro = (
        f"What `{command}` found on this device ([what that is](../../tests/gpu/README.md)). "
        f"`{command} GPU=--write-docs` wrote this file."
    )
    title = f"# {'Benchmarks: GPU' if findings.costs else 'GPU'}: {findings.facts['device']}"
    path.write_text("\n".join([title, "", intro, *page(findings), ""]), encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
