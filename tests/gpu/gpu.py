"""Builds and runs the checks on an NVIDIA GPU, and prints one table.

`make test-gpu` calls it on a machine with a GPU. It needs CMake, a C++ compiler and, for the
kernel, nvcc, and installs nothing. --standin runs the same checks on the tests' stand-in driver.
Checks that cannot run are absent in the table, with a reason. Each row is printed when it is done,
and again in the table. --write-docs writes docs/measured/gpu-<model>.md. --bench runs the
measurements of `make bench-gpu` instead. A check that hangs ends the run; the rest is then absent.
Exit codes: 0 nothing failed, 1 something failed, 2 could not run: no device, or no build.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import googletest
from report import limit_rows, medians, page, versions, write_docs
from running import ROOT, Build, CannotRunError, Findings, Row, limit, run_program, show
from subjects import language_findings

# A kernel loaded at its first launch may wait for the device, and so for a shut gate. Streams that
# share a hardware queue wait for each other.
SHARED_QUEUES = {"CUDA_DEVICE_MAX_CONNECTIONS": "32", "GPU_MAX_HW_QUEUES": "32"}
# Not set for Python libraries: torch would load all its kernels.
EAGER = {"CUDA_MODULE_LOADING": "EAGER"}

PARTS = ("checks", "c-api", "googletest", "peers", "package", "languages")
NAMED_PARTS = ("checks", "peers", "package")  # parts that --only can filter
BENCH_RUNS = 5

Stage = Callable[[], Findings]


def main() -> int:
    options = _parse()
    try:
        findings = find(options)
    except CannotRunError as error:
        print(f"test-gpu: {error}", file=sys.stderr)
        return 2
    findings.facts.update(versions(options.programs))
    print("\n".join(page(findings)))
    if options.write_docs:
        write_docs(findings)
    return 1 if any(row.verdict == "FAILED" for row in findings.rows) else 0


def find(options: argparse.Namespace) -> Findings:
    """The findings of the selected run. Raises CannotRunError."""
    if options.programs is not None and not options.programs.is_dir():
        raise CannotRunError(f"--programs {options.programs}: no such folder")
    if not options.standin:
        require_device()
    build = standin_build() if options.standin else device_build()
    if not options.no_build:
        target = "fletching_gpu_bench" if options.bench else "fletching_gpu_programs"
        compile_programs(build, [target], options.programs)
    if options.bench:
        return bench(build, options.standin)
    findings = Findings()
    for name, stage in stages(build, options):
        if findings.hung:
            row = Row(name, "absent", 0, f"not run: {findings.hung} hung before")
            show(row)
            findings.rows.append(row)
            continue
        found = stage()
        findings.facts.update(found.facts)
        findings.rows += found.rows
        findings.hung = found.hung
    if not findings.rows:
        raise CannotRunError(f"--only {' '.join(options.only)}: no check has such a name")
    return findings


def stages(build: Build, options: argparse.Namespace) -> Iterator[tuple[str, Stage]]:
    """The requested parts, each with a name for its rows."""
    parts = options.part or (NAMED_PARTS if options.only else PARTS)
    only = [word for name in options.only for word in ("--only", name)]
    eager = {**build.environment, **EAGER}
    if "checks" in parts:
        yield "the checks in C++", lambda: checks(build, options.standin, only)
    if "c-api" in parts:
        c_test = build.program("fletching_c_api_events_gpu_test")
        yield "C API", lambda: run_program([str(c_test)], eager)
    if "googletest" in parts:
        for name in googletest.PROGRAMS:
            program = build.program(name)
            for current, suffix in googletest.CURRENT.items():
                findings = partial(googletest.googletest_findings, program, eager, current)
                yield name + suffix, findings
    if "peers" in parts:
        yield "the libraries of Python", lambda: peers(build, only)
    if "package" in parts:
        yield "the package for Python", lambda: peers(build, ["--package", *only])
    if "languages" in parts:
        status = "stand-in" if options.standin else "real"
        yield "other languages", lambda: language_findings(build, options.programs, status)


def checks(build: Build, standin: bool, only: Sequence[str]) -> Findings:
    command = [str(build.program("fletching_gpu_test")), *only]
    environment = {**build.environment, **EAGER}
    try:
        findings = run_program(command, environment)
    except CannotRunError as error:
        if only and "no check has such a name" in str(error):
            return Findings()
        raise
    require_driver(findings, standin)
    return findings


def peers(build: Build, only: Sequence[str]) -> Findings:
    """The findings of peers.py with the libraries of this Python."""
    script = Path(__file__).resolve().parent / "peers.py"
    library = build.libraries / "libfletching_gpu_peers.so"
    try:
        return run_program([sys.executable, str(script), str(library), *only], build.environment)
    except CannotRunError as error:
        if only and "no check has such a name" in str(error):
            return Findings()
        raise


def bench(build: Build, standin: bool) -> Findings:
    """Median of several runs for each figure, because a machine is noisy."""
    command = [str(build.program("fletching_gpu_bench"))]
    runs = [
        run_program(command, {**build.environment, **EAGER})
        for _ in range(1 if standin else BENCH_RUNS)
    ]
    findings = runs[0]
    require_driver(findings, standin)
    findings.costs = medians([each.costs for each in runs])
    findings.rows += [row for each in runs[1:] for row in each.rows if row.verdict == "FAILED"]
    findings.rows += limit_rows(findings)
    return findings


def require_driver(findings: Findings, standin: bool) -> None:
    if standin == (findings.facts.get("status") == "stand-in"):
        return
    if standin:
        raise CannotRunError(
            "the stand-in was asked for, and another libcuda.so.1 was loaded: build it first"
        )
    raise CannotRunError(
        "libcuda.so.1 is the stand-in: take its folder out of LD_LIBRARY_PATH, or run "
        "make test-gpu-standin"
    )


def require_device() -> None:
    """Checks for a device before the build, which takes minutes."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CannotRunError(f"no CUDA device: no driver is installed ({error})") from None
    code = driver.cuInit(0)
    count = ctypes.c_int()
    if code == 0:
        code = driver.cuDeviceGetCount(ctypes.byref(count))
    if code != 0 or count.value == 0:
        raise CannotRunError(f"no CUDA device: the driver finds none (error {code})")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--standin", action="store_true", help="on the stand-in driver")
    parser.add_argument("--bench", action="store_true", help="measure instead of checking")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they are")
    parser.add_argument("--write-docs", action="store_true", help="write docs/measured/gpu-*.md")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="only the checks with NAME in their names; may be repeated",
    )
    parser.add_argument(
        "--part",
        choices=PARTS,
        action="append",
        default=[],
        help="only this part; may be repeated",
    )
    parser.add_argument(
        "--programs",
        metavar="FOLDER",
        type=lambda text: Path(text).resolve(),
        help="the folder from tests/gpu/build-programs: other languages and GoogleTest",
    )
    return parser.parse_args()


