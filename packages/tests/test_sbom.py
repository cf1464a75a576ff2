"""Tests the SBOM of small packages of each kind."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import sbom
from requirements import Requirement, contained, license_of, requirements

CRATE = """
[dependencies.arrow-60]
version = "60"
package = "arrow"
[build-dependencies.cc]
version = "1.0"
[dev-dependencies.proptest]
version = "1"
"""
MODULE = """module example.com/quiver
go 1.24
require example.com/one/bow v1.2.3
require (
\texample.com/arrow-go/v18 v18.1.0
)
"""
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><parent>
<artifactId>quiver-parent</artifactId><version>1.0</version></parent>
<dependencies>
<dependency><groupId>org.a</groupId><artifactId>managed</artifactId></dependency>
<dependency><groupId>org.a</groupId><artifactId>own</artifactId>
<version>${project.version}</version></dependency>
<dependency><groupId>org.a</groupId><artifactId>tests</artifactId><version>9</version>
<scope>test</scope></dependency>
</dependencies></project>"""
PARENT = """<project xmlns="http://maven.apache.org/POM/4.0.0"><version>1.0</version>
<properties><managed.version>7.1</managed.version></properties>
<dependencyManagement><dependencies><dependency><groupId>org.a</groupId>
<artifactId>managed</artifactId><version>${managed.version}</version></dependency>
</dependencies></dependencyManagement></project>"""
METADATA = """Metadata-Version: 2.4
Name: quiver
License-Expression: Apache-2.0 AND MIT
License-File: LICENSE
License-File: licenses/nock.txt
Requires-Dist: Bow.String>=1.2,<2
Requires-Dist: arrows
"""
BUILD = '[build-system]\nrequires = ["maker>=1.27"]\n'


