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
    Place("docs/validate.md", rf"/fletching@v({VERSION})$"),
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
# example. A test with a wrong version fails, or the version does not matter there.
_NOT_SCANNED = (
    "*.lock",
    "*-lock.json",
    "*.sum",
    "docs/measured/*",
    "docs/reports/*",
    "docs/versions.md",
    "spec/texts/*",
    CHANGELOG,
)
_TEST = re.compile(r"(?:^|/)(?:tests?/.*|test_[^/]*)(?<!\.md)$")
# A pinned package of another project in pyproject.toml, Cargo.toml or go.mod, the version of the
# format of CITATION.cff or of a POM, or a retracted version in go.mod.
_PIN = re.compile(
    r'==|"=[0-9]|^cff-version: |<modelVersion>|/POM/4'
    r"|^\t(?!github\.com/fletching/)\S+ v[0-9]|^(?:retract |\t)v[0-9.]+ // "
)
# Where the package managers say which version of another project is used here: name and version.
_USED = (
    ("pyproject.toml", rf'"([\w.-]+)(?:\[.*?\])?==({VERSION})'),
    ("*requirements.lock", rf"^([\w.-]+)==({VERSION})"),
    ("*Cargo.toml", rf'^([\w-]+) = (?:"|.*version = ")({VERSION})"'),
    ("*Cargo.lock", rf'^name = "(.*)"\nversion = "({VERSION})"\nsource'),
    ("*package.json", rf'"([\w.-]+)": "({VERSION})"'),
    ("*go.sum", rf"^\S*?([\w.-]+)(?:/v\d+)? v({VERSION})"),
    ("*pom.xml", rf"<([\w.]+)\.version>({VERSION})<"),
    ("*pom.xml", rf"<artifactId>([\w.-]+)</artifactId>\s*<version>({VERSION})<"),
)
# Projects of which only a text, a header or a tool is used, in any version.
_OTHERS = (
    r"arrow(?:-\w+)?|cargo[-_][a-z-]+|ecj|go|japicmp|lib(?:arrow|clang)|pylibcudf|rmm|rocm|sarif"
    r"|tvm-ffi|vulkan|x/mod"
)
# A version, or with underscores a part of a name. There are no pre-releases.
_NUMBER = re.compile(
    r"(?<![0-9])(?<![0-9][._])([0-9]+[._][0-9]+[._][0-9]+)(?![._]?[0-9]|[-_](?:alpha|beta|rc))"
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


def is_version(text: str) -> bool:
    """Whether a text is MAJOR.MINOR.PATCH, with at most four digits each."""
    return bool(re.fullmatch(r"(0|[1-9]\d{0,3})(\.(0|[1-9]\d{0,3})){2}", text, re.ASCII))


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
    for name, line, content in lines_with(files, {version, *released}):
        yield (
            f"{name}:{line}: version of Fletching outside of PLACES: {content.strip()}; "
            f"hint: read it from {SPEC}, or add the line to [[release.versions]] of a "
            "language.toml or to PLACES in packages/versions.py; if it is a number of another "
            "project, name that in the line and, unless a lock file pins it, in _OTHERS there"
        )


def lines_with(files: Mapping[str, str], numbers: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """Finds lines with one of the numbers that no place covers and that name no other project."""
    wanted = {*numbers}
    used = _used(files)
    for name, text in files.items():
        if _matches_any(name, _NOT_SCANNED) or _TEST.search(name):
            continue
        found = [(match, match[1].replace("_", ".")) for match in _NUMBER.finditer(text)]
        found = [(match, number) for match, number in found if number in wanted]
        covered = set(_covered_lines(text, places(name))) if found else set()
        for match, number in found:
            line = text.count("\n", 0, match.start()) + 1
            start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            content = text[start : end if end >= 0 else None]
            if line in covered or _PIN.search(content):
                continue
            if "<version>" in content:  # in a POM the name is in the line before
                start = text.rfind("\n", 0, start - 1) + 1
            if not _names_other(text[start : match.start()], content, used.get(number, set())):
                yield name, line, content


def _used(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Returns the names of other projects that are used in a version, by the version."""
    used: dict[str, set[str]] = {}
    for name, text in files.items():
        for pattern in (each for glob, each in _USED if fnmatch.fnmatchcase(name, glob)):
            for project, version in re.findall(pattern, text, re.MULTILINE):
                if project != "version" and not project.startswith("fletching"):
                    used.setdefault(version, set()).add(re.escape(project))
    return used


def _names_other(before: str, line: str, used: set[str]) -> bool:
    """Whether a number is that of another project, whose name is before it.

    If the project is used in this version, the name may be anywhere in a line that does not name
    Fletching.
    """
    direct = rf"{_name({_OTHERS, *used})}(?:\W*[0-9.]+ to)?[\W_]*(?:version)?[\W_]*v?$"
    if re.search(direct, before, re.IGNORECASE):
        return True
    anywhere = before + line
    return (
        bool(used)
        and "fletching" not in anywhere.lower()
        and bool(re.search(_name(used), anywhere, re.IGNORECASE))
    )


def _name(names: set[str]) -> str:
    return rf"(?:(?<![a-z])|(?<=-d))(?:{'|'.join(sorted(names))})(?![a-z])"


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
