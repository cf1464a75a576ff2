"""Tests the comparison of packages with fake registries."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError

import pytest

import published

VERSION = "2.3.4"
JAVA = f"io/github/fletching/fletching-ffm/{VERSION}/fletching-ffm-{VERSION}"
PACKAGES = (
    "python/fletching-2.3.4.tar.gz",
    "python/fletching-2.3.4-cp312-abi3-manylinux_2_28_x86_64.whl",
    "generator/fletching_tools-2.3.4.tar.gz",
    "rust/fletching-abi-2.3.4.crate",
    "rust/fletching-2.3.4.crate",
    f"java/{JAVA}.jar",
    f"java/{JAVA}.pom",
    f"java/{JAVA}.pom.sha1",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in PACKAGES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path


def digest(algorithm: str, name: str) -> str:
    return hashlib.new(algorithm, name.encode()).hexdigest()


def pypi(*names: str, sha256: str = "") -> bytes:
    urls = [
        {"filename": name.split("/")[1], "digests": {"sha256": sha256 or digest("sha256", name)}}
        for name in names
    ]
    return json.dumps({"urls": urls}).encode()


def crate(version: str, name: str) -> bytes:
    return json.dumps({"vers": version, "cksum": digest("sha256", name)}).encode()


class Registry:
    """Runs published.py with a fake registry."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys

    def compare(
        self, registry: str, fetch: published.Fetch, version: str = VERSION
    ) -> tuple[int, str, str]:
        """Returns the exit code, the output and the errors."""
        self.monkeypatch.setattr(published, "fetch", fetch)
        code = published.main([registry, str(self.folder), version])
        return code, *self.capsys.readouterr()


@pytest.fixture
def registries(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Registry:
    return Registry(folder, monkeypatch, capsys)


NO_PAGES: dict[str, bytes] = {}
TOOLS_PAGE = "https://pypi.org/pypi/fletching-tools/2.3.4/json"
PYTHON_PAGE = "https://pypi.org/pypi/fletching/2.3.4/json"
CRATE_PAGE = "https://index.crates.io/fl/et/fletching"
MAVEN = f"https://repo1.maven.org/maven2/{JAVA}"


@pytest.mark.parametrize(
    ("registry", "pages", "expected"),
    [
        ("pypi", {}, "fletching fletching-tools"),
        ("pypi", {PYTHON_PAGE: pypi(*PACKAGES[:2])}, "fletching-tools"),
        ("pypi", {PYTHON_PAGE: pypi(PACKAGES[0]), TOOLS_PAGE: pypi(PACKAGES[2])}, "fletching"),
        ("pypi", {PYTHON_PAGE: pypi(*PACKAGES[:2]), TOOLS_PAGE: pypi(PACKAGES[2])}, ""),
        ("crates", {}, "fletching-abi fletching"),
        ("crates", {f"{CRATE_PAGE}-abi": crate(VERSION, PACKAGES[3])}, "fletching"),
        ("crates", {f"{CRATE_PAGE}-abi": crate("2.3.3", "old")}, "fletching-abi fletching"),
        ("maven", {}, "fletching-ffm"),
        ("maven", {f"{MAVEN}.jar.sha1": digest("sha1", PACKAGES[5]).encode()}, "fletching-ffm"),
        (
            "maven",
            {
                f"{MAVEN}.jar.sha1": digest("sha1", PACKAGES[5]).encode(),
                f"{MAVEN}.pom.sha1": digest("sha1", PACKAGES[6]).encode() + b"  a.pom\n",
            },
            "",
        ),
    ],
)
def test_main_prints_missing_packages(
    registries: Registry, registry: str, pages: dict[str, bytes], expected: str
) -> None:
    assert registries.compare(registry, pages.get) == (0, f"missing={expected}\n", "")


@pytest.mark.parametrize(
    ("registry", "url", "page", "name"),
    [
        ("pypi", PYTHON_PAGE, pypi(PACKAGES[0], sha256="0123"), "fletching-2.3.4.tar.gz"),
        ("crates", CRATE_PAGE, crate(VERSION, "another"), "fletching-2.3.4.crate"),
        ("maven", f"{MAVEN}.pom.sha1", b"0123", "fletching-ffm-2.3.4.pom"),
    ],
)
def test_main_rejects_published_file_that_differs(
    registries: Registry, registry: str, url: str, page: bytes, name: str
) -> None:
    code, _, said = registries.compare(registry, {url: page}.get)
    assert code == 1
    assert name in said
    assert f"{registry} has another file of this version: expected " in said
    assert "hint: a published file cannot be replaced" in said


def test_main_rejects_folder_without_packages(registries: Registry) -> None:
    code, _, said = registries.compare("maven", NO_PAGES.get, "9.9.9")
    assert code == 2 and "no package for maven" in said


class Answer(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.end_headers()
        self.wfile.write(b"text")

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


@pytest.fixture
def address() -> Iterator[Callable[[int], str]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield lambda status: f"http://127.0.0.1:{server.server_port}/{status}"
        server.shutdown()


def test_fetch_returns_none_for_missing_page_only(address: Callable[[int], str]) -> None:
    assert published.fetch(address(200)) == b"text"
    assert published.fetch(address(404)) is None
    for status in (403, 429, 503):
        with pytest.raises(HTTPError):
            published.fetch(address(status))


def test_main_reports_registry_that_does_not_answer(registries: Registry) -> None:
    def refuse(_: str) -> bytes:
        raise OSError("timed out")

    expected = (2, "", "published: crates: timed out\n")
    assert registries.compare("crates", refuse) == expected