def pack(path: Path, members: dict[str, str]) -> Path:
    """Writes a zip or a tar archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in members.items():
                wheel.writestr(name, text)
        return path
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def wheel(folder: Path, tag: str = "cp312-abi3-linux_x86_64") -> Path:
    return pack(folder / f"quiver-1.0-{tag}.whl", {"quiver-1.0.dist-info/METADATA": METADATA})


def sdist(folder: Path) -> Path:
    members = {"quiver-1.0/PKG-INFO": METADATA, "quiver-1.0/pyproject.toml": BUILD}
    return pack(folder / "python" / "quiver-1.0.tar.gz", members)


def binary(folder: Path, name: str = "llvm") -> Path:
    texts = {f"quiver/share/doc/quiver/{name}.txt": "", "quiver/share/doc/quiver/LICENSE": ""}
    return pack(folder / "quiver-1.0-linux-x86_64.tar.gz", texts)


def pom(folder: Path) -> Path:
    write(folder / "quiver-parent/1.0/quiver-parent-1.0.pom", PARENT)
    return write(folder / "quiver/1.0/quiver-1.0.pom", POM)


def deb(folder: Path) -> Path:
    control = folder / "root" / "DEBIAN" / "control"
    depends = "Depends: libc6 (>= 2.34), libstdc++6 (>= 12), python3:any, one (= 1) | two\n"
    write(
        control, f"Package: quiver\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\n{depends}"
    )
    control.parent.chmod(0o755)
    package = folder / "quiver_1_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(folder / "root"), str(package)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return package


PYTHON = {
    Requirement("pypi", "", "bow-string", ">=1.2,<2"),
    Requirement("pypi", "", "arrows", ""),
}


def test_requirements_of_wheel(tmp_path: Path) -> None:
    assert {*requirements(wheel(tmp_path))} == PYTHON


def test_requirements_of_source_distribution_include_build(tmp_path: Path) -> None:
    assert {*requirements(sdist(tmp_path))} == PYTHON | {Requirement("pypi", "", "maker", ">=1.27")}


def test_source_archive_of_same_name_has_no_requirements(tmp_path: Path) -> None:
    archive = pack(tmp_path / "quiver-1.0.tar.gz", {"quiver-1.0/CMakeLists.txt": ""})
    assert [*requirements(archive)] == []
    assert license_of(archive) == "Apache-2.0"


def test_requirements_of_crate_exclude_tests(tmp_path: Path) -> None:
    path = pack(tmp_path / "quiver-1.0.crate", {"quiver-1.0/Cargo.toml": CRATE})
    assert {*requirements(path)} == {
        Requirement("cargo", "", "arrow", "60"),
        Requirement("cargo", "", "cc", "1.0"),
    }


def test_requirements_of_module(tmp_path: Path) -> None:
    assert {*requirements(write(tmp_path / "v1.0.0.mod", MODULE))} == {
        Requirement("golang", "example.com/one", "bow", ">=v1.2.3"),
        Requirement("golang", "example.com/arrow-go", "v18", ">=v18.1.0"),
    }


def test_requirements_of_pom_have_versions_of_parent(tmp_path: Path) -> None:
    assert {*requirements(pom(tmp_path))} == {
        Requirement("maven", "org.a", "managed", "7.1"),
        Requirement("maven", "org.a", "own", "1.0"),
    }


def test_requirements_of_debian_package(tmp_path: Path) -> None:
    assert {*requirements(deb(tmp_path))} == {
        Requirement("deb", "debian", "libc6", ">= 2.34"),
        Requirement("deb", "debian", "libstdc++6", ">= 12"),
        Requirement("deb", "debian", "python3", ""),
        Requirement("deb", "debian", "one", "= 1"),
    }


@pytest.mark.parametrize(
    ("requirement", "purl"),
    [
        (Requirement("pypi", "", "bow", ""), "pkg:pypi/bow"),
        (Requirement("golang", "example.com/a", "b", ">=v1"), "pkg:golang/example.com/a/b"),
        (Requirement("deb", "debian", "libstdc++6", ""), "pkg:deb/debian/libstdc%2B%2B6"),
    ],
)
def test_purl_of_requirement(requirement: Requirement, purl: str) -> None:
    assert requirement.purl == purl


def test_license_names_contained_code(tmp_path: Path) -> None:
    assert license_of(wheel(tmp_path)) == license_of(sdist(tmp_path)) == "Apache-2.0 AND MIT"
    assert contained(wheel(tmp_path)) == ["nock"]
    assert contained(wheel(tmp_path, "py3-none-any")) == []
    assert contained(binary(tmp_path)) == ["llvm"]
    assert license_of(binary(tmp_path)) == "Apache-2.0 AND Apache-2.0 WITH LLVM-exception"
    with pytest.raises(KeyError, match="nock"):
        license_of(binary(tmp_path, "nock"))


def test_bill_lists_artifacts_with_requirements(tmp_path: Path) -> None:
    paths = [wheel(tmp_path), sdist(tmp_path), binary(tmp_path)]
    for ignored in ("manifest.json", "SHA256SUMS", "a.jar.sha1", "a.jar.asc", "@v/list"):
        write(tmp_path / ignored, "")
    found = sbom.bill(tmp_path, "1.0", 86400)
    names = sorted(path.relative_to(tmp_path).as_posix() for path in paths)
    entries: dict[str, Any] = {entry["bom-ref"]: entry for entry in found["components"]}
    assert found["metadata"]["timestamp"] == "1970-01-02T00:00:00+00:00"
    assert [ref for ref, entry in entries.items() if entry["type"] == "file"] == names
    for path, name in zip(sorted(paths), names, strict=True):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert entries[name]["hashes"] == [{"alg": "SHA-256", "content": digest}]
        assert entries[name]["licenses"] == [{"expression": license_of(path)}]
    (inside,) = entries["quiver-1.0-linux-x86_64.tar.gz"]["components"]
    assert inside["name"] == "llvm"
    bow = "pkg:pypi/bow-string?>=1.2,<2"
    assert entries[bow]["purl"] == "pkg:pypi/bow-string"
    assert entries[bow]["properties"] == [{"name": "fletching:versions", "value": ">=1.2,<2"}]
    used = {entry["ref"]: entry["dependsOn"] for entry in found["dependencies"]}
    assert used["fletching"] == names
    assert used["python/quiver-1.0.tar.gz"] == [
        "pkg:pypi/arrows?",
        bow,
        "pkg:pypi/maker?>=1.27",
    ]
    assert {*used} == {*entries, "fletching"}
    assert found == sbom.bill(tmp_path, "1.0", 86400)
