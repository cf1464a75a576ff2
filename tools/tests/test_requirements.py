"""Each requirements.lock must match the requirements.in of its folder and hash every file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from languages import ROOT

_LISTED = ["git", "ls-files", "*requirements.in"]
_FOUND = subprocess.run(_LISTED, cwd=ROOT, capture_output=True, text=True, check=True).stdout
FOLDERS = [str(Path(file).parent) for file in _FOUND.splitlines()]


def name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def requirements(folder: Path) -> set[tuple[str, str]]:
    lines = (folder / "requirements.in").read_text("utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {(name(package), version) for package, version in pins}


def problems(folder: Path) -> list[str]:
    """The changes that `tools/lock` would make, as far as they can be found without a network."""
    text = (folder / "requirements.lock").read_text("utf-8")
    entries = re.findall(r"^(\S+)==(\S+)(.*(?:\n    .*)*)", text, re.MULTILINE)
    named = {(p, v) for p, v, rest in entries if "-r requirements.in" in rest}
    wrong = [
        f"{package}: no hash, or one that is not SHA-256"
        for package, _, rest in entries
        if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", rest)
    ]
    wanted = requirements(folder)
    wrong += [f"{package}=={version}: not in the lock" for package, version in wanted - named]
    wrong += [f"{package}=={version}: only in the lock" for package, version in named - wanted]
    return wrong


@pytest.mark.parametrize("folder", FOLDERS)
def test_lock_matches_input(folder: str) -> None:
    assert requirements(ROOT / folder)
    assert problems(ROOT / folder) == []


def test_package_has_one_version() -> None:
    pins = {pin for folder in FOLDERS for pin in requirements(ROOT / folder)}
    assert len(FOLDERS) > 1
    assert len(dict(pins)) == len(pins)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("pytest==9.2.0\n", "pytest==9.2.1\n", ["not in the lock", "only in the lock"]),
        ("pytest==9.2.0\n", "", ["only in the lock"]),
        ("pytest==9.2.0\n", "pytest==9.2.0\nquiver==1\n", ["not in the lock"]),
    ],
)
def test_changed_input_is_reported(tmp_path: Path, old: str, new: str, said: list[str]) -> None:
    for file in ("requirements.in", "requirements.lock"):
        (tmp_path / file).write_bytes((ROOT / "tools" / file).read_bytes())
    given = tmp_path / "requirements.in"
    assert old in given.read_text("utf-8")
    given.write_text(given.read_text("utf-8").replace(old, new), "utf-8")
    assert [problem.split(": ")[1] for problem in problems(tmp_path)] == said


def test_package_without_hash_is_reported(tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_text("bow==1\n", "utf-8")
    (tmp_path / "requirements.lock").write_text("bow==1\n    # via -r requirements.in\n", "utf-8")
    assert problems(tmp_path) == ["bow: no hash, or one that is not SHA-256"]
