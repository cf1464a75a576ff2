"""Compiles library.c in its variants, and runs `fletching validate` on them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

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
    command = [sys.executable, "-m", "fletching_generator.cli", "validate", *map(str, arguments)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return Run(done.returncode, done.stdout, done.stderr)


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
