"""Compares the packages of a release with the files of a registry.

    published.py pypi|crates|maven FOLDER VERSION

FOLDER is build/packages. Prints `missing=NAME...`, for $GITHUB_OUTPUT: the packages that have a
file that the registry lacks, in the order in which they must be published. A registry accepts a
version once, so a published file that differs is an error: what was tested is not what users get.
Exit codes: 0 no published file differs, 1 a file differs, 2 could not ask the registry.
"""

from __future__ import annotations

import hashlib
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PYPI = {"fletching": "python", "fletching-tools": "generator"}  # with their folders
CRATES = ("fletching-abi", "fletching")  # the second requires the first
Fetch = Callable[[str], bytes | None]  # the content of a URL, None if there is none


class File(NamedTuple):
    package: str
    path: Path
    digest: str  # of the file here
    published: str | None  # digest of the registry's file, if it has one


def main(arguments: Sequence[str]) -> int:
    try:
        registry, folder, version = arguments
        compared = list(REGISTRIES[registry](Path(folder), version, fetch))
    except (ValueError, KeyError):
        print(__doc__, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"published: {arguments[0]}: {error}", file=sys.stderr)
        return 2
    if not compared:
        print(f"published: {arguments[1]}: no package for {arguments[0]}", file=sys.stderr)
        return 2
    wrong = [file for file in compared if file.published not in (None, file.digest)]
    for file in wrong:
        print(
            f"published: {file.path}: {arguments[0]} has another file of this version: "
            f"expected {file.digest}, got {file.published}; hint: a published file cannot be "
            "replaced. Publish the artifact of the first run, or a new version",
            file=sys.stderr,
        )
    missing = dict.fromkeys(file.package for file in compared if file.published is None)
    print(f"missing={' '.join(missing)}")
    return 1 if wrong else 0


def fetch(url: str) -> bytes | None:
    """Returns the content of a page, or None for an answer of 404 or 410."""
    request = urllib.request.Request(url, headers={"User-Agent": "fletching-release"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            return None
        raise


def of_pypi(folder: Path, version: str, fetch: Fetch) -> Iterator[File]:
    for name, home in PYPI.items():
        page = fetch(f"https://pypi.org/pypi/{name}/{version}/json")
        urls = json.loads(page)["urls"] if page else []
        published = {url["filename"]: url["digests"]["sha256"] for url in urls}
        for path in sorted((folder / home).iterdir()):
            yield File(name, path, digest("sha256", path), published.get(path.name))


def of_crates(folder: Path, version: str, fetch: Fetch) -> Iterator[File]:
    for name in CRATES:
        page = fetch(f"https://index.crates.io/{name[:2]}/{name[2:4]}/{name}")
        lines = [json.loads(line) for line in page.splitlines()] if page else []
        published = {line["vers"]: line["cksum"] for line in lines}
        path = folder / "rust" / f"{name}-{version}.crate"
        yield File(name, path, digest("sha256", path), published.get(version))


def of_maven(folder: Path, version: str, fetch: Fetch) -> Iterator[File]:
    root = folder / "java"
    for path in sorted(root.rglob(f"*-{version}*")):
        if path.suffix in (".jar", ".pom"):
            address = path.relative_to(root).as_posix()
            page = fetch(f"https://repo1.maven.org/maven2/{address}.sha1")
            published = page.split()[0].decode() if page else None
            yield File(path.parents[1].name, path, digest("sha1", path), published)


REGISTRIES: dict[str, Callable[[Path, str, Fetch], Iterator[File]]] = {
    "pypi": of_pypi,
    "crates": of_crates,
    "maven": of_maven,
}


def digest(algorithm: str, path: Path) -> str:
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
