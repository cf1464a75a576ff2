"""The programs in examples/: each runs, is short, and needs only fletching."""

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


def run(name: str) -> str:
    standin = str(libraries.library_path("standin/libcuda.so.1").parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", f"{name}.py"],
        cwd=EXAMPLES,
        env={**os.environ, "LD_LIBRARY_PATH": standin, "PYTHONPATH": str(PACKAGE)},
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


@pytest.mark.parametrize("name", [each for each in NAMES if each != NOTEBOOK])
def test_example_is_short_and_imports_known_modules(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    known = {"fletching", *NAMES, *sys.stdlib_module_names}
    for node in ast.walk(ast.parse(text)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        assert {module.partition(".")[0] for module in modules} <= known
