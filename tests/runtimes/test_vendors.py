"""The table of the runtimes agrees with headers and libraries, and changes of it are detected."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mutations
import vendors
from fletching_generator.runtimes.model import Runtime
from fletching_generator.spec.load import load_spec

SPEC = load_spec(vendors.ROOT)
RUNTIMES = {runtime.name: runtime for runtime in SPEC.runtimes}
WITH_HEADER = [runtime.name for runtime in SPEC.runtimes if runtime.header is not None]
PER_THREAD = [n for n in WITH_HEADER if (h := RUNTIMES[n].header) is not None and h.per_thread]


GOOD = vendors.texts(SPEC)


def complaints(runtime: Runtime, per_thread: bool = False) -> list[str]:
    return vendors.complaints(runtime, vendors.of_runtime(runtime, GOOD), per_thread)


def complaints_about_changes(change: mutations.Change) -> list[str]:
    """The complaints about the files that the change affects."""
    changed = vendors.texts(replace(SPEC, runtimes=(change.runtime,)))
    files = {name: text for name, text in changed.items() if text != GOOD[name]}
    return vendors.complaints(change.runtime, files, change.per_thread)


def test_every_runtime_has_header_or_reason() -> None:
    assert set(WITH_HEADER) | set(vendors.NO_HEADER) == set(RUNTIMES)
    assert set(vendors.INSTALLED) | set(vendors.NOT_INSTALLED) == set(WITH_HEADER)


@pytest.mark.parametrize("name", WITH_HEADER)
def test_header_matches_table(name: str) -> None:
    assert complaints(RUNTIMES[name]) == []


@pytest.mark.parametrize("name", PER_THREAD)
def test_per_thread_functions_match_table(name: str) -> None:
    assert complaints(RUNTIMES[name], per_thread=True) == []


@pytest.mark.parametrize("name", WITH_HEADER)
def test_committed_checks_match_table(name: str) -> None:
    for file, text in vendors.of_runtime(RUNTIMES[name], GOOD).items():
        assert (vendors.FOLDER / file).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", vendors.INSTALLED)
def test_library_exports_every_symbol(name: str) -> None:
    missing = vendors.missing_symbols(RUNTIMES[name], vendors.INSTALLED[name])
    assert set(missing) == vendors.lacked(RUNTIMES[name])


@pytest.mark.parametrize("name", vendors.INSTALLED)
def test_installed_library_is_in_table(name: str) -> None:
    assert vendors.INSTALLED[name] in RUNTIMES[name].libraries.linux


@pytest.mark.parametrize("name", vendors.INSTALLED)
def test_renamed_symbols_are_missing_in_library(name: str) -> None:
    runtime = RUNTIMES[name]
    renamed = tuple(replace(f, symbol=f"{f.symbol}_v9") for f in runtime.functions)
    missing = vendors.missing_symbols(replace(runtime, functions=renamed), vendors.INSTALLED[name])
    lacked = vendors.lacked(replace(runtime, functions=renamed))
    assert set(missing) == {f.symbol for f in renamed} | lacked


@pytest.mark.parametrize("name", WITH_HEADER)
def test_windows_convention(name: str) -> None:
    runtime = RUNTIMES[name]
    expected = runtime.convention.windows_x86 if runtime.convention else ""
    assert vendors.windows_convention(runtime) == expected


CHANGES = {f"{name}-{c.name}": c for name in WITH_HEADER for c in mutations.changes(RUNTIMES[name])}


# `make test` takes these of every runtime. --every-change, which `make test-all` passes, takes all.
SAMPLE = (
    *("rename-symbol", "without-version", "per-thread", "drop-argument-0", "width-1", "pointer-0"),
    *("swap-0", "other-result", "constant-value", "type-kind", "type-width", "swap:", "drop:"),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "change" in metafunc.fixturenames:
        every = metafunc.config.getoption("every_change")
        chosen = [n for n in CHANGES if every or n.split("-", 1)[1].startswith(SAMPLE)]
        metafunc.parametrize("change", chosen)


def test_change_is_reported(change: str) -> None:
    found = vendors.subjects(complaints_about_changes(CHANGES[change]))
    assert {subject.split(".")[0] for subject in found} == CHANGES[change].expected


def test_every_entry_is_changed() -> None:
    """Every entry of the table must be expected by name in some change."""
    for name in WITH_HEADER:
        runtime = RUNTIMES[name]
        named = {n for key, c in CHANGES.items() if key.startswith(f"{name}-") for n in c.expected}
        assert {f.symbol for f in runtime.functions if not f.newer} <= named
        assert {c.name for c in runtime.constants} <= named
        assert {t.name for t in runtime.types if t.kind != "callback"} <= named
