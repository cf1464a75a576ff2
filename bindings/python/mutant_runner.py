"""Runs test files one after the other, each in a fork child, so that pytest, NumPy and pyarrow are
imported only once. The runner never imports the package: each child does, with its mutant.

A line of standard input is a request, {"file", "environment", "seconds"}. A line of output is the
answer, [exit code (null if the child was killed), the end of the output].
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import hypothesis
import nanoarrow.device
import numpy
import pyarrow
import pytest
import tvm_ffi

IMPORTED_ONCE = (hypothesis, nanoarrow.device, numpy, pyarrow, tvm_ffi)
MOST_OUTPUT = 20_000


def main() -> int:
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
    return 0


def run(request: dict[str, Any]) -> tuple[int | None, str]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        output = Path(scratch) / "output"
        child = os.fork()
        if child == 0:
            run_here(request, scratch, output)
        watched = os.pidfd_open(child)
        ended = select.select([watched], [], [], request["seconds"])[0]
        os.close(watched)
        # Also kills the processes that the tests have started.
        os.killpg(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        text = output.read_text(encoding="utf-8", errors="replace")[-MOST_OUTPUT:]
        return os.waitstatus_to_exitcode(status) if ended else None, text


def run_here(request: dict[str, Any], scratch: str, output: Path) -> None:
    code = 1
    try:
        os.setsid()
        for target, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, output, os.O_WRONLY | os.O_CREAT),
        ):
            os.dup2(os.open(path, flags), target)
        os.dup2(1, 2)
        os.environ.update(request["environment"], TMPDIR=scratch)
        tempfile.tempdir = None
        # hypothesis has a plugin that is already imported.
        ignored = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        options = ("-q", "-x", "-p", "no:cacheprovider", "-o", "pythonpath=", *ignored)
        code = int(pytest.main([*options, request["file"]]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
