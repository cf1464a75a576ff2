"""A copy of the repository that a test may change, with the builds of the original."""

from __future__ import annotations

import subprocess
from pathlib import Path

from languages import ROOT

# Of build/: the files that a run in the copy writes.
_WRITTEN = (
    *("logs", "mutants", "mutants.json", "new_device", "new_language"),
    *("roundtrip.html", "roundtrip.json"),
)


def make(root: Path) -> None:
    """Copies tracked and untracked files, not the ignored ones; links .venv and what build/ has."""
    listed = "git ls-files --cached --others --exclude-standard -z"
    copy = f"{listed} | tar --null --ignore-failed-read -cT - | tar -xC '{root}'"
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(["bash", "-c", copy], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    (root / ".venv").symlink_to((ROOT / ".venv").resolve())
    _link(ROOT / "build", root / "build")
    (root / "build" / "lib").unlink()  # the copy adds libraries of its own
    _link(ROOT / "build" / "lib", root / "build" / "lib")


def _link(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        if path.name not in _WRITTEN:
            (target / path.name).symlink_to(path)
