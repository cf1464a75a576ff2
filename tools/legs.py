"""What is tested, leg by leg: plain data for suite.py. Commands run in bash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    title: str  # "unit tests"
    command: str  # "cargo test"
    folder: str = "."  # where it runs
    environment: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False  # without it the rest of the leg makes no sense
    only_all: bool = False  # too long for `make test`


PYTHON = ".venv/bin/python"

LEGS: dict[str, tuple[Step, ...]] = {
    "spec": (
        Step("spec is sound", ".venv/bin/fletching check-spec"),
        Step("generated files agree", ".venv/bin/fletching generate --check"),
        Step("generator's tests", ".venv/bin/pytest -q generator/tests"),
        Step(
            "ruff",
            ".venv/bin/ruff check generator tools && .venv/bin/ruff format --check generator tools",
        ),
        Step(
            "mypy",
            "../.venv/bin/mypy fletching_generator ../tools/suite.py",
            folder="generator",
        ),
    ),
}
