"""Prepares a release: `make release VERSION=X.Y.Z` sets the version everywhere.

Changes files only; it does not commit, tag or publish. Either all files change or none: everything
is made and checked in a copy first. Exit codes: 0 done, 1 refused, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import versions
from versions import CHANGELOG, VERSION

ROOT = Path(__file__).resolve().parents[1]
CITATION = "CITATION.cff"
GO_MODULES = ("bindings/go", "bindings/go/arrowgo")
NEXT = """
Next:
  1. Review the changes with `git diff`, and run `make test`.
  2. git commit -am 'Release {version}'
  3. Push the commit to main, and wait until ci.yml has passed for it.
  4. git tag v{version} && git push origin v{version}
     The tag starts .github/workflows/release.yml, which tests the packages, publishes them and sets
     the tags of the Go modules."""


class RefusedError(Exception):
    """The repository or the arguments do not allow a release."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", metavar="X.Y.Z", nargs="?", default="")
    parser.add_argument(
        "--notes", action="store_true", help="print what changed, and change nothing"
    )
    options = parser.parse_args()
    version = options.version
    try:
        if options.notes:
            print(notes(versions.tracked(ROOT)), end="")
            return 0
        changed = release(ROOT, version, datetime.datetime.now(datetime.UTC).date(), generate)
    except RefusedError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    print(*changed, sep="\n")
    print(f"release: version {version} in {len(changed)} files")
    for name, text in versions.tracked(ROOT).items():
        if name.endswith(".md") and re.search(r"\bpublished yet\b", text):
            print(f"release: {name} still says that something is not published yet")
    print(NEXT.format(version=version))
    return 0


def release(
    root: Path, version: str, today: datetime.date, generate: Callable[[Path], None]
) -> list[str]:
    """Changes the files of a clean repository, and returns their names."""
    status = ["git", "status", "--porcelain"]
    dirty = subprocess.run(status, cwd=root, capture_output=True, text=True, check=True).stdout
    if dirty:
        first = dirty.splitlines()[0]
        raise RefusedError(
            f"uncommitted changes: expected a clean tree, got {first!r}; hint: commit them"
        )
    files = versions.tracked(root)
    check_version(files, version)
    check_go_modules(files, version)
    check_tags(root, version)
    changed = versions.set_version(files, version)
    repository = f"https://{_repository(files)}"
    changed[CHANGELOG] = roll(files[CHANGELOG], version, today, repository)
    changed[CITATION] = dated(changed.get(CITATION, files[CITATION]), today)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        subprocess.run(f"git archive HEAD | tar -xC '{scratch}'", cwd=root, shell=True, check=True)
        write(scratch, {name: _encoded(text) for name, text in changed.items()})
        generate(scratch)
        wrong = versions.disagreements({**files, **changed})
        if wrong:
            raise RefusedError("\n".join(["the result has other versions:", *wrong]))
        new = {name: (scratch / name).read_bytes() for name in _differing(root, scratch)}
    write(root, new)
    return sorted(new)


def check_version(files: Mapping[str, str], version: str) -> None:
    """Refuses a version that does not follow the present one."""
    if not versions.is_version(version):
        raise RefusedError(
            f"version: expected MAJOR.MINOR.PATCH, each at most 9999, got {version!r}"
        )
    present = versions.project_version(files)
    is_released = f"\n## [{present}]" in files[CHANGELOG]
    if not is_released and version == present:
        return
    if _numbers(version) <= _numbers(present):
        kind = "released" if is_released else "present"
        raise RefusedError(
            f"version: expected one later than the {kind} version {present}, got {version}"
        )


def check_go_modules(files: Mapping[str, str], version: str) -> None:
    """Refuses a major version that the paths of the Go modules do not name: go get would, too."""
    major = int(version.partition(".")[0])
    suffix = f"/v{major}" if major > 1 else ""
    for folder in GO_MODULES:
        name = f"{folder}/go.mod"
        path = files[name].partition("module ")[2].partition("\n")[0]
        if not path.endswith(f"/{folder}{suffix}"):
            raise RefusedError(
                f"{name}: module path: expected one that ends with '{folder}{suffix}' for version "
                f"{version}, got {path}; hint: set go_module in {versions.SPEC} and the paths in "
                "every go.mod, import, page and language.toml, run make generate, and commit first"
            )


