"""The README's example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"(?ms)^```python\n(.*?)^```", README.read_text("utf-8"))
    assert len(examples) == 1
    exec(compile(examples[0], str(README), "exec"), {})
    assert capsys.readouterr().out == "cpu\nb'l' 3 1\n"
