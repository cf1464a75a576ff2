"""The parts of an installation outside the Python code: the spec, and the C++ programs.

They are in a clone, or in the folder `installed` that the package has in a wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import Mistake, ProgramError, SpecError, UsageError

INSTALLED = Path(__file__).resolve().parent / "installed"
_CLONE = Path(__file__).resolve().parents[2]
_BUILT = _CLONE / "build" / "bin"
_REPOSITORY = "https://github.com/fletching/fletching"
# FLETCHING_VALIDATE is a variable of the libraries: docs/validate.md.
_VARIABLES = {"fletching-validate": "FLETCHING_VALIDATE_PROGRAM"}
# The exit codes of the C++ programs. The system's loader has others.
_OWN_CODES = (0, 2)


def find_root(start: Path) -> Path:
    """Returns the nearest folder above `start` with a spec, or else the one of this package."""
    for folder in (start, *start.parents, _CLONE, INSTALLED):
        spec = folder / "spec"
        # Another project may have a file spec/project.yaml.
        if all((spec / name).is_file() for name in ("project.yaml", "schema/project.schema.json")):
            return folder
    name = "spec/project.yaml"
    raise SpecError(Mistake(name, 1, "(whole file)", "not found", "pass --root FOLDER"))


def require_clone(root: Path, command: str) -> None:
    """Raises UsageError if the root is the package, whose files no command changes."""
    if root == INSTALLED:
        raise UsageError(
            f"{command}: no clone found: expected spec/ in a parent folder, got the spec of this "
            f"installation; hint: run it in a clone of {_REPOSITORY}, or pass --root FOLDER"
        )


def find_program(name: str) -> str:
    """Returns the path of a C++ program: from its environment variable, such as FLETCHING_EXTRACT,
    the wheel, the build folder of the clone, or the PATH. Raises ProgramError."""
    named = os.environ.get(_variable(name))
    if named:
        return named
    for folder in (INSTALLED / "bin", _BUILT):
        if (folder / name).is_file():
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        raise ProgramError(f"{name} is {_missing(name)}")
    return found


def run_program(
    name: str, arguments: Sequence[str], *, text: bytes | None = None, capture: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Runs a program with `text` as its standard input. Raises ProgramError if it is missing or
    cannot run on this machine."""
    program = find_program(name)
    try:
        done = subprocess.run(
            [program, *arguments], input=text, capture_output=capture, check=False
        )
    except OSError as error:
        raise ProgramError(_cannot_run(name, program, error.strerror or str(error))) from None
    if done.returncode not in _OWN_CODES:
        said = (done.stderr or b"").decode("utf-8", errors="replace").strip()
        raise ProgramError(_cannot_run(name, program, said or f"it ended with {done.returncode}"))
    return done


def _variable(name: str) -> str:
    return _VARIABLES.get(name, name.upper().replace("-", "_"))


def _missing(name: str) -> str:
    if (_CLONE / "tools" / "build").is_file():
        return "not built; hint: run 'make build' in the repository"
    return (
        "not in this installation: expected the wheel for Linux on x86-64 with glibc 2.34 or "
        "later; hint: elsewhere, build it in a clone and set "
        f"{_variable(name)} to it: {_REPOSITORY}/blob/main/generator/README.md#without-the-programs"
    )


def _cannot_run(name: str, program: str, problem: str) -> str:
    return (
        f"{program} cannot run: {problem}; hint: the wheel's programs need Linux on x86-64 with "
        f"glibc 2.34 or later; elsewhere, set {_variable(name)} to one built for this machine"
    )
