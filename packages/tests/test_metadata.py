"""Tests the metadata of the packages: no build checks it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = (ROOT / "spec" / "project.yaml").read_text(encoding="utf-8")
REPOSITORY = "https://" + re.findall(r"^repository: (\S+)$", SPEC, re.MULTILINE)[0]

# The license of the whole package; wheels also contain code under others.
LICENSES = {
    "CITATION.cff": "\nlicense: Apache-2.0\n",
    "bindings/java/fletching-bom/pom.xml": "<name>Apache-2.0</name>",
    "bindings/java/pom.xml": "<name>Apache-2.0</name>",
    "bindings/python/pyproject.toml": '\nlicense = "Apache-2.0 AND ',
    "bindings/rust/Cargo.toml": '\nlicense = "Apache-2.0"\n',
    "generator/pyproject.toml": '\nlicense = "Apache-2.0 AND ',
    "packages/conan/conanfile.py": '\n    license = "Apache-2.0"\n',
    "packages/conda/recipe.yaml": "\n  license: Apache-2.0\n",
    "packages/vcpkg/vcpkg.json": '"license": "Apache-2.0"',
}


@pytest.mark.parametrize("name", LICENSES)
def test_manifest_has_license_and_repository(name: str) -> None:
    text = read(name)
    assert LICENSES[name] in text
    assert re.search(rf"{re.escape(REPOSITORY)}(?![\w-])", text)


# Maven Central refuses a POM without these. The BOM has no parent from which to inherit them.
@pytest.mark.parametrize("name", ["fletching-bom/pom.xml", "pom.xml"])
def test_pom_has_what_maven_central_requires(name: str) -> None:
    required = ("name", "description", "url", "licenses", "developers", "scm")
    text = read(f"bindings/java/{name}")
    assert [one for one in required if f"\n  <{one}>" not in text] == []


@pytest.mark.parametrize("name", ["bindings/python", "generator"])
def test_wheel_has_licenses_of_contained_code(name: str) -> None:
    project = toml(f"{name}/pyproject.toml")["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE", "licenses/*.txt"]


@pytest.mark.parametrize("name", ["fletching", "fletching-abi"])
def test_crate_is_accepted_by_registry(name: str) -> None:
    crate = toml(f"bindings/rust/{name}/Cargo.toml")
    package = crate["package"]
    assert len(package["keywords"]) <= 5
    assert all(len(word) <= 20 for word in package["keywords"])
    documented = package.get("metadata", {}).get("docs", {}).get("rs", {}).get("features", [])
    assert {*documented} <= {*crate.get("features", {})}


def test_oldest_supported_versions_are_those_of_the_page() -> None:
    stated = dict(re.findall(r"^\| (\w+) \| ([\d.]+)", read("docs/versions.md"), re.MULTILINE))
    assert (
        stated["Rust"] == toml("bindings/rust/Cargo.toml")["workspace"]["package"]["rust-version"]
    )
    assert stated["Python"] == minimum("bindings/python/pyproject.toml")
    assert f"Python {minimum('generator/pyproject.toml')} or later" in read("generator/README.md")
    for module in ("bindings/go/go.mod", "bindings/go/arrowgo/go.mod"):
        assert f"\ngo {stated['Go']}" in read(module)
    assert f"<maven.compiler.release>{stated['Java']}<" in read("bindings/java/pom.xml")


def minimum(name: str) -> str:
    required: str = toml(name)["project"]["requires-python"]
    return required.removeprefix(">=")


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads(read(name))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")
