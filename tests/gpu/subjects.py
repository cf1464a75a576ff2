"""The conformance suite on the GPU machine: every subject on the CUDA devices, as rows.

The suite and the subjects of compiled languages are copied there as built programs and libraries:
tests/gpu/build-programs makes their folder, --programs names it. Each language plays the group
`devices` alone and as the host of the chain through all of them. A language with a reason under
[lacks] in its language.toml is absent.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from running import ROOT, Build, Findings, Row, how_it_ended, run, show

sys.path.append(str(ROOT / "tests" / "roundtrip"))
sys.path.append(str(ROOT / "tools"))

import languages
from cells import Cell, CellError, parse_cell
from devices import device_cells
from languages import Language
from programs import chain

BACKENDS = ("cuda", "cuda_host", "cuda_managed")
CONFORMANCE = '"$PROGRAMS/fletching_conformance" --group devices'
NOT_COPIED = "travels as built programs: tests/gpu/build-programs makes them, --programs names them"


@dataclass(frozen=True)
class Host:
    """A program that plays the suite's devices."""

    language: Language
    column: str
    command: str


def language_findings(build: Build, programs: Path | None, status: str) -> Findings:
    """`programs`: folder of the built programs. `status`: the driver's status from main.cpp."""
    rows = _rows(build, programs, status)
    for row in rows:
        show(row)
    return Findings(rows=rows)


def _rows(build: Build, programs: Path | None, status: str) -> list[Row]:
    known = languages.load()
    missing: dict[str, str] = {}
    for name, each in known.items():
        if not each.gpu:
            continue
        if programs is None:
            missing[name] = NOT_COPIED
        elif absent := [file for file in each.gpu.files if not (programs / file).exists()]:
            missing[name] = f"{programs} has no {' and no '.join(absent)}"
    rows = [Row(language, "absent", 0, reason) for language, reason in missing.items()]
    hosts = list(_hosts(known))
    if missing:
        reason = f"needs {' and '.join(missing)}"
        rows += [Row(f"devices {host.column}", "absent", 0, reason) for host in hosts]
    elif programs is not None:
        with tempfile.TemporaryDirectory() as folder:
            environment = _environment(build, programs, Path(folder), known)
            for host in hosts:
                rows += _devices(host, environment, Path(folder), status)
    return [*rows, *_left_at_home(known)]


def _left_at_home(known: Mapping[str, Language]) -> Iterator[Row]:
    for language in known.values():
        if "gpu" in language.lacks:
            for column in language.columns:
                yield Row(column.name, "absent", 0, language.lacks["gpu"])


def _hosts(known: Mapping[str, Language]) -> Iterator[Host]:
    """Each column that is copied to the GPU machine."""
    for language in known.values():
        for column in language.columns:
            if language.gpu and column.subject == languages.NATIVE:
                library = f"libfletching_subject_{column.name}.so"
                command = f'{CONFORMANCE} "$FLETCHING_LIB_DIR/{library}"'
                yield Host(language, column.name, command)
            elif column.host:
                yield Host(language, column.name, column.host)


def _devices(
    host: Host, environment: Mapping[str, str], folder: Path, status: str
) -> Iterator[Row]:
    for backend in BACKENDS:
        variables = {**environment, "FLETCHING_COLUMN": host.column}
        command = f"{host.command} --case '{backend}.*'"
        cells, problem = _run(command, host.language, variables, folder)
        least = len(list(device_cells(host.column, [backend])))
        yield cells_row(f"{backend}: devices {host.column}", cells, problem, status, least)


def _environment(
    build: Build, programs: Path, folder: Path, known: Mapping[str, Language]
) -> dict[str, str]:
    """Collects the built and the copied libraries in one folder."""
    libraries = folder / "lib"
    libraries.mkdir()
    for source in (programs, build.libraries):  # the copied one wins
        for library in source.glob("*.so*"):
            link = libraries / library.name
            if not link.exists():
                link.symlink_to(library.resolve())
    return {
        **build.environment,
        "FLETCHING_LIB_DIR": str(libraries),
        "FLETCHING_CHAIN": " ".join(chain(known)),
        "PROGRAMS": str(programs.resolve()),
        "PYTHON": sys.executable,
    }


def _run(
    command: str, language: Language, environment: Mapping[str, str], folder: Path
) -> tuple[list[Cell], str]:
    """The cells that the suite writes, and the problem if it failed."""
    path = folder / "cells"
    path.unlink(missing_ok=True)
    own = languages.environment(language)
    variables = {**environment, **own, "FLETCHING_CELLS": str(path)}
    if "PYTHONPATH" in own and "PYTHONPATH" in environment:  # prefer an installed package
        variables["PYTHONPATH"] = f"{environment['PYTHONPATH']}:{own['PYTHONPATH']}"
    home = os.fspath(ROOT / language.folder)
    code, output, errors = run(["bash", "-c", f"cd '{home}' && exec {command}"], variables)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    problem = "" if code == 0 else how_it_ended(code, errors or output)
    try:
        return [parse_cell(line) for line in lines], problem
    except CellError as error:
        return [], f"wrote a line that is not a cell: {error}"


def cells_row(name: str, cells: Sequence[Cell], problem: str, status: str, least: int) -> Row:
    """`least`: the required number of cells."""
    compared = sum(cell.asserted for cell in cells)
    wrong = [f"{cell.key}: {what}" for cell in cells if (what := _what_is_wrong(cell, status))]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Row(name, "FAILED", compared, wrong[0] + more)
    if len(cells) < least:
        problem = f"cells: expected {least}, got {len(cells)}{problem and '; '}{problem}"
    if problem:
        return Row(name, "FAILED", compared, problem)
    return Row(name, "ok", compared, f"{len(cells)} cells")


def _what_is_wrong(cell: Cell, status: str) -> str:
    if not cell.ok:
        return cell.reason or "failed without a reason"
    if cell.status != status:
        return f"it ran on '{cell.status}', expected '{status}'"
    return "" if cell.asserted else "it compared nothing"
