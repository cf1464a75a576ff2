"""Finds, checks and sets the version of Fletching in every file that contains it.

`spec/project.yaml` has the version. `fletching generate` writes it to the generated files, which
have the attribute linguist-generated and are not handled here.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from languages import load

SPEC = "spec/project.yaml"
CHANGELOG = "CHANGELOG.md"
VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"


@dataclass(frozen=True)
class Place:
    files: str  # a pattern of paths, in which * also matches a slash
    pattern: str  # multi-line; group 1 is the version
    parts: int = 3  # 2 for MAJOR.MINOR, as in the soname of libfletching


PLACES = (
    Place(SPEC, rf"^version: ({VERSION})$"),
    Place("CITATION.cff", rf"^version: ({VERSION})$"),
    Place("generator/pyproject.toml", rf'^version = "({VERSION})"$'),
    Place("generator/README.md", rf"(?:rev: |/fletching@)v({VERSION})$"),
    Place("action.yml", rf"^    default: ({VERSION})$"),
    Place(".pre-commit-hooks.yaml", rf"fletching-tools==({VERSION})"),
    Place("*", r"libfletching(?:\.|\.so\.)?([0-9]+\.[0-9]+)(?!\.?[0-9])", parts=2),
    *(
        Place(f"{language.folder}/{version.files}", version.pattern)
        for language in load().values()
        if language.release
        for version in language.release.versions
    ),
)

# Files in which a version that equals ours can be that of another project, of a past run, or an
# example.
_NOT_SCANNED = ("*.lock", "*.sum", "docs/measured/*", "docs/versions.md", CHANGELOG)
# A pinned package of another project in pyproject.toml, Cargo.toml or go.mod, the version of the
# format of CITATION.cff, or a retracted version in go.mod.
_PIN = re.compile(
    r'==|"=[0-9]|^cff-version: '
    r"|^\t(?!github\.com/fletching/)\S+ v[0-9]|^(?:retract |\t)v[0-9.]+ // "
)


def tracked(root: Path) -> dict[str, str]:
    """Returns the text of each tracked file by path, without generated and binary files."""
    command = ["git", "ls-files", "-z", "--", ":/", ":(exclude,attr:linguist-generated)"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    files = {}
    for name in filter(None, listed.decode().split("\0")):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            files[name] = content.decode("utf-8", "surrogateescape")
    return files


def project_version(files: Mapping[str, str]) -> str:
    found = re.search(PLACES[0].pattern, files[SPEC], re.MULTILINE)
    if not found:
        raise ValueError(f"{SPEC}: no version: expected a line 'version: MAJOR.MINOR.PATCH'")
    return found[1]


def set_version(files: Mapping[str, str], version: str) -> dict[str, str]:
    """Returns the new text of each file that changes."""
    changed = {}
    for name, old in files.items():
        text = old
        for place in places(name):
            new = _shortened(version, place)
            for start, end in reversed([found.span(1) for found in _matches(place, text)]):
                text = text[:start] + new + text[end:]
        if text != old:
            changed[name] = text
    return changed


def disagreements(files: Mapping[str, str]) -> list[str]:
    """Returns a line for each version that is not the spec's, and for each place without one."""
    version = project_version(files)
    return [*_wrong_places(files, version), *_stray(files, version)]


def _wrong_places(files: Mapping[str, str], version: str) -> Iterator[str]:
    unused = list(PLACES)
    for name, text in files.items():
        for place in places(name):
            wanted = _shortened(version, place)
            for match in _matches(place, text):
                if place in unused:
                    unused.remove(place)
                if match[1] != wanted:
                    line = text.count("\n", 0, match.start(1)) + 1
                    yield (
                        f"{name}:{line}: version of Fletching: expected {wanted}, got {match[1]}; "
                        "hint: run make release, which sets all versions"
                    )
    for place in unused:
        yield f"{place.files}: no version: expected a match of {place.pattern!r}"


def _stray(files: Mapping[str, str], version: str) -> Iterator[str]:
    """Finds the version, and former versions, in lines that no place covers."""
    released = re.findall(rf"^## \[({VERSION})\]", files.get(CHANGELOG, ""), re.MULTILINE)
    numbers = "|".join(one.replace(".", "[._]") for one in {version, *released})
    number = re.compile(rf"(?<![0-9])(?<![0-9][._])(?:{numbers})(?![._]?[0-9])")
    # A whole file is searched first, because few files have a match.
    for name, text in files.items():
        if _matches_any(name, _NOT_SCANNED) or not number.search(text):
            continue
        covered = set(_covered_lines(text, places(name)))
        for line, content in enumerate(text.split("\n"), 1):
            if number.search(content) and line not in covered and not _PIN.search(content):
                yield (
                    f"{name}:{line}: version of Fletching outside of PLACES: {content.strip()}; "
                    f"hint: read it from {SPEC}, or add the line to [[release.versions]] of a "
                    "language.toml or to PLACES in packages/versions.py; a number of another "
                    "project belongs to _PIN or _NOT_SCANNED there"
                )


def _covered_lines(text: str, places: Iterable[Place]) -> Iterator[int]:
    for place in places:
        for match in _matches(place, text):
            yield text.count("\n", 0, match.start(1)) + 1


def places(name: str) -> Iterator[Place]:
    return (place for place in PLACES if fnmatch.fnmatchcase(name, place.files))


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _shortened(version: str, place: Place) -> str:
    return ".".join(version.split(".")[: place.parts])


def _matches(place: Place, text: str) -> Iterator[re.Match[str]]:
    return re.finditer(place.pattern, text, re.MULTILINE)
