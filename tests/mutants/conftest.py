"""The option that `make test-all` passes."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-mutant", action="store_true", help="not only a sample of the mutants")
