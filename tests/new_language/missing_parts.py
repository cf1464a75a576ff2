"""Prints the missing parts of each language with their reasons, and those without a reason.

missing_parts.py [LANGUAGE...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from languages import FILE, Language, load


def main(names: list[str]) -> None:
    known = load()
    for name in names or known:
        for part, reason in known[name].lacks.items():
            print(f"{name}: {part}: {reason}")
    print(*(line for name in names or known for line in problems(known[name])), sep="\n")


def parts(language: Language) -> dict[str, bool]:
    """Whether the language has each part that the tests need. Columns are "java-ffm: cases"."""
    abi = {name for mutants in language.mutants if mutants.kind == "abi" for name in mutants.runs}
    keys = ("format", "suite", "columns", "targets", "gpu", "bench", "mutation", "rules", "blocks")
    found = {key: bool(getattr(language, key)) for key in keys}
    found["gpu"] |= any(column.host for column in language.columns)
    for column in language.columns:
        for key in ("oracle", "cases", "corpus", "subject", "devices", "probe"):
            found[f"{column.name}: {key}"] = bool(getattr(column, key))
        found[f"{column.name}: all directions of devices"] = not column.device_directions
        found[f"{column.name}: mutants"] = column.name in abi
    return found


def problems(language: Language) -> Iterator[str]:
    """Parts that are missing without a reason, and reasons for parts that exist."""
    where = f"{language.folder}/{FILE}"
    found = parts(language)
    for part, present in found.items():
        if not present and part not in language.lacks:
            yield f'{where}: no {part}: add it, or the reason to [lacks] as "{part}"'
    for part in language.lacks:
        if part not in found:
            yield f'{where}: lacks."{part}": expected one of {", ".join(found)}'
        elif found[part]:
            yield f'{where}: lacks."{part}": it is there: remove the reason'


if __name__ == "__main__":
    main(sys.argv[1:])
