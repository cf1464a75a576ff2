"""Measures the cost of compiling a header, compared with other libraries. `make bench-compile`.

Each header is compiled alone, without code (-fsyntax-only), under valgrind's callgrind: the
compiler's instruction count does not depend on the load of the machine. Ratios of seconds differ
from these by less than a tenth. --write-docs writes docs/measured/bench-compile.md.
Exit codes: 0 within the limits, 1 over a limit, 2 could not run.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
UPSTREAM = ROOT / ".venv" / "upstream"
NANOARROW = UPSTREAM / "nanoarrow" / "subprojects" / "arrow-nanoarrow" / "src"
PAGE = ROOT / "docs" / "measured" / "bench-compile.md"
YARDSTICK = "nanoarrow/nanoarrow.hpp"


@dataclass(frozen=True)
class Header:
    name: str  # as written in the #include
    folders: tuple[Path, ...]  # include folders
    at_most: float | None = None  # as a multiple of the yardstick


OURS = (ROOT / "cpp" / "include",)
HEADERS = (
    Header("fletching/result.hpp", OURS),
    Header("fletching/owner.hpp", OURS, 1.3),
    Header("fletching/sync_event.hpp", OURS, 2.0),
    Header("fletching/dlpack.hpp", OURS, 3.0),
    Header("fletching/fletching.hpp", OURS),
)
CONFIG = {"MAJOR": "0", "MINOR": "9", "PATCH": "0"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-docs", action="store_true", help="also docs/measured/")
    options = parser.parse_args()
    for tool in ("valgrind", "g++"):
        if shutil.which(tool) is None:
            print(f"bench-compile: no {tool}; run `make bench-compile`", file=sys.stderr)
            return 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            table, over = _table(_measure(Path(folder)))
    except (OSError, ValueError) as error:
        print(f"bench-compile: {error}", file=sys.stderr)
        return 2
    print(table)
    if options.write_docs:
        _write_docs(table)
    for name in over:
        print(f"bench-compile: {name} is over its limit")
    print(f"bench-compile: {'OVER A LIMIT' if over else 'within all limits'}")
    return 1 if over else 0


def _measure(scratch: Path) -> dict[Header, int]:
    others = (
        Header(YARDSTICK, (NANOARROW, _configured(scratch))),
        Header("arrow/c/bridge.h", (UPSTREAM,)),
    )
    every = [*HEADERS, *others]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(every, pool.map(lambda each: _count(each, scratch), every), strict=True))


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


def _count(header: Header, scratch: Path) -> int:
    """Returns the instructions of the compiler proper. Raises ValueError if compilation fails."""
    unit = scratch / f"{header.name.replace('/', '_')}.cpp"
    unit.write_text(f"#include <{header.name}>\n", encoding="utf-8")
    out = unit.with_suffix(".%p.out")
    compiler = ["g++", "-std=c++20", "-fsyntax-only", str(unit)]
    compiler += [argument for folder in header.folders for argument in ("-I", str(folder))]
    command = ["valgrind", "--tool=callgrind", "--trace-children=yes"]
    command += [f"--callgrind-out-file={out}", *compiler]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = [int(each) for each in re.findall(r"Collected : (\d+)", run.stderr)]
    if run.returncode != 0 or not counts:
        raise ValueError(f"{' '.join(compiler)} failed:\n{run.stderr[-2000:]}")
    return max(counts)  # the driver g++ is a process too


def _table(counts: dict[Header, int]) -> tuple[str, list[str]]:
    yardstick = next(count for header, count in counts.items() if header.name == YARDSTICK)
    lines = ["| header | instructions | / nanoarrow.hpp | limit |", "|---|---|---|---|"]
    over = []
    for header, count in counts.items():
        ratio = count / yardstick
        limit = "" if header.at_most is None else f"{header.at_most}"
        lines.append(f"| `{header.name}` | {count / 1e6:,.0f} million | {ratio:.2f} | {limit} |")
        if header.at_most is not None and ratio > header.at_most:
            over.append(header.name)
    return "\n".join(lines), over


def _write_docs(table: str) -> None:
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    PAGE.write_text(
        "# Compile time\n\n"
        "Instructions of the compiler for a header alone, compared with nanoarrow 0.9.0 and\n"
        "libarrow in the same run. `make bench-compile` measures it again;\n"
        "`.venv/bin/python cpp/bench/compile.py --write-docs` wrote this file.\n\n"
        f"{table}\n\n{today}, {compiler.stdout.splitlines()[0]}.\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    sys.exit(main())
