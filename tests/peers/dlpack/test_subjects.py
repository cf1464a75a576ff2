"""Passes tensors of NumPy and tvm-ffi through each language and back, in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from passing import columns


@pytest.mark.parametrize("column", columns())
def test_tensors_pass_through(column: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "through_subject.py"],
        cwd=os.path.dirname(__file__),
        env={**os.environ, "FLETCHING_COLUMN": column},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
