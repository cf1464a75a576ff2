"""The lists of a release: SHA256SUMS and manifest.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

SUMS = "SHA256SUMS"
MANIFEST = "manifest.json"


def write_manifest(folder: Path, version: str, epoch: int) -> None:
    """Writes manifest.json, and SHA256SUMS with all other files."""
    listed = [
        {"path": path, "size": (folder / path).stat().st_size, "sha256": sha256(folder / path)}
        for path in files(folder)
        if path not in (SUMS, MANIFEST)
    ]
    date = datetime.fromtimestamp(epoch, UTC).isoformat()
    content = {"name": "fletching", "version": version, "date": date, "files": listed}
    (folder / MANIFEST).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    sums = [f"{sha256(folder / path)}  {path}\n" for path in files(folder) if path != SUMS]
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")


def differences(one: Path, other: Path) -> Iterator[str]:
    """One line for each file that is missing in a folder, or has other bytes."""
    first, second = set(files(one)), set(files(other))
    yield from (f"only in the first: {path}" for path in sorted(first - second))
    yield from (f"only in the second: {path}" for path in sorted(second - first))
    for path in sorted(first & second):
        if sha256(one / path) != sha256(other / path):
            yield f"different: {path}"


def files(folder: Path) -> list[str]:
    """The files of a folder and its subfolders, sorted."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