def device_build() -> Build:
    folder = ROOT / "build" / "gpu"
    return Build("gpu", folder, folder / "lib", {**os.environ, **SHARED_QUEUES})


def standin_build() -> Build:
    folder = str(ROOT / "build" / "lib" / "standin")
    others = os.environ.get("LD_LIBRARY_PATH")
    path = f"{folder}:{others}" if others else folder
    environment = {**os.environ, **SHARED_QUEUES, "LD_LIBRARY_PATH": path}
    return Build("default", ROOT / "build" / "cmake", ROOT / "build" / "lib", environment)


def compile_programs(build: Build, targets: Sequence[str], programs: Path | None) -> None:
    """Builds the programs. Raises CannotRunError with the end of the build's output."""
    for tool in ("cmake", "c++", "make" if build.preset == "gpu" else "ninja"):
        if shutil.which(tool) is None:
            raise CannotRunError(f"{tool} is missing, and without it nothing can be built")
    jobs = str(min(os.cpu_count() or 1, 16)) if build.preset == "gpu" else "2"
    configure = ["cmake", "--preset", build.preset]
    if programs is not None and build.preset == "gpu" and (programs / "googletest").is_dir():
        configure.append(f"-DGTEST_ROOT={programs / 'googletest'}")
    for command in (
        configure,
        ["cmake", "--build", "--preset", build.preset, f"-j{jobs}", "--target", *targets],
    ):
        print(f"$ {' '.join(command)}", flush=True)
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=limit()
            )
        except subprocess.TimeoutExpired:
            raise CannotRunError(f"{' '.join(command)}: not done when its time was over") from None
        if done.returncode != 0:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
            raise CannotRunError(f"{' '.join(command)} failed:\n{end}")


if __name__ == "__main__":
    sys.exit(main())
