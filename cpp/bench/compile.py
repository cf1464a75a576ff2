"""Prints the cost of compiling headers: `compile.py HEADER...` prints instructions as JSON.

The headers are compiled together, without code (-fsyntax-only), under valgrind's cachegrind, twice
as fast as callgrind: the count does not depend on the load of the machine. Ratios of seconds differ
from these by less than a tenth.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
UPSTREAM = ROOT / ".venv" / "upstream"
NANOARROW = UPSTREAM / "nanoarrow" / "subprojects" / "arrow-nanoarrow" / "src"
CONFIG = {"MAJOR": "0", "MINOR": "9", "PATCH": "0"}


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: compile.py HEADER..., as in an #include", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        folders = [ROOT / "cpp" / "include", UPSTREAM, NANOARROW, _configured(scratch)]
        print(json.dumps({"compile": _count(sys.argv[1:], folders, scratch)}))
    return 0


def _configured(scratch: Path) -> Path:
    """Returns a folder with the header that nanoarrow's own build would write."""
    text = (NANOARROW / "nanoarrow" / "nanoarrow_config.h.in").read_text(encoding="utf-8")
    for part, number in CONFIG.items():
        text = text.replace(f"@NANOARROW_VERSION_{part}@", number)
    text = text.replace("@NANOARROW_VERSION@", ".".join(CONFIG.values()))
    folder = scratch / "config" / "nanoarrow"
    folder.mkdir(parents=True)
    (folder / "nanoarrow_config.h").write_text(
        text.replace("@NANOARROW_NAMESPACE_DEFINE@", ""), encoding="utf-8"
    )
    return folder.parent


def _count(headers: list[str], folders: list[Path], scratch: Path) -> int:
    """Returns the instructions of the compiler proper. Raises ValueError if compilation fails."""
    unit = scratch / "unit.cpp"
    unit.write_text("".join(f"#include <{each}>\n" for each in headers), encoding="utf-8")
    compiler = ["g++", "-std=c++20", "-fsyntax-only", str(unit)]
    compiler += [argument for folder in folders for argument in ("-I", str(folder))]
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes"]
    command += ["--cachegrind-out-file=/dev/null", *compiler]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = [int(each.replace(",", "")) for each in re.findall(r"I +refs: +(\S+)", run.stderr)]
    if run.returncode != 0 or not counts:
        raise ValueError(f"{' '.join(compiler)} failed:\n{run.stderr[-2000:]}")
    return max(counts)  # the driver g++ is a process too


if __name__ == "__main__":
    sys.exit(main())
