"""Tests that fetching happens once, is complete or has no effect, and explains its errors."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

import fetch as module
from fetch import FetchError, fetch
from packages import PACKAGES, Package

# The smallest packages. Repeated fetches come from the tools' caches.
SDIST = next(package for package in PACKAGES if package.kind == "sdist")
GO = next(package for package in PACKAGES if package.kind == "module")


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*")]


@pytest.mark.parametrize("package", [SDIST, GO], ids=["pip", "module"])
def test_fetch_downloads_once(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch(package, tmp_path)
    assert folder == tmp_path / package.folder
    assert any(name.endswith(".h") for name in files(folder))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert fetch(package, tmp_path) == folder


def test_fetch_replaces_incomplete_folder(tmp_path: Path) -> None:
    half = tmp_path / GO.folder
    half.mkdir()
    (half / "old.h").touch()
    fetch(GO, tmp_path)
    assert "abi.h" in files(half)
    assert "old.h" not in files(half)


@pytest.mark.parametrize(
    ("package", "hash_", "expected"),
    [
        (SDIST, f"sha256:{'0' * 64}", "THESE PACKAGES DO NOT MATCH THE HASHES"),
        (GO, f"h1:{'A' * 43}=", f"its hash is {GO.hash}, not h1:AAA"),
    ],
    ids=["pip", "module"],
)
def test_fetch_rejects_other_hash(
    package: Package, hash_: str, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(FetchError, match=package.name) as caught:
        fetch(dataclasses.replace(package, hash=hash_), tmp_path)
    assert expected in str(caught.value)
    assert files(tmp_path) == []


@pytest.mark.parametrize("package", [SDIST, GO], ids=["pip", "module"])
def test_fetch_without_network_raises(
    package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(FetchError, match=r"cannot be fetched; is there a network\?") as caught:
        fetch(package, tmp_path / "published")
    assert str(caught.value).startswith(f"{package.name} {package.version} ")
    assert files(tmp_path / "published") == []


def test_fetch_without_go_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FetchError, match="'go' is not installed; install it"):
        fetch(GO, tmp_path / "published")


def test_fetch_rejects_folder_without_headers(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"has no headers in nowhere/; fix the folder"):
        fetch(dataclasses.replace(GO, headers="nowhere/"), tmp_path)
    assert files(tmp_path) == []


def test_command_reports_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(package: Package) -> Path:
        raise FetchError(f"{package.name}: no")

    monkeypatch.setattr(module, "fetch", fail)
    assert module.main() == 2
    assert capsys.readouterr().err == "fetch: pyarrow: no\n"
