"""Tests of the local registries: the lines of a cargo index, and the pages of a simple index."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import homes
import registries

MANIFEST = """
[package]
name = "quiver"
version = "1.2.3"
rust-version = "1.85"

[features]
plain = []
arrows = ["dep:arrow-60", "plain"]
weak = ["arrow-60?/ffi"]

[dependencies.quiver-abi]
version = "1.2.3"

[dependencies.arrow-60]
package = "arrow"
version = "60"
features = ["ffi"]
default-features = false
optional = true

[build-dependencies.cc]
version = "1.0.83"

[dev-dependencies.proptest]
version = "1"

[target."cfg(windows)".dependencies.windows]
version = "0.60"
"""


@pytest.fixture
def line() -> dict[str, object]:
    return registries.index_line(tomllib.loads(MANIFEST), "abcd", ["quiver", "quiver-abi"])


def test_index_line_has_version_checksum_and_features(line: dict[str, object]) -> None:
    assert line == {
        "name": "quiver",
        "vers": "1.2.3",
        "deps": line["deps"],
        "cksum": "abcd",
        "features": {"plain": []},
        "features2": {"arrows": ["dep:arrow-60", "plain"], "weak": ["arrow-60?/ffi"]},
        "yanked": False,
        "links": None,
        "rust_version": "1.85",
        "v": 2,
    }


def test_index_line_has_dependencies_of_users(line: dict[str, object]) -> None:
    dependencies = line["deps"]
    assert isinstance(dependencies, list)
    by_name = {each["name"]: each for each in dependencies}
    assert [*by_name] == ["quiver-abi", "arrow-60", "cc", "windows"]
    assert by_name["arrow-60"] == {
        "name": "arrow-60",
        "req": "60",
        "features": ["ffi"],
        "optional": True,
        "default_features": False,
        "target": None,
        "kind": "normal",
        "registry": registries.CRATES_IO,
        "package": "arrow",
    }
    assert by_name["quiver-abi"]["registry"] is None
    assert by_name["quiver-abi"]["package"] is None
    assert by_name["cc"]["kind"] == "build"
    assert by_name["windows"]["target"] == "cfg(windows)"


def test_yanked_changes_one_version() -> None:
    lines = "".join(
        json.dumps({"vers": version, "yanked": version == "0.9.0"}) + "\n"
        for version in ("0.9.0", "1.2.3", "1.2.4")
    )
    found = [json.loads(line) for line in registries.yanked(lines, "1.2.3").splitlines()]
    assert [each["yanked"] for each in found] == [True, True, False]


def test_simple_page_has_checksums_and_yanked_versions() -> None:
    files = {"quiver-1.2.3-py3-none-any.whl": "ab", "q-1.2.3.tar.gz": "cd", "q-1.2.4.tar.gz": "ef"}
    page = registries.simple_page(files, {"1.2.3": "a < b"})
    name, mark = "quiver-1.2.3-py3-none-any.whl", 'data-yanked="a &lt; b"'
    assert [line for line in page.splitlines() if line.startswith("<a ")] == [
        f'<a href="{name}#sha256=ab" {mark}>{name}</a><br>',
        f'<a href="q-1.2.3.tar.gz#sha256=cd" {mark}>q-1.2.3.tar.gz</a><br>',
        '<a href="q-1.2.4.tar.gz#sha256=ef">q-1.2.4.tar.gz</a><br>',
    ]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release" / "quiver" / "@v"
    folder.mkdir(parents=True)
    (folder / "v1.2.3.zip").write_bytes(b"")
    (folder / "list").write_text("v1.2.3\n", encoding="utf-8")
    return tmp_path / "release"


def test_add_appends_to_list_of_versions(release: Path, tmp_path: Path) -> None:
    registries.add(release, tmp_path / "go")
    (release / "quiver/@v/v1.2.3.zip").rename(release / "quiver/@v/v1.2.4.zip")
    (release / "quiver/@v/list").write_text("v1.2.4\n", encoding="utf-8")
    registries.add(release, tmp_path / "go")
    assert (tmp_path / "go/quiver/@v/list").read_text("utf-8") == "v1.2.3\nv1.2.4\n"
    assert (tmp_path / "go/quiver/@v/v1.2.3.zip").exists()


def test_add_refuses_used_version(release: Path, tmp_path: Path) -> None:
    registries.add(release, tmp_path / "go")
    with pytest.raises(homes.PackageError, match=r"v1.2.3.zip: expected a new version, got a used"):
        registries.add(release, tmp_path / "go")
