"""Runs `fletching check-header` on published headers, in C and C++ for every target."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import tvm_ffi

from expected import AGREES, HEADERS, REMARKS, Header
from fetch import ROOT, fetch
from fletching_generator.cli import main
from fletching_generator.headers.dlpack_version import parse_version, spec_version
from fletching_generator.headers.facts import TARGETS
from fletching_generator.headers.findings import LAGS
from fletching_generator.spec.load import load_declarations
from fletching_generator.spec.model import Declarations
from packages import PACKAGES

# Headers that are installed or in the tree and need no fetch, by the first part of the name.
PLACES = {
    "pyarrow": Path(pyarrow.get_include()) / "arrow" / "c",
    "tvm_ffi": Path(tvm_ffi.libinfo.find_dlpack_include_path()) / "dlpack",
    "fletching": ROOT / "cpp" / "include" / "fletching",
}
# nanoarrow's build generates this file, which its headers include.
_NANOARROW_CONFIG = """\
#define NANOARROW_VERSION "0.9.0"
#define NANOARROW_VERSION_INT 900
#define NANOARROW_CXX_NAMESPACE nanoarrow
#define NANOARROW_CXX_NAMESPACE_BEGIN namespace nanoarrow {
#define NANOARROW_CXX_NAMESPACE_END }
"""


@dataclass(frozen=True)
class Found:
    """The command's report on a header."""

    exit_code: int
    text: str  # the report as text
    facts: dict[str, Any]  # the report as JSON
    seconds: float  # duration of one run


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder for each first part of a name in the table. Fetches missing packages."""
    config = tmp_path_factory.mktemp("nanoarrow_config")
    (config / "nanoarrow").mkdir()
    written = config / "nanoarrow" / "nanoarrow_config.h"
    written.write_text(_NANOARROW_CONFIG, encoding="utf-8")
    fetched = {package.folder: fetch(package) for package in PACKAGES}
    return {**PLACES, **fetched, "nanoarrow_config": config}


@pytest.fixture(scope="session")
def spec() -> Declarations:
    return load_declarations(ROOT)


@pytest.fixture(scope="session")
def results() -> dict[str, Found]:
    """Results by id, so that each command runs once."""
    return {}


@pytest.fixture(scope="session")
def times(results: dict[str, Found], request: pytest.FixtureRequest) -> Iterator[None]:
    """Prints the time for each header, without a check."""
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n\ncheck-header, c and c++ on", len(TARGETS), "targets:")
        for name, found in results.items():
            print(f"  {name:26}{found.seconds:5.2f} s")


@pytest.fixture
def found(
    header_id: str,
    places: dict[str, Path],
    results: dict[str, Found],
    times: None,
    capsys: pytest.CaptureFixture[str],
) -> Found:
    if header_id not in results:
        results[header_id] = _check(HEADERS[header_id], places, capsys)
    return results[header_id]


def _check(header: Header, places: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> Found:
    place, _, inner = header.file.partition("/")
    flags = [word for name in header.includes for word in ("-I", str(places[name]))]
    command = ["--root", str(ROOT), "check-header", str(places[place] / inner)]
    start = time.monotonic()
    exit_code = main([*command, "--", *flags])
    seconds = time.monotonic() - start
    text = capsys.readouterr().out
    assert main([*command, "--json", "--", *flags]) == exit_code
    return Found(exit_code, text, json.loads(capsys.readouterr().out)["headers"][0], seconds)


def as_expected(header: Header, spec: Declarations) -> Header:
    """Adds the spec's entries from DLPack versions later than the header's to its lags."""
    if not header.dlpack:
        return header
    known, own = spec_version(spec), parse_version(header.dlpack)
    every = (e for typedef in spec.typedefs for e in typedef.enumerators)
    later = [e.name for e in every if e.since and parse_version(e.since) > own]
    text = f"is {own[1]}, the specification says {known[1]}"
    notes = [("DLPACK_MINOR_VERSION", text)] if known > own else []
    said = REMARKS if later or notes else AGREES
    return dataclasses.replace(
        header, lags=tuple(later), notes=tuple(notes), interfaces={"dlpack": said}
    )


def differences(header: Header, found: Found) -> list[str]:
    """The differences between a header and the table, one per line."""
    runs = [{"language": lang, "target": t} for lang in ("c", "c++") for t in TARGETS]
    said = dict(
        line.strip().split(": ", 1)
        for line in found.text.splitlines()
        if line.startswith(("  c-", "  dlpack")) and not line.endswith(": not declared")
    )
    lags = dict.fromkeys([*((name, LAGS) for name in header.lags), *header.notes], runs)
    seen = {(f["subject"], f["text"]): f["runs"] for f in found.facts["findings"]}
    pairs = {
        "exit code": (header.exit_code, found.exit_code),
        "runs": (runs, found.facts["runs"]),
        "interfaces": (dict(header.interfaces), said),
        "declared": (list(header.interfaces), found.facts["declared"]),
        "findings": (lags, seen),
        "nothing was compared": (not header.interfaces, "nothing was compared" in found.text),
    }
    return [f"{what}: expected {a}, found {b}" for what, (a, b) in pairs.items() if a != b]


@pytest.mark.parametrize("header_id", HEADERS)
def test_published_header_matches_spec(header_id: str, found: Found, spec: Declarations) -> None:
    assert not differences(as_expected(HEADERS[header_id], spec), found), found.text


@pytest.mark.parametrize("header_id", HEADERS)
def test_every_altered_entry_is_detected(header_id: str, found: Found, spec: Declarations) -> None:
    """The same result must contradict any altered table."""
    header = as_expected(HEADERS[header_id], spec)
    name = next(iter(header.interfaces), "c-data")
    swapped = {AGREES: REMARKS, REMARKS: AGREES}
    without = {k: v for k, v in header.interfaces.items() if k != name} or {"c-other": AGREES}
    altered = [
        dataclasses.replace(header, exit_code=1 - header.exit_code),
        dataclasses.replace(header, lags=(*header.lags, "ARROW_DEVICE_METAL")),
        dataclasses.replace(header, lags=header.lags[1:] or ("ARROW_FLAG_NULLABLE",)),
        dataclasses.replace(header, interfaces={**header.interfaces, "c-other": AGREES}),
        dataclasses.replace(header, interfaces=without),
    ]
    altered += [
        dataclasses.replace(header, interfaces={**header.interfaces, interface: swapped[words]})
        for interface, words in header.interfaces.items()
    ]
    for other in altered:
        assert differences(other, found), other


def test_every_package_is_used() -> None:
    used = {header.file.partition("/")[0] for header in HEADERS.values()}
    assert {package.folder for package in PACKAGES} <= used
    assert used <= {package.folder for package in PACKAGES} | PLACES.keys()
