"""Tests that every tracked file has the version of the spec, and that the check can fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import versions

ROOT = Path(__file__).resolve().parents[2]
FILES = versions.tracked(ROOT)
PRESENT = versions.project_version(FILES)
OTHER = "97-98-99".replace("-", ".")  # as a literal, the check would report it
CHANGED = versions.set_version(FILES, OTHER)
SMALL = {name: FILES[name] for name in CHANGED}


def test_repository_has_one_version() -> None:
    assert versions.disagreements(FILES) == []


def test_generated_files_are_left_to_generator() -> None:
    assert (ROOT / "cpp/include/fletching/version.h").is_file()
    assert "cpp/include/fletching/version.h" not in FILES


def test_set_version_leaves_no_old_version() -> None:
    files = {**FILES, **CHANGED}
    assert versions.project_version(files) == OTHER
    assert versions.disagreements(files) == []
    assert {place for name in CHANGED for place in versions.places(name)} == {*versions.PLACES}
    assert versions.set_version(files, PRESENT) == {name: FILES[name] for name in CHANGED}


@pytest.mark.parametrize("name", sorted({*CHANGED} - {versions.SPEC}))
def test_file_with_other_version_is_reported(name: str) -> None:
    files = {versions.SPEC: FILES[versions.SPEC], name: CHANGED[name]}
    found = [line for line in versions.disagreements(files) if line.startswith(f"{name}:")]
    assert found
    assert all(": version of Fletching: expected" in line and "got 97.98" in line for line in found)


def new_page(line: str) -> list[str]:
    """Returns the disagreements of the repository with another page that has this line."""
    log = FILES[versions.CHANGELOG] + f"\n## [{OTHER}] - 2020-01-01\n"
    return versions.disagreements({**SMALL, versions.CHANGELOG: log, "docs/new.md": f"\n{line}\n"})


@pytest.mark.parametrize(
    "line",
    [
        f"pip install fletching-{PRESENT}.whl",
        f"prefix = fletching_v{PRESENT.replace('.', '_')}_",
        f'const version = "v{PRESENT}";',
        f"libfletching {OTHER} is the former version",
    ],
)
def test_version_outside_of_places_is_reported(line: str) -> None:
    (found,) = new_page(line)
    assert found.startswith("docs/new.md:2: version of Fletching outside of PLACES: ")


@pytest.mark.parametrize(
    "line",
    [
        f'"tool=={PRESENT}",',
        f"\tgithub.com/other/module v{PRESENT}",
        f"retract v{OTHER} // It corrupts memory.",
        f"\tv{OTHER} // It corrupts memory.",
        f"1{PRESENT}",
        f"{PRESENT}1",
        f"{PRESENT}.1",
        f"2.{PRESENT}",
    ],
)
def test_other_number_is_accepted(line: str) -> None:
    assert new_page(line) == []


def test_number_of_other_project_never_stops_a_release() -> None:
    found = re.findall(
        rf"(?<![0-9._])({versions.VERSION})(?![._]?[0-9])", "\n".join(FILES.values())
    )
    later = {number for number in found if versions.is_version(number) and after(number, PRESENT)}
    assert {"0.9.0", "1.9.3"} <= later
    assert list(versions.lines_with(FILES, later)) == []


def after(one: str, other: str) -> bool:
    return [*map(int, one.split("."))] > [*map(int, other.split("."))]


MANIFESTS = {
    "tools/requirements.lock": "quiver==4.5.6 \\\n",
    "Cargo.lock": '[[package]]\nname = "serde"\nversion = "4.5.6"\nsource = "x"\n',
    "pom.xml": "<bow.version>4.5.6</bow.version>\n<artifactId>nock</artifactId>\n<version>4.5.6<\n",
    "go.sum": "example.com/target/v4 v4.5.6 h1:x\n",
}


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a.md", "since 4.5.6", 1),
        ("a.py", 'VERSION = "4.5.6"', 1),
        ("a.md", "Fletching 4.5.6 has quiver", 1),
        ("a.md", "Fletching 4.5.6, quiver 4.5.6", 1),
        ("a.md", "Apache Arrow needs 4.5.6", 1),
        ("a.md", "quivers 4.5.6", 1),
        ("a.md", "v4_5_6 of a symbol", 1),
        ("tests/README.md", "since 4.5.6", 1),
        ("tests/a.py", "since 4.5.6", 0),
        ("packages/test_a.py", "since 4.5.6", 0),
        ("a.md", "Fletching uses quiver 4.5.6", 0),
        ("a.md", "set(QUIVER_VERSION 4.5.6)", 0),
        ("a.md", "quiver: since 4.5.6", 0),
        ("a.md", "serde 4.5.6, bow 4.5.6, nock 4.5.6, target 4.5.6", 0),
        ("a.md", "-Darrow.version=4.5.6", 0),
        ("a.md", "cargo-deny 4.5.6", 0),
        ("a.md", "4.5.6-beta.1", 0),
    ],
)
def test_number_belongs_to_named_project(name: str, line: str, expected: int) -> None:
    files = {**MANIFESTS, name: f"first\n{line}\nlast\n"}
    found = list(versions.lines_with(files, {"4.5.6"}))
    assert found == [(name, 2, line)] * expected


def test_place_without_version_is_reported() -> None:
    files = {name: text for name, text in SMALL.items() if name != "generator/pyproject.toml"}
    (found,) = versions.disagreements(files)
    assert found.startswith("generator/pyproject.toml: no version")
