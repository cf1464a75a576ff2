"""A scratch copy of the spec that a test may spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fletching_generator.errors import SpecError
from fletching_generator.load import load_spec
from fletching_generator.model import Spec

REPOSITORY = Path(__file__).resolve().parents[2]


class Scratch:
    """A root with a copy of spec/, and the means to change one place of it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def replace(self, file: str, old: str, new: str) -> int:
        """Replaces the one place where `old` stands; returns its line."""
        path = self.root / "spec" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return text[: text.index(old)].count("\n") + 1

    def load(self) -> Spec:
        return load_spec(self.root)

    def mistakes(self) -> list[str]:
        """What loading says, a line each."""
        with pytest.raises(SpecError) as caught:
            self.load()
        return str(caught.value).splitlines()


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    shutil.copytree(REPOSITORY / "spec", tmp_path / "spec")
    return Scratch(tmp_path)


@pytest.fixture(scope="session")
def spec() -> Spec:
    return load_spec(REPOSITORY)
