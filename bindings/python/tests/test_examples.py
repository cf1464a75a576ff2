"""The programs in examples/: each runs and is short. All but one need only fletching."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fletching
import libraries

PACKAGE = Path(fletching.__file__).resolve().parents[1]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
NOTEBOOK, MOST_LINES = "notebook", 40
CUDF = "pylibcudf_column"  # uses libraries that need a GPU: the tests have a fake of them
FAKES = Path(__file__).resolve().parent / "fakes"


def run(name: str, folder: Path = EXAMPLES) -> str:
    standin = str(libraries.library_path("standin/libcuda.so.1").parent)
    tests = [FAKES, FAKES.parent, EXAMPLES, Path(libraries.__file__).parent]
    path = map(str, [PACKAGE, *(tests if "pylibcudf" in name else [])])
    done = subprocess.run(
        [sys.executable, "-W", "error", folder / f"{name}.py"],
        cwd=EXAMPLES,
        env={**os.environ, "LD_LIBRARY_PATH": standin, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", [each for each in NAMES if each != "cuda"])
def test_example_prints_documented_output(name: str) -> None:
    text = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8")))
    promised = re.search(r"^Prints: (.*)$", text or "", re.MULTILINE)
    assert promised
    assert promised[1] in run(name)


def test_pylibcudf_example_waits_for_producer_and_keeps_arrays() -> None:
    printed = run("gated_pylibcudf", FAKES.parent)
    assert printed == "3 arrays are kept, the values are {7}\n"


@pytest.mark.parametrize("name", [each for each in NAMES if each != NOTEBOOK])
def test_example_is_short_and_imports_known_modules(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    known = {"fletching", *NAMES, *sys.stdlib_module_names}
    if name == CUDF:
        known |= {"pylibcudf", "rmm"}
    for node in ast.walk(ast.parse(text)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        assert {module.partition(".")[0] for module in modules} <= known
