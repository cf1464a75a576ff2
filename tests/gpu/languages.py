"""The other languages on the GPU machine, as rows.

Rust and Go travel as built programs and libraries: tools/gpu-programs makes the folder, --programs
names it. With them each language's own program runs, and the chain C++ -> Rust -> Go -> host -> C++
for arrays of every CUDA backend, with C++ and with Python as the host. Java does not travel.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from running import ROOT, Build, Findings, Row, how_it_ended, run, show

sys.path.insert(0, str(ROOT / "tests" / "roundtrip"))

from cells import Cell, CellError, parse_cell
from devices import CASES

BACKENDS = ("cuda", "cuda_host", "cuda_managed")
# What tools/gpu-programs makes: the language's own program, and its library for the chain.
CARRIED = {
    "rust": ("fletching-roundtrip-rust", "libfletching_transit_rust.so"),
    "go": ("fletching_roundtrip_go", "libfletching_transit_go.so"),
}
NOT_CARRIED = "travels as built programs: tools/gpu-programs makes them, --programs names them"
HOSTS = ("C++", "Python")
NO_JAVA = "does not travel: its tests need a JDK and Maven"


def language_findings(build: Build, programs: Path | None, status: str) -> Findings:
    """`programs`: the folder of the built programs. `status`: what main.cpp says of the driver."""
    rows = _rows(build, programs, status)
    for row in rows:
        show(row)
    return Findings(rows=rows)


def _rows(build: Build, programs: Path | None, status: str) -> list[Row]:
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for language, files in CARRIED.items():
        if programs is None:
            missing[language] = NOT_CARRIED
        elif absent := [name for name in files if not (programs / name).exists()]:
            missing[language] = f"{programs} has no {' and no '.join(absent)}"
    rows += [Row(language, "absent", 0, reason) for language, reason in missing.items()]
    if programs is not None:
        with tempfile.TemporaryDirectory() as folder:
            environment = _environment(build, programs, Path(folder))
            for language, (program, _) in CARRIED.items():
                if language not in missing:
                    rows.append(_cases(language, programs / program, environment, Path(folder)))
            if not missing:
                rows += _chains(build, environment, Path(folder), status)
    if missing:
        reason = f"needs {' and '.join(missing)}"
        rows += [Row(_chain_name(host), "absent", 0, reason) for host in HOSTS]
    return [*rows, Row("java-jna", "absent", 0, NO_JAVA), Row("java-ffm", "absent", 0, NO_JAVA)]


def _cases(language: str, program: Path, environment: Mapping[str, str], folder: Path) -> Row:
    """Every case of the producer through the language's own program; host arrays."""
    name = f"{language}: every case, on the host"
    cells, problem = _run([str(program)], environment, folder)
    return cells_row(name, cells, problem, "real", least=1)


def _chain_name(host: str) -> str:
    return f"chain C++, Rust, Go, {host}, C++"


def _chains(
    build: Build, environment: Mapping[str, str], folder: Path, status: str
) -> Iterator[Row]:
    cpp = [str(build.program("fletching_roundtrip_devices_cpp")), "--chain", *BACKENDS]
    script = ROOT / "bindings" / "python" / "roundtrip" / "devices_main.py"
    python = [sys.executable, str(script), *BACKENDS]
    for host, command in zip(HOSTS, (cpp, python), strict=True):
        cells, problem = _run(command, environment, folder)
        for backend in BACKENDS:
            own = [cell for cell in cells if cell.key.backend == backend]
            name = f"{backend}: {_chain_name(host)}"
            yield cells_row(name, own, problem, status, least=len(CASES))


def _environment(build: Build, programs: Path, folder: Path) -> dict[str, str]:
    """The libraries that were built here and those that were carried, in one folder."""
    libraries = folder / "lib"
    libraries.mkdir()
    for source in (programs, build.libraries):  # what was carried first
        for library in source.glob("*.so*"):
            link = libraries / library.name
            if not link.exists():
                link.symlink_to(library.resolve())
    return {
        **build.environment,
        "FLETCHING_LIB_DIR": str(libraries),
        "PYTHONPATH": str(ROOT / "bindings" / "python" / "src"),
    }


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> tuple[list[Cell], str]:
    """The cells that a program of the round trip writes, and how it ended if that was not well."""
    path = folder / "cells"
    path.unlink(missing_ok=True)
    code, output, errors = run(command, {**environment, "FLETCHING_CELLS": str(path)})
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    problem = "" if code == 0 else how_it_ended(code, errors or output)
    try:
        return [parse_cell(line) for line in lines], problem
    except CellError as error:
        return [], f"wrote a line that is no cell: {error}"


def cells_row(name: str, cells: Sequence[Cell], problem: str, status: str, least: int) -> Row:
    """`least`: how many cells there have to be."""
    compared = sum(cell.asserted for cell in cells)
    wrong = [f"{cell.key}: {what}" for cell in cells if (what := _what_is_wrong(cell, status))]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Row(name, "FAILED", compared, wrong[0] + more)
    if len(cells) < least:
        problem = f"{len(cells)} cells came, expected {least}{problem and '; '}{problem}"
    if problem:
        return Row(name, "FAILED", compared, problem)
    return Row(name, "ok", compared, f"{len(cells)} cells")


def _what_is_wrong(cell: Cell, status: str) -> str:
    if not cell.ok:
        return cell.reason or "failed without a reason"
    if cell.status != status:
        return f"it ran on '{cell.status}', expected '{status}'"
    return "" if cell.asserted else "it compared nothing"
