"""Repeated imports of the package, and imports in another interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import fletching

PACKAGE = Path(fletching.__file__).resolve().parents[1]
SOURCES = Path(__file__).resolve().parents[1]


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_second_import_has_same_types() -> None:
    printed = run(
        """
        import sys
        from unittest import mock

        with mock.patch.dict(sys.modules):
            import fletching as first
            array = first.from_buffer(b"abc")
        assert "fletching" not in sys.modules
        import fletching as second
        assert first is not second
        for name in ("Array", "DeviceArray", "Error", "OnCapture", "Schema", "from_arrow"):
            assert getattr(first, name) is getattr(second, name), name
        stream = second.ArrayStream.from_batches(array.schema, [array])
        del first, second, sys.modules["fletching"], sys.modules["fletching._core"]
        import fletching
        print(next(stream), isinstance(array, fletching.Array))
        try:
            array.column(3)
        except fletching.Error as error:
            print(error.errno)
        """
    )
    assert printed == "<fletching.Array uint8, length 3> True\n22\n"


def test_import_after_interpreter_end_raises() -> None:
    printed = run(
        """
        import atexit
        import sys

        @atexit.register  # before the functions of the package, so that it is called after them
        def late():
            del sys.modules["fletching"], sys.modules["fletching._core"]
            try:
                from fletching import Array
            except ImportError as error:
                print(error)

        from fletching import Array
        """
    )
    assert printed == "fletching: the Python interpreter has ended\n"


def test_import_in_second_interpreter_raises_and_keeps_first() -> None:
    printed = run(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import fletching
        array = fletching.from_buffer(b"abc")
        second = interpreters.create()
        code = "try: import fletching._core\\nexcept ImportError as e: print(e, flush=True)"
        interpreters.run_string(second, code)
        interpreters.destroy(second)
        print(fletching.DeviceArray.from_arrow(array).schema, fletching.from_buffer(b"d"))
        """
    )
    refused, used = printed.splitlines()
    assert refused in {
        "fletching: expected the main interpreter, got a second one",
        "module fletching._core does not support loading in subinterpreters",  # from Python 3.13 on
    }
    assert used == ("<fletching.Schema uint8, not nullable> <fletching.Array uint8, length 1>")


def test_extension_does_not_declare_free_threading() -> None:
    """The extension's state is not safe without the GIL. No free-threaded Python is available for
    more.
    """
    for file in (SOURCES / "CMakeLists.txt", *(SOURCES / "core").glob("*.?pp")):
        assert not re.search(r"(?m)^[^#/]*(FREE_THREADED|Py_mod_gil)", file.read_text()), file
