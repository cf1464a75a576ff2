"""Runs the conformance suite with the package as its subject, in this process.

    subject.py [--case CASE] GROUP...

Runs the groups of the conformance suite, which writes the cells of the round trip to
$FLETCHING_CELLS (tests/roundtrip/README.md). --case: a name, or a prefix followed by a star.
Exits with 0 on success, 1 on a failure or if a library cannot be loaded.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from subjects import SUBJECTS, play


def load(column: str) -> int:
    """For tests/roundtrip/transits.py. There is only one `column`."""
    return ctypes.addressof(SUBJECTS[0].table)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plays groups of the conformance suite.")
    parser.add_argument("--case", help="a name, or the beginning of some and a star")
    parser.add_argument("group", nargs="+")
    options = parser.parse_args()
    wrong = 0
    for group in options.group:
        results = play(SUBJECTS[0], group, options.case)
        for verdict, text in results:
            if verdict == "wrong":
                print(text, file=sys.stderr)
                wrong += 1
        counts = Counter(verdict for verdict, _ in results)
        print(f"{group}: {', '.join(f'{n} {verdict}' for verdict, n in sorted(counts.items()))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
