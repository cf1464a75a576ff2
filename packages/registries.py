"""Local registries in one folder, as package managers read them over file://.

cargo   a git index and the crates        go      a module proxy
maven   a Maven repository                python  a simple index, with the command-line tools
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from homes import PackageError, git
from manifest import sha256

CRATES_IO = "https://github.com/rust-lang/crates.io-index"
FOLDERS = {
    "rust": "cargo/crates",
    "go": "go",
    "java": "maven",
    "python": "python/fletching",
    "generator": "python/fletching-tools",
}


def create(registry: Path) -> None:
    """Makes the registries, without a package."""
    for folder in FOLDERS.values():
        (registry / folder).mkdir(parents=True)
    index = registry / "cargo" / "index"
    subprocess.run(["git", "init", "--quiet", index], check=True)
    config = {"dl": f"file://{registry}/cargo/crates/{{crate}}-{{version}}.crate"}
    (index / "config.json").write_text(json.dumps(config), encoding="utf-8")
    commit(index, "Create the index")


def publish(packages: Path, registry: Path) -> None:
    """Adds the packages of a folder. Refuses a file that is published already."""
    for home, folder in FOLDERS.items():
        add(packages / home, registry / folder)
    index = registry / "cargo" / "index"
    crates = {crate: read_manifest(crate) for crate in (packages / "rust").glob("*.crate")}
    names = [manifest["package"]["name"] for manifest in crates.values()]
    for crate, manifest in crates.items():
        path = index / index_path(manifest["package"]["name"])
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(f"{json.dumps(index_line(manifest, sha256(crate), names))}\n")
    commit(index, "Publish the crates")
    write_pages(registry / "python", {})


def yank(registry: Path, version: str, reason: str) -> None:
    """Yanks a version in the registries that can: the crates and the Python packages."""
    index = registry / "cargo" / "index"
    for path in index.glob("[!.]*/*/*"):
        path.write_text(yanked(path.read_text(encoding="utf-8"), version), encoding="utf-8")
    commit(index, f"Yank {version}")
    write_pages(registry / "python", {version: reason})


def commit(repository: Path, message: str) -> None:
    """Commits all changes, as a user who exists in this repository only."""
    git("config", "user.name", "Rehearsal", root=repository)
    git("config", "user.email", "rehearsal@example.com", root=repository)
    git("add", "--all", root=repository)
    git("commit", "--quiet", "--no-gpg-sign", "-m", message, root=repository)


def add(packages: Path, folder: Path) -> None:
    """Copies the packages of one language into its registry."""
    for source in filter(Path.is_file, sorted(packages.rglob("*"))):
        target = folder / source.relative_to(packages)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.name == "list":  # a module's versions
            with target.open("a", encoding="utf-8") as versions:
                versions.write(source.read_text(encoding="utf-8"))
        elif target.exists():
            raise PackageError(f"publish: {target.name}: expected a new version, got a used one")
        else:
            shutil.copyfile(source, target)


def read_manifest(crate: Path) -> dict[str, Any]:
    """The Cargo.toml of a crate, which `cargo package` has normalized."""
    with tarfile.open(crate) as archive:
        member = archive.extractfile(f"{crate.stem}/Cargo.toml")
        assert member
        return tomllib.loads(member.read().decode())


def index_path(name: str) -> str:
    """The path of a crate with at least four letters in an index."""
    return f"{name[:2]}/{name[2:4]}/{name}"


def index_line(
    manifest: Mapping[str, Any], checksum: str, siblings: Iterable[str]
) -> dict[str, Any]:
    """A version of a crate in a cargo index, which has its siblings; others are on crates.io."""
    package, features = manifest["package"], manifest.get("features", {})
    # Cargo before 1.60 cannot read these values, and ignores features2.
    new = {key for key, values in features.items() if re.search(r"dep:|\?/", " ".join(values))}
    return {
        "name": package["name"],
        "vers": package["version"],
        "deps": list(_dependencies(manifest, frozenset(siblings))),
        "cksum": checksum,
        "features": {key: values for key, values in features.items() if key not in new},
        "features2": {key: features[key] for key in features if key in new},
        "yanked": False,
        "links": package.get("links"),
        "rust_version": package.get("rust-version"),
        "v": 2,
    }


def _dependencies(
    manifest: Mapping[str, Any], siblings: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """The dependencies of a crate, without those of its tests, which no user gets."""
    tables = [(None, manifest), *manifest.get("target", {}).items()]
    for target, table in tables:
        for kind, key in (("normal", "dependencies"), ("build", "build-dependencies")):
            for name, stated in table.get(key, {}).items():
                crate = stated.get("package", name)
                yield {
                    "name": name,
                    "req": stated["version"],
                    "features": stated.get("features", []),
                    "optional": stated.get("optional", False),
                    "default_features": stated.get("default-features", True),
                    "target": target,
                    "kind": kind,
                    "registry": None if crate in siblings else CRATES_IO,
                    "package": crate if crate != name else None,
                }


def yanked(lines: str, version: str) -> str:
    """The lines of a crate in a cargo index, with one version yanked."""
    entries = [json.loads(line) for line in lines.splitlines()]
    for entry in entries:
        entry["yanked"] |= entry["vers"] == version
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


def write_pages(folder: Path, reasons: Mapping[str, str]) -> None:
    """Writes the page of each project below a simple index."""
    for project in filter(Path.is_dir, folder.iterdir()):
        files = sorted(path for path in project.iterdir() if path.name != "index.html")
        page = simple_page({path.name: sha256(path) for path in files}, reasons)
        (project / "index.html").write_text(page, encoding="utf-8")


def simple_page(files: Mapping[str, str], reasons: Mapping[str, str]) -> str:
    """The page of a project (PEP 503): the files with their SHA-256, and those yanked (PEP 592).

    `reasons` has the yanked versions.
    """
    lines = ["<!DOCTYPE html>", "<title>Files</title>"]
    for name, checksum in files.items():
        reason = reasons.get(name.removesuffix(".tar.gz").split("-")[1])
        mark = f' data-yanked="{html.escape(reason)}"' if reason is not None else ""
        lines.append(f'<a href="{name}#sha256={checksum}"{mark}>{name}</a><br>')
    return "\n".join([*lines, ""])
