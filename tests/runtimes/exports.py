"""Checks that a library exports every function of its runtime's table except SYMBOL...

`exports.py RUNTIME LIBRARY [SYMBOL...]`. Exit codes: 0 it does, 1 it does not.
"""

from __future__ import annotations

import sys
from pathlib import Path

# This repository's generator instead of an installed one.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "generator"))

import vendors
from fletching_generator.spec.load import load_spec


def main(name: str, library: str, *left_out: str) -> int:
    runtime = next(each for each in load_spec(vendors.ROOT).runtimes if each.name == name)
    missing = set(vendors.missing_symbols(runtime, library))
    for symbol in sorted(missing ^ set(left_out)):
        what = "does not have" if symbol in missing else "has, and should not,"
        print(f"{library} {what} {symbol}")
    return 1 if missing != set(left_out) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
