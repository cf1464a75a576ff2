"""Tests the metadata of the packages: no build checks it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

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


@pytest.mark.parametrize(
    "name", ["conan/conandata.yml", "conda/recipe.yaml", "vcpkg/portfile.cmake"]
)
def test_recipe_downloads_source_archive_of_release_page(name: str) -> None:
    (url,) = re.findall(r"https://.+\.tar\.gz", read(f"packages/{name}"))
    for variable in ("@VERSION@", "${{ version }}", "${VERSION}"):
        url = url.replace(variable, "X.Y.Z")
    assert url == f"{REPOSITORY}/releases/download/vX.Y.Z/fletching-X.Y.Z.tar.gz"


def test_conda_recipe_lists_installed_files() -> None:
    recipe = yaml.safe_load(read("packages/conda/recipe.yaml"))
    (contents,) = (
        each["package_contents"] for each in recipe["tests"] if "package_contents" in each
    )
    headers = [name for name in contents["include"] if not (ROOT / "cpp/include" / name).is_file()]
    assert headers == []
    templates = {"fletching-config.cmake", "fletching.pc"}
    assert {Path(name).name for name in contents["files"]} == templates
    assert all((ROOT / "cpp/cmake" / f"{name}.in").is_file() for name in templates)


def test_pre_commit_hook_runs_in_own_environment_on_headers() -> None:
    (hook,) = yaml.safe_load(read(".pre-commit-hooks.yaml"))
    assert (hook["language"], hook["types"]) == ("python", ["header"])
    assert hook["entry"] == "fletching check-header"
    matching = [
        name
        for name in ("c/abi.h", "dlpack.h", "my_abi.h", "abi.hpp")
        if re.search(hook["files"], name)
    ]
    assert matching == ["c/abi.h", "dlpack.h"]


def test_cmake_package_accepts_same_minor_version_only(tmp_path: Path) -> None:
    (line,) = re.findall(
        r"^write_basic_package_version_file\(.*\)$", read("cpp/cmake/install.cmake"), re.MULTILINE
    )
    script = tmp_path / "requested.cmake"
    script.write_text(
        "include(CMakePackageConfigHelpers)\nset(PROJECT_VERSION 4.5.6)\n"
        f"{line}\n"
        "foreach(requested 4.5 4.5.6 4.5.7 4.4 4.6 5.0)\n"
        "  set(PACKAGE_FIND_VERSION ${requested})\n"
        "  set(PACKAGE_VERSION_COMPATIBLE FALSE)\n"
        '  string(REPLACE "." ";" parts ${requested})\n'
        "  list(GET parts 0 PACKAGE_FIND_VERSION_MAJOR)\n"
        "  list(GET parts 1 PACKAGE_FIND_VERSION_MINOR)\n"
        "  include(${CMAKE_CURRENT_BINARY_DIR}/fletching-config-version.cmake)\n"
        "  if(PACKAGE_VERSION_COMPATIBLE)\n    message(${requested})\n  endif()\n"
        "endforeach()\n",
        encoding="utf-8",
    )
    command = ["cmake", "-P", str(script)]
    done = subprocess.run(command, cwd=tmp_path, check=True, text=True, stderr=subprocess.PIPE)
    assert done.stderr.split() == ["4.5", "4.5.6"]


@pytest.mark.parametrize("name", ["bindings/python", "generator"])
def test_classifiers_are_versions_that_release_tests(name: str) -> None:
    (installed,) = re.findall(
        r"uv python install ([\d. ]+ .*)", read(".github/workflows/release.yml")
    )
    tested = {"3.11", *installed.split()}  # of the container
    classifiers = toml(f"{name}/pyproject.toml")["project"]["classifiers"]
    stated = {
        each.rpartition(" :: ")[2] for each in classifiers if re.search(r"Python :: 3\.", each)
    }
    oldest = minimum(f"{name}/pyproject.toml")
    assert stated == {each for each in tested if part(each) >= part(oldest)}


def part(version: str) -> int:
    """The minor version of a Python 3."""
    return int(version.partition(".")[2])


def minimum(name: str) -> str:
    required: str = toml(name)["project"]["requires-python"]
    return required.removeprefix(">=")


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads(read(name))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")
