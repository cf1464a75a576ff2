"""A copy of the repository for tests that modify it, with the builds of the original."""

from __future__ import annotations

import subprocess
from pathlib import Path

from languages import ROOT

# Files in build/ that a run in the copy writes.
_WRITTEN = (
    *("logs", "mutants", "mutants.json", "new_device", "new_language"),
    *("roundtrip.html", "roundtrip.json", "suites"),
)


def make(root: Path) -> None:
    """Copies tracked and untracked files, except ignored ones, and links .venv and build/."""
    listed = "git ls-files --cached --others --exclude-standard -z"
    copy = f"{listed} | tar --null --ignore-failed-read -cT - | tar -xC '{root}'"
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["bash", "-c", copy], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    (root / ".venv").symlink_to((ROOT / ".venv").resolve())
    _link(ROOT / "build", root / "build")
    (root / "build" / "lib").unlink()  # replaced by a folder, because the copy adds libraries
    _link(ROOT / "build" / "lib", root / "build" / "lib")


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name not in _WRITTEN:
            (target / path.name).symlink_to(path)
