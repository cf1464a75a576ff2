"""A copy of the repository for each build, for wrong specs. It is kept between runs, so that only
files changed by a mutant are rebuilt."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mutations
from builds import Build
from fletching_generator import generate
from fletching_generator.spec import load
from mutations import Documents

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build" / "mutants"
LIBRARIES = ROOT / "build" / "lib"
# Large folders that the tests do not need.
_LEFT_OUT = ("docs/",)
# A call through a wrong signature may never return.
_SECONDS = 1200


@dataclass(frozen=True)
class Outcome:
    code: int  # as in bash; 124 after a timeout
    output: str


class Tree:
    """The scratch tree of one build."""

    def __init__(self, build: Build, scratch: Path = SCRATCH) -> None:
        self.folder = scratch / build.name
        self._build = build

    def prepare(self) -> Outcome:
        """Brings the tree to the state of the repository."""
        self.folder.mkdir(parents=True, exist_ok=True)
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        output = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
        names = [
            name
            for name in output.decode().split("\0")
            if name and not name.startswith(_LEFT_OUT) and (ROOT / name).is_file()
        ]
        for name in names:
            _copy(ROOT / name, self.folder / name)
        _remove_all_but(self.folder, set(names))
        link = self.folder / ".venv"
        if not link.exists():
            link.symlink_to((ROOT / ".venv").resolve())
        return self.bash(self._build.prepare)

    def build(self, documents: Documents, texts: dict[str, str]) -> Outcome:
        """Writes a spec and the files generated from it, and builds the test."""
        mutations.write(documents, self.folder / "spec")
        generate.write(self.folder, texts)
        return self.bash(self._build.build)

    def run(self, language: str) -> Outcome:
        return self.bash(self._build.runs[language])

    def bash(self, command: str, folder: str | None = None) -> Outcome:
        """Runs a command in the home of the language, or in this folder of the tree."""
        environment = {
            **os.environ,
            **self._build.environment,
            "ROOT": str(ROOT),
            "FLETCHING_LIB_DIR": str(LIBRARIES),
            "LD_LIBRARY_PATH": f"{LIBRARIES / self._build.libraries}:{LIBRARIES}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment.pop("FLETCHING_CELLS", None)
        process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder / (self._build.folder if folder is None else folder),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return Outcome(124, output.decode("utf-8", "backslashreplace"))
        return Outcome(process.returncode, output.decode("utf-8", "backslashreplace"))


def generated(documents: Documents) -> dict[str, str]:
    """Every generated file of a spec by path. Raises SpecError if the spec is invalid."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "spec", folder / "spec")
        mutations.write(documents, folder / "spec")
        return generate.render_all(load.load_spec(folder, events=False))


def _copy(source: Path, target: Path) -> None:
    """Does not touch an unchanged file, which would be rebuilt."""
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def _remove_all_but(folder: Path, names: set[str]) -> None:
    for path, folders, files in os.walk(folder):
        inner = Path(path)
        if inner == folder:
            folders[:] = [name for name in folders if name not in ("build", ".venv")]
        for name in files:
            if (inner / name).relative_to(folder).as_posix() not in names:
                (inner / name).unlink()