def check_tags(root: Path, version: str) -> None:
    """Refuses a version with a tag, because a number is never used twice."""
    tags = [f"v{version}", *(f"{folder}/v{version}" for folder in GO_MODULES)]
    listed = ["git", "tag", "--list", *tags]
    found = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout
    if found:
        got = ", ".join(found.split())
        raise RefusedError(f"version: expected one without a tag, got {got}")


def roll(text: str, version: str, today: datetime.date, repository: str) -> str:
    """Returns the change log with the section Unreleased as that of the version."""
    body, _, _ = text.partition("\n[Unreleased]: ")
    head, heading, rest = body.partition("\n## [Unreleased]\n")
    if not heading:
        raise RefusedError(f"{CHANGELOG}: no section: expected '## [Unreleased]'")
    new, _, _ = rest.partition("\n## [")
    if not re.search(r"^- ", new, re.MULTILINE):
        raise RefusedError(
            f"{CHANGELOG}: Unreleased: expected at least one entry '- ...', got none"
        )
    body = f"{head}{heading}\n## [{version}] - {today.isoformat()}\n{rest}".rstrip("\n")
    return f"{body}\n\n{_links(body, repository)}"


def notes(files: Mapping[str, str]) -> str:
    """Returns the entries of the change log for the present version."""
    version = versions.project_version(files)
    body, _, _ = files[CHANGELOG].partition("\n[Unreleased]: ")
    found = re.search(rf"^## \[{version}\].*\n(?:(?!## \[).*\n)*", f"{body}\n", re.MULTILINE)
    if not found:
        raise RefusedError(f"{CHANGELOG}: no section of version {version}: run make release first")
    return found[0].partition("\n")[2].strip("\n") + "\n"


def _links(body: str, repository: str) -> str:
    """One link for each section: what changed since the version before."""
    released = re.findall(rf"^## \[({VERSION})\]", body, re.MULTILINE)
    lines = [f"[Unreleased]: {repository}/compare/v{released[0]}...HEAD"]
    for new, old in itertools.pairwise(released):
        lines.append(f"[{new}]: {repository}/compare/v{old}...v{new}")
    lines.append(f"[{released[-1]}]: {repository}/releases/tag/v{released[-1]}")
    return "\n".join(lines) + "\n"


def dated(citation: str, today: datetime.date) -> str:
    """Returns CITATION.cff with the date of the release after the version."""
    text = re.sub(r"^date-released: .*\n", "", citation, flags=re.MULTILINE)
    return re.sub(
        r"^version: .*\n", rf"\g<0>date-released: {today.isoformat()}\n", text, flags=re.MULTILINE
    )


def generate(scratch: Path) -> None:
    """Writes the generated files of the copy, with the generator of the copy."""
    command = [sys.executable, "-m", "fletching_generator.cli", "generate", "--root", str(scratch)]
    environment = {**os.environ, "PYTHONPATH": str(scratch / "generator")}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Replaces the files. Writes all contents beside them first: a full disk changes nothing."""
    staged: dict[Path, Path] = {}
    try:
        for name, content in files.items():
            path = root / name
            staged[path] = path.with_name(f".{path.name}.release")
            staged[path].write_bytes(content)
            if path.is_file():
                shutil.copymode(path, staged[path])
    except OSError:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
        raise
    for path, temporary in staged.items():
        os.replace(temporary, path)


def _differing(root: Path, scratch: Path) -> list[str]:
    """The files of the copy that differ from those of the repository, or are new."""
    names = (
        path.relative_to(scratch).as_posix()
        for path in scratch.rglob("*")
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    )
    return [
        name
        for name in names
        if not (root / name).is_file()
        or (root / name).read_bytes() != (scratch / name).read_bytes()
    ]


def _repository(files: Mapping[str, str]) -> str:
    found = re.search(r"^repository: (\S+)$", files[versions.SPEC], re.MULTILINE)
    if not found:
        raise RefusedError(
            f"{versions.SPEC}: no repository: expected a line 'repository: HOST/PATH'"
        )
    return found[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    sys.exit(main())
