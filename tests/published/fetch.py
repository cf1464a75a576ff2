"""Fetches the headers of packages.py from their registries into build/published/.

Complete folders stay; remains of an interrupted run are replaced.
Exit codes: 0 all headers exist, 2 one could not be fetched.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packages import PACKAGES, Package

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "build" / "published"
_BACKEND = ROOT / "tests" / "peers" / "nanoarrow" / "source"
_STAMP = "fetched"

# One platform on every machine, so that one hash is enough: the headers are the same on all.
_WHEEL = ("--only-binary", ":all:", "--platform", "win_amd64", "--python-version", "3.11")
_SDIST = ("--no-binary", ":all:", "--no-build-isolation")


class FetchError(Exception):
    """The message names the package, the problem and the fix."""


def fetch(package: Package, target: Path = PUBLISHED) -> Path:
    """The folder with the package's headers. Raises FetchError."""
    folder = target / package.folder
    wanted = f"{package.hash} {package.headers}"
    stamp = folder / _STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return folder
    target.mkdir(parents=True, exist_ok=True)
    # Renamed into place only when it is complete.
    with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as name:
        scratch = Path(name)
        download = _from_go if package.kind == "module" else _from_pip
        archive = download(package, scratch)
        unpacked = scratch / "headers"
        _unpack(package, archive, unpacked)
        (unpacked / _STAMP).write_text(wanted, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        unpacked.rename(folder)
    return folder


def _from_pip(package: Package, scratch: Path) -> Path:
    requirement = scratch / "requirement.txt"
    pinned = f"{package.name}=={package.version} --hash={package.hash}\n"
    requirement.write_text(pinned, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet"]
    command += ["--no-deps", "--require-hashes", "--dest", str(scratch / "archive")]
    command += [*(_WHEEL if package.kind == "wheel" else _SDIST), "-r", str(requirement)]
    _run(package, command, scratch, {"PYTHONPATH": str(_BACKEND)})
    return next((scratch / "archive").iterdir())


def _from_go(package: Package, scratch: Path) -> Path:
    command = ["go", "mod", "download", "-json", f"{package.name}@{package.version}"]
    found = json.loads(_run(package, command, scratch, {"GO111MODULE": "on", "GOFLAGS": ""}))
    if found["Sum"] != package.hash:
        raise FetchError(
            f"{package.name} {package.version}: its hash is {found['Sum']}, not {package.hash}; "
            "somebody has changed what was published, or packages.py is wrong"
        )
    return Path(found["Zip"])


def _run(
    package: Package, command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> str:
    """The output of the command. Raises FetchError with the end of the output if it fails."""
    what = f"{package.name} {package.version}"
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise FetchError(f"{what}: '{command[0]}' is not installed; install it") from None
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in (done.stdout + done.stderr).splitlines()[-8:])
        hint = "is there a network? Run it again: what is fetched stays"
        raise FetchError(f"{what} cannot be fetched; {hint}:\n{said}")
    return done.stdout


def _unpack(package: Package, archive: Path, target: Path) -> None:
    """Extracts only the headers, with their paths relative to the package's header folder."""
    found = 0
    for name, content in _members(archive):
        inner = name.removeprefix(package.headers)
        if inner == name or ".." in Path(inner).parts or not inner.endswith((".h", ".hpp")):
            continue
        path = target / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        found += 1
    if not found:
        where = f"{package.name} {package.version} has no headers in {package.headers}"
        raise FetchError(f"{where}; fix the folder in packages.py")


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield from ((i.filename, opened.read(i)) for i in opened.infolist() if not i.is_dir())
    else:
        with tarfile.open(archive) as files:
            for member in files:
                content = files.extractfile(member) or io.BytesIO()
                yield member.name, content.read()


def main() -> int:
    for package in PACKAGES:
        try:
            print(fetch(package).relative_to(ROOT))
        except FetchError as error:
            print(f"fetch: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
