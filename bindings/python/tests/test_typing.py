"""The package as seen by type checkers, inspect and help."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fletching

FOLDER = Path(__file__).resolve().parents[1]
README = (FOLDER / "README.md").read_text(encoding="utf-8")
FIRST_EXAMPLE = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[0]

MISTAKES = {
    "misspelled name": ("from fletching import from_arow\n", "attr-defined"),
    "subclass": ("from fletching import Array\nclass Own(Array): ...\n", "misc"),
    "no Arrow data": ("import fletching\nfletching.from_arrow([1])\n", "call-overload"),
    "wrong metadata": (
        "from collections.abc import AsyncIterator\n"
        "from fletching import send_async, Schema\n"
        "async def run(schema: Schema, batches: AsyncIterator[object]) -> None:\n"
        "    await send_async(schema, 1, batches, 1, metadata={'a': 1})\n",
        "arg-type|dict-item",
    ),
}
RIGHT = """
from collections.abc import AsyncIterator

from fletching import Array, AsyncHandler, DeviceArray, DeviceType, Schema, from_arrow, send_async

async def send(
    schema: Schema, batches: AsyncIterator[Array], handler: AsyncHandler, words: dict[str, str]
) -> None:
    await send_async(schema, DeviceType.CPU, batches, handler, metadata=words)

def convert(array: Array) -> DeviceArray:
    return from_arrow(array)
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The errors of mypy, which is slow to start."""
    folder = tmp_path_factory.mktemp("typed")
    sources = {"first_example": FIRST_EXAMPLE, "right": RIGHT}
    sources |= {name.replace(" ", "_"): code for name, (code, _) in MISTAKES.items()}
    for name, code in sources.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        # pyarrow has no type hints.
        [sys.executable, "-m", "mypy", "--strict", "--disable-error-code=import-untyped", "."],
        cwd=folder,
        env={"MYPYPATH": str(FOLDER / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("name", MISTAKES)
def test_mypy_reports_mistake(report: str, name: str) -> None:
    assert re.search(
        rf"^{name.replace(' ', '_')}\.py:.*\[({MISTAKES[name][1]})\]$", report, re.MULTILINE
    )


@pytest.mark.parametrize("name", ["first_example", "right"])
def test_mypy_strict_accepts_correct_use(report: str, name: str) -> None:
    assert f"{name}.py" not in report


FUNCTIONS = [
    *(name for name in fletching.__all__ if name.startswith(("from_", "check_", "register_"))),
    "pending_releases",
    "send_async",
]
METHODS = {
    "Array": ["column", "from_arrow", "to_numpy", "__arrow_c_array__", "__dlpack__"],
    "DeviceArray": ["wait_on", "export_with_event", "__arrow_c_device_array__"],
    "DeviceArrayStream": ["from_batches", "close", "__arrow_c_device_stream__"],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_of_function(name: str) -> None:
    assert inspect.signature(getattr(fletching, name)).parameters or name == "pending_releases"


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k, names in METHODS.items() for n in names])
def test_signature_of_method(kind: str, name: str) -> None:
    method = getattr(getattr(fletching, kind), name)
    first = next(iter(inspect.signature(method).parameters))
    assert (first == "self") == (not name.startswith("from_"))


def test_signature_of_bound_method() -> None:
    array = fletching.from_buffer(b"abc")
    assert str(inspect.signature(array.column)) == "(column: 'int | str') -> 'Array'"
    signature = inspect.signature(fletching.from_dlpack)
    assert signature.parameters["as_storage"].default is False
    assert signature.parameters["copy"].kind is inspect.Parameter.KEYWORD_ONLY
