"""Writes the SBOM of a release: `sbom.py FOLDER VERSION SECONDS` writes FOLDER/sbom.cdx.json.

CycloneDX: each artifact with its hash, its requirements with their versions, and the code of other
projects in it. The requirements come from the artifacts themselves. Runs in the environment of the
group `publish`.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from manifest import files, sha256

NAME = "sbom.cdx.json"
URL = "https://github.com/fletching/fletching"
POM = "{http://maven.apache.org/POM/4.0.0}"
Requirement = tuple[PackageURL, str]  # without a version, and the accepted versions


def main(arguments: list[str]) -> int:
    folder, version, seconds = Path(arguments[0]), arguments[1], int(arguments[2])
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{URL}/{version}/{seconds}"))
    bom.metadata.timestamp = datetime.fromtimestamp(seconds, UTC)
    product = Component(name="fletching", version=version, bom_ref="fletching", licenses=[APACHE])
    bom.metadata.component = product
    artifacts = [add(bom, folder, path, version) for path in files(folder) if shipped(path)]
    bom.register_dependency(product, artifacts)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        print(f"sbom.py: not valid CycloneDX: {wrong}", file=sys.stderr)
        return 1
    (folder / NAME).write_text(text + "\n", encoding="utf-8")
    return 0


APACHE = LicenseExpression("Apache-2.0")


def shipped(path: str) -> bool:
    """Whether a file is an artifact and not a checksum, signature or list."""
    endings = (".sha1", ".md5", ".sha256", ".sha512", ".asc", ".info", ".json", "/list", "SUMS")
    return not path.endswith(endings)


def add(bom: Bom, folder: Path, path: str, version: str) -> Component:
    """Adds an artifact with its requirements, and returns it."""
    artifact = Component(
        name=path,
        version=version,
        type=ComponentType.FILE,
        bom_ref=path,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256(folder / path))],
        licenses=[license_of(folder / path)],
        components=list(contained(folder / path)),
    )
    bom.components.add(artifact)
    required = [requirement(bom, *each) for each in requirements(folder / path)]
    bom.register_dependency(artifact, required)
    return artifact


def requirement(bom: Bom, purl: PackageURL, versions: str) -> Component:
    """The component of a required package, which may be there already."""
    accepted = [Property(name="fletching:versions", value=versions)] if versions else []
    reference = f"{purl.to_string()}?{versions}"
    found = next((each for each in bom.components if each.bom_ref.value == reference), None)
    if found:
        return found
    made = Component(
        name=purl.name, group=purl.namespace, purl=purl, bom_ref=reference, properties=accepted
    )
    bom.components.add(made)
    return made


def requirements(path: Path) -> Iterator[Requirement]:
    """Reads the requirements of an artifact from its metadata."""
    if path.suffix == ".crate":
        yield from of_crate(path)
    elif path.suffix == ".mod":
        yield from of_module(path)
    elif path.suffix == ".pom":
        yield from of_pom(path)
    elif path.suffix == ".whl":
        for line in metadata(path).get_all("Requires-Dist", []):
            name, versions = re.match(r"([\w.-]+)\s*(.*)", line).groups()  # type: ignore[union-attr]
            yield PackageURL("pypi", name=name.lower()), versions


def of_crate(path: Path) -> Iterator[Requirement]:
    with tarfile.open(path) as crate:
        found = crate.extractfile(f"{path.name.removesuffix('.crate')}/Cargo.toml")
        manifest = tomllib.loads(found.read().decode()) if found else {}
    for table in ("dependencies", "build-dependencies"):
        for name, entry in manifest.get(table, {}).items():
            yield PackageURL("cargo", name=entry.get("package", name)), entry["version"]


def of_module(path: Path) -> Iterator[Requirement]:
    required = re.findall(
        r"^(?:require )?\s*(\S+/\S+) (v\S+)", path.read_text("utf-8"), re.MULTILINE
    )
    for name, least in required:
        space, _, last = name.rpartition("/")
        yield PackageURL("golang", namespace=space, name=last), f">={least}"


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
            yield PackageURL("maven", namespace=group, name=name), accepted


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


def license_of(path: Path) -> LicenseExpression:
    if path.suffix == ".whl":
        return LicenseExpression(metadata(path)["License-Expression"])
    return APACHE


def contained(path: Path) -> Iterator[Component]:
    """The code of other projects in a binary artifact, which has their licenses as NAME.txt."""
    licenses: list[str] = []
    if path.suffix == ".whl" and not path.stem.endswith("-any"):
        listed = metadata(path).get_all("License-File", [])
        licenses = [name for name in listed if name.startswith("licenses/")]
    elif re.search(r"-linux-\w+\.tar\.gz$", path.name):
        with tarfile.open(path) as archive:
            licenses = [name for name in archive.getnames() if "/doc/" in name]
    for name in licenses:
        if name.endswith(".txt"):
            yield Component(name=Path(name).stem, bom_ref=f"{path.name}:{name}")


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
