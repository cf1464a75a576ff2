"""Builds and runs what is checked on an NVIDIA GPU, and prints one table.

`make test-gpu` calls it on a machine with a GPU; it needs CMake, a C++ compiler and, for the
kernel, nvcc, and installs nothing. --standin runs the same on the stand-in driver of the tests.
What cannot run is absent in the table, with its reason. --write-docs writes
docs/measured/gpu-<model>.md. --bench measures instead, for `make bench-gpu`.
Exit codes: 0 nothing failed, 1 something failed, 2 could not run: no device, or no build.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import googletest
from languages import language_rows
from report import limit_rows, page, versions, write_docs
from running import ROOT, Build, CannotRunError, Findings, run_program

# A kernel that is loaded when it is first launched may wait for the device, and so for a shut gate;
# streams that share a queue of the device wait for each other.
REAL_DRIVER = {"CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}


def main() -> int:
    options = _parse()
    try:
        findings = find(options)
    except CannotRunError as error:
        print(f"test-gpu: {error}", file=sys.stderr)
        return 2
    findings.facts.update(versions())
    print("\n".join(page(findings)))
    if options.write_docs:
        write_docs(findings)
    return 1 if any(row.verdict == "FAILED" for row in findings.rows) else 0


def find(options: argparse.Namespace) -> Findings:
    """Raises CannotRunError."""
    if options.programs is not None and not options.programs.is_dir():
        raise CannotRunError(f"--programs {options.programs}: there is no such folder")
    build = standin_build() if options.standin else device_build()
    program = "fletching_gpu_bench" if options.bench else "fletching_gpu_test"
    if not options.no_build:
        compile_programs(build, [program if options.bench else "fletching_gpu_programs"])
    findings = run_program([str(build.program(program))], build.environment)
    if options.standin != (findings.facts.get("status") == "stand-in"):
        raise CannotRunError(wrong_driver(options.standin))
    if options.bench:
        findings.rows += limit_rows(findings)
        return findings
    c_test = [str(build.program("fletching_c_api_events_gpu_test"))]
    findings.rows += run_program(c_test, build.environment).rows
    for name in googletest.PROGRAMS:
        findings.rows += googletest.googletest_rows(build.program(name), build.environment)
    add_peers(findings, build)
    findings.rows += language_rows(build, options.programs, findings.facts["status"])
    return findings


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--standin", action="store_true", help="on the stand-in driver")
    parser.add_argument("--bench", action="store_true", help="measure instead of checking")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they are")
    parser.add_argument("--write-docs", action="store_true", help="write docs/measured/gpu-*.md")
    parser.add_argument(
        "--programs",
        metavar="FOLDER",
        type=lambda text: Path(text).resolve(),
        help="the programs of Rust and Go, as tools/gpu-programs makes them",
    )
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


def add_peers(findings: Findings, build: Build) -> None:
    """What peers.py finds with the libraries of this Python."""
    script = Path(__file__).resolve().parent / "peers.py"
    library = build.libraries / "libfletching_gpu_peers.so"
    peers = run_program([sys.executable, str(script), str(library)], build.environment)
    findings.facts.update(peers.facts)
    findings.rows += peers.rows


if __name__ == "__main__":
    sys.exit(main())
