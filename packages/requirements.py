"""Reads requirements, contained code and the license from a package."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

POM = "{http://maven.apache.org/POM/4.0.0}"
APACHE = "Apache-2.0"
# The licenses of the code that the binary archive contains, by the name of the file.
LICENSES = {"llvm": "Apache-2.0 WITH LLVM-exception"}


class Requirement(NamedTuple):
    kind: str  # "maven": the type of a package URL
    group: str  # "org.apache.arrow"; empty if the kind has none
    name: str  # "arrow-vector"
    versions: str  # ">=1.2"; empty for all

    @property
    def purl(self) -> str:
        """The package URL, without a version."""
        parts = [self.kind, *self.group.split("/"), self.name] if self.group else self[0:3:2]
        return "pkg:" + "/".join(quote(part, safe="") for part in parts)


def requirements(path: Path) -> Iterator[Requirement]:
    """Reads the requirements of an artifact from its metadata."""
    if path.suffix == ".crate":
        yield from of_crate(path)
    elif path.suffix == ".mod":
        yield from of_module(path)
    elif path.suffix == ".pom":
        yield from of_pom(path)
    elif path.suffix == ".deb":
        yield from of_deb(path)
    elif path.suffix == ".whl":
        yield from of_python(metadata(path).get_all("Requires-Dist", []))
    elif is_sdist(path):
        built = tomllib.loads(member(path, "pyproject.toml").decode())["build-system"]["requires"]
        yield from of_python([*metadata(path).get_all("Requires-Dist", []), *built])


def of_python(lines: list[str]) -> Iterator[Requirement]:
    for line in lines:
        name, versions = re.match(r"([\w.-]+)\s*(.*)", line).groups()  # type: ignore[union-attr]
        yield Requirement("pypi", "", re.sub(r"[-_.]+", "-", name.lower()), versions)


def of_crate(path: Path) -> Iterator[Requirement]:
    manifest = tomllib.loads(member(path, "Cargo.toml").decode())
    for table in ("dependencies", "build-dependencies"):
        for name, entry in manifest.get(table, {}).items():
            yield Requirement("cargo", "", entry.get("package", name), entry["version"])


def of_module(path: Path) -> Iterator[Requirement]:
    required = re.findall(
        r"^(?:require )?\s*(\S+/\S+) (v\S+)", path.read_text("utf-8"), re.MULTILINE
    )
    for name, least in required:
        group, _, last = name.rpartition("/")
        yield Requirement("golang", group, last, f">={least}")


def of_deb(path: Path) -> Iterator[Requirement]:
    """Of alternatives, `a | b`, the first is what apt installs."""
    command = ["dpkg-deb", "--field", str(path), "Depends"]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    for entry in filter(None, done.stdout.strip().split(", ")):
        name, _, versions = entry.partition(" | ")[0].partition(" ")
        yield Requirement("deb", "debian", name.partition(":")[0], versions.strip("()"))


def of_pom(path: Path) -> Iterator[Requirement]:
    """Raises KeyError if neither the POM nor its parent states a version."""
    poms = [*parent_of(path), ElementTree.parse(path).getroot()]
    values = {
        value.tag.removeprefix(POM): value.text or ""
        for pom in poms
        for value in pom.findall(f"{POM}properties/*")
    }
    version = poms[-1].findtext(f"{POM}version") or poms[-1].findtext(f"{POM}parent/{POM}version")
    values["project.version"] = version or ""
    managed = {
        (group, name): stated
        for pom in poms
        for group, name, stated, _ in dependencies(pom, f"{POM}dependencyManagement/")
    }
    for group, name, stated, scope in dependencies(poms[-1]):
        if scope != "test":
            text = stated or managed[group, name]
            accepted = re.sub(r"\$\{(.*?)\}", lambda found: values[found[1]], text)
            yield Requirement("maven", group, name, accepted)


def parent_of(path: Path) -> Iterator[ElementTree.Element]:
    """The parent of a POM, if it has one, which lies beside it in the repository."""
    parent = ElementTree.parse(path).getroot().find(f"{POM}parent")
    if parent is not None:
        name, version = (parent.findtext(POM + key) or "" for key in ("artifactId", "version"))
        yield ElementTree.parse(
            path.parents[2] / name / version / f"{name}-{version}.pom"
        ).getroot()


def dependencies(pom: ElementTree.Element, under: str = "") -> Iterator[list[str]]:
    """Group, name, version and scope of each dependency, empty where they are not stated."""
    for entry in pom.findall(f"{under}{POM}dependencies/{POM}dependency"):
        keys = ("groupId", "artifactId", "version", "scope")
        yield [entry.findtext(POM + key) or "" for key in keys]


def license_of(path: Path) -> str:
    """The license expression. Raises KeyError if contained code has an unknown license."""
    if path.suffix == ".whl" or is_sdist(path):
        return str(metadata(path)["License-Expression"])
    if is_binary_archive(path):
        return " AND ".join(dict.fromkeys([APACHE, *(LICENSES[name] for name in contained(path))]))
    return APACHE


def contained(path: Path) -> list[str]:
    """The code of other projects in a binary artifact, which has their licenses as NAME.txt."""
    names: list[str] = []
    if path.suffix == ".whl" and not path.stem.endswith("-any"):
        listed = metadata(path).get_all("License-File", [])
        names = [name for name in listed if name.startswith("licenses/")]
    elif is_binary_archive(path):
        with tarfile.open(path) as archive:
            names = [name for name in archive.getnames() if "/doc/" in name]
    return [Path(name).stem for name in names if name.endswith(".txt")]


def is_binary_archive(path: Path) -> bool:
    return bool(re.search(r"-linux-\w+\.tar\.gz$", path.name))


def is_sdist(path: Path) -> bool:
    """Whether a file is a source distribution of Python. That of C and C++ has the same name."""
    if not path.name.endswith(".tar.gz"):
        return False
    with tarfile.open(path) as archive:
        return f"{path.name.removesuffix('.tar.gz')}/PKG-INFO" in archive.getnames()


def metadata(path: Path) -> Message:
    """The metadata of a wheel or a source distribution."""
    if path.suffix != ".whl":
        return BytesParser().parsebytes(member(path, "PKG-INFO"))
    with zipfile.ZipFile(path) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


def member(path: Path, name: str) -> bytes:
    """A file of the folder in an archive, which has the name of the archive."""
    folder = path.name.removesuffix(".tar.gz").removesuffix(".crate")
    with tarfile.open(path) as archive:
        found = archive.extractfile(f"{folder}/{name}")
        if found is None:
            raise KeyError(f"{path}: {name}: expected a file")
        return found.read()
