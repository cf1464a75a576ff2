"""A scratch copy of the spec that a test may modify, and the upstream headers."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path

import pyarrow
import pytest

from fletching_generator.async_stream import trace_files
from fletching_generator.errors import SpecError
from fletching_generator.headers.dlpack_version import spec_version
from fletching_generator.render import render_module
from fletching_generator.rules.rulebook import load_rulebook
from fletching_generator.spec.load import load_spec
from fletching_generator.spec.model import Spec

REPOSITORY = Path(__file__).resolve().parents[2]
UPSTREAM = Path(pyarrow.get_include()) / "arrow" / "c"
ABI, PINNED_DLPACK = UPSTREAM / "abi.h", UPSTREAM / "dlpack_abi.h"


class Scratch:
    """A root folder with a copy of spec/ and helpers to modify it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def replace(self, file: str, old: str, new: str) -> int:
        """Replaces the only occurrence of `old`; returns its line."""
        path = self.root / "spec" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} found {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return text[: text.index(old)].count("\n") + 1

    def load(self) -> Spec:
        return load_spec(self.root)

    def mistakes(self) -> list[str]:
        """Returns the mistakes reported by loading all files, one line each."""
        with pytest.raises(SpecError) as caught:
            load_rulebook(self.root, self.load())
        return str(caught.value).splitlines()

    def refuses(self, file: str, old: str, new: str, expected: str) -> None:
        """Replaces `old` and expects an error in this file unless `expected` names another."""
        self.replace(file, old, new)
        text = "\n".join(self.mistakes())
        place = "" if expected.startswith("spec/") else rf"spec/{re.escape(file)}:\d+: .*"
        assert re.search(f"^{place}{expected}", text, re.MULTILINE), text


@cache
def trace_texts() -> dict[str, str]:
    """Returns the files that `fletching traces` writes."""
    return render_module(trace_files, load_spec(REPOSITORY).async_table)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    shutil.copytree(REPOSITORY / "spec", tmp_path / "spec")
    return Scratch(tmp_path)


@pytest.fixture(scope="session")
def spec() -> Spec:
    return load_spec(REPOSITORY)


@pytest.fixture(scope="session")
def dlpack(spec: Spec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a dlpack.h of the spec's version: the pinned header with the newer entries."""
    text = PINNED_DLPACK.read_text(encoding="utf-8")
    for typedef in (t for t in spec.typedefs if t.enumerators):
        end = f"}} {typedef.type.name};"
        assert text.count(end) == 1, end
        missing = [e for e in typedef.enumerators if not re.search(rf"\b{e.name} = ", text)]
        text = text.replace(end, "".join(f"  {e.name} = {e.value},\n" for e in missing) + end)
    _, minor = spec_version(spec)
    text = re.sub(r"(DLPACK_MINOR_VERSION) \d+", rf"\1 {minor}", text)
    path = tmp_path_factory.mktemp("dlpack") / "dlpack.h"
    path.write_text(text, encoding="utf-8")
    return path
