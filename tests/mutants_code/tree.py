"""A copy of the repository with every selected mutant, and its build. It is kept between runs, so
that only changed files are recompiled."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import mutant
from cpp_mutants import CannotRunError
from mutant import Mutant, Placed

HOME = Path(__file__).resolve().parent
ROOT = HOME.parents[1]
PRESET = "asan"
# The tests that include the library, the tests on a vendor's stand-in, and the conformance suite
# and the corpus with the library.
FOLDERS = ("cpp/tests", "cpp/tests/gpu", "cpp/conformance", "tests/corpus")
_NEEDED = ("tests/standin", "tests/conformance")
INSPECT = "fletching-inspect"  # run by a test of the generator
# Programs that the Python code runs, without mutants.
_LINKED = (
    *("bin/fletching-extract", "bin/fletching-validate", "bin/libfletching_validate.so"),
    "lib/standin",
)
_MOST_ROUNDS = 10
_ERROR = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: ", re.MULTILINE
)


class Tree:
    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder
        self.build = folder.parent / "cmake"
        self._root = root
        self._placed: dict[str, list[Placed]] = {}

    def write(self, mutants: Mapping[int, Mutant]) -> None:
        """Updates the copy to the state of the repository, with these mutants by number."""
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        output = subprocess.run(listed, cwd=self._root, capture_output=True, check=True).stdout
        names = [name for name in output.decode().split("\0") if (self._root / name).is_file()]
        self._placed = {}
        for name in filter(None, names):
            text = (self._root / name).read_bytes()
            own = [(number, each) for number, each in mutants.items() if each.file == name]
            if own:
                text, self._placed[name] = mutant.insert(text, own)
            _write(self.folder / name, text, (self._root / name).stat().st_mode)
        _remove_all_but(self.folder, set(names))
        _link(self.folder / ".venv", (self._root / ".venv").resolve())
        for name in _LINKED:
            _link(self.folder / "build" / name, self._root / "build" / name)
        _link(self.folder / "build" / "bin" / INSPECT, self.build / "bin" / INSPECT)
        # Scripts find the repository's root with git.
        subprocess.run(["git", "init", "-q", self.folder], check=True)

    def compile(self, mutants: dict[int, Mutant], log: Path) -> list[Mutant]:
        """Builds the tests. Mutants that do not compile are moved out of `mutants` and returned."""
        self._configure(log)
        left_out: list[Mutant] = []
        for _ in range(_MOST_ROUNDS):
            targets = [*(f"{folder}/all" for folder in (*FOLDERS, *_NEEDED)), INSPECT]
            done = subprocess.run(
                ["ninja", "-C", str(self.build), "-j2", "-k0", *targets],
                # The build generates files with the generator's unmutated code.
                env={**os.environ, "PYTHONPATH": str(self._root / "generator")},
                capture_output=True,
                text=True,
                check=False,
            )
            log.write_text(done.stdout + done.stderr, encoding="utf-8")
            if done.returncode == 0:
                self.restore("cpp/")
                return left_out
            wrong = {each.key for each in self.blamed(done.stdout)}
            if not wrong:
                raise CannotRunError(f"the tests did not build; {log} says why")
            for number in [n for n, each in mutants.items() if each.key in wrong]:
                left_out.append(mutants.pop(number))
            self.write(mutants)
        raise CannotRunError(f"the tests did not build after {_MOST_ROUNDS} rounds; see {log}")

    def restore(self, folder: str) -> None:
        """Restores the sources below a folder: the generator's tests read and compile them, and
        expect the committed text."""
        for name in self._placed:
            if name.startswith(folder):
                (self.folder / name).write_bytes((self._root / name).read_bytes())

    def _configure(self, log: Path) -> None:
        presets = json.loads((self._root / "CMakePresets.json").read_text(encoding="utf-8"))
        preset = next(p for p in presets["configurePresets"] if p["name"] == PRESET)
        command = ["cmake", "--preset", PRESET, "-G", "Ninja", "-B", str(self.build)]
        asks = f"-include {self.folder / 'tests/mutants_code/fletching_mutant.h'}"
        for language in ("C", "CXX"):
            flags = preset["cacheVariables"][f"CMAKE_{language}_FLAGS"]
            # Warnings, such as about a condition that is never true, must not stop the build.
            command.append(f"-DCMAKE_{language}_FLAGS={flags} {asks} -w")
            command.append(f"-DCMAKE_{language}_FLAGS_DEBUG=-g0")
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        if done.returncode != 0:
            raise CannotRunError(f"the tests could not be configured; {log} says why")

    def blamed(self, output: str) -> Iterator[Mutant]:
        """The innermost mutant at each error's location, or all of its line."""
        for error in _ERROR.finditer(output):
            path = (self.build / error["file"]).resolve()
            if not path.is_relative_to(self.folder.resolve()):
                continue
            name = path.relative_to(self.folder.resolve()).as_posix()
            placed = self._placed.get(name, [])
            lines = path.read_bytes().splitlines(keepends=True) if placed else []
            if not lines:
                continue
            line = int(error["line"])
            start = sum(map(len, lines[: line - 1]))
            offset = start + int(error["column"]) - 1
            around = [p for p in placed if p.begin <= offset < p.end]
            if around:
                yield min(around, key=lambda p: p.end - p.begin).mutant
            else:
                end = start + len(lines[line - 1])
                yield from (p.mutant for p in placed if p.begin < end and p.end > start)

    def environment(self) -> dict[str, str]:
        """The environment of the tests, including the Python tests."""
        presets = json.loads((self._root / "CMakePresets.json").read_text(encoding="utf-8"))
        preset = next(p for p in presets["testPresets"] if p["name"] == PRESET)
        given = {
            name: value.replace("${sourceDir}", str(self.folder))
            for name, value in preset["environment"].items()
        }
        paths = f"{self.folder / 'generator'}:{self.folder / 'tests/mutants_code'}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FLETCHING_MUTANT")}
        return {**kept, **given, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


def numbered(mutants: Sequence[Mutant]) -> dict[int, Mutant]:
    return dict(enumerate(mutants))


def _link(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(target)


def _write(path: Path, text: bytes, mode: int) -> None:
    """Does not touch an unchanged file, which would be rebuilt."""
    if path.is_file() and path.read_bytes() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    path.chmod(mode)


def _remove_all_but(folder: Path, names: set[str]) -> None:
    for place, folders, files in os.walk(folder):
        inner = Path(place)
        if inner == folder:
            folders[:] = [name for name in folders if name not in ("build", ".venv", ".git")]
        for name in files:
            if (inner / name).relative_to(folder).as_posix() not in names:
                (inner / name).unlink()
