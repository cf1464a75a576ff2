"""Compiles library.c in its variants, and runs `fletching validate` on them."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fletching_generator.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("library.c")
INCLUDES = (f"-I{REPOSITORY}/cpp/include", f"-I{REPOSITORY}/tests/conformance/include")
VARIANTS = ("CORRECT", "BROKEN", "CRASHES", "HANGS", "LEAKS")


@dataclass(frozen=True)
class Run:
    code: int
    output: str
    errors: str

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.output)
        return report

    def rules(self, *severities: str) -> set[str]:
        """Returns the rules of the findings; by default of errors and warnings."""
        wanted = severities or ("error", "warning")
        return {f["rule"] for f in self.report["findings"] if f["severity"] in wanted}


def validate(*arguments: object) -> Run:
    """Calls the command in this process, because reading the rules takes a second."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        contextlib.chdir(REPOSITORY),
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(errors),
    ):
        try:
            code = main(["validate", *map(str, arguments)])
        except SystemExit as wrong_option:
            code = int(wrong_option.code or 0)
        errors.seek(0)
        return Run(code, output.getvalue(), errors.read())


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the path of a variant of the library."""
    folder = tmp_path_factory.mktemp("libraries")

    def compiled(variant: str) -> Path:
        assert variant in VARIANTS
        path = folder / f"lib{variant.lower()}.so"
        if not path.exists():
            options = ["-std=c99", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
            command = ["cc", *options, f"-D{variant}", *INCLUDES, "-o", str(path), str(SOURCE)]
            subprocess.run(command, check=True)
        return path

    return compiled
