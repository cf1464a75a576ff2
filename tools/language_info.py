"""Information about the languages for Makefile and bash.

    language_info.py packages              Debian packages that the languages need: PACKAGE:PROOF
    language_info.py toolchains            one line for each missing toolchain
    language_info.py format                runs the formatters of the installed toolchains
    language_info.py setup-targets         installs the languages' dependencies of `make targets`
    language_info.py missing [LANGUAGE...] the missing parts of each language, with their reasons

Exit code 2: a language.toml is wrong.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from languages import FILE, Language, LanguageError, load, run, succeeds


def main(arguments: list[str]) -> int:
    known = load()
    match arguments:
        case ["packages"]:
            print(*(package for each in known.values() for package in each.toolchain.packages))
        case ["toolchains"]:
            for each in known.values():
                if not succeeds(each, each.toolchain.check):
                    print(f"{each.title} will be reported as absent: {each.toolchain.hint}")
        case ["format" | "setup-targets" as what]:
            for each in known.values():
                command = each.format if what == "format" else each.setup
                if command and succeeds(each, each.toolchain.check):
                    run(each, command)
        case ["missing", *names]:
            for name in names or known:
                for part, reason in known[name].lacks.items():
                    print(f"{name}: {part}: {reason}")
            print(*(line for name in names or known for line in problems(known[name])), sep="\n")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


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
    try:
        sys.exit(main(sys.argv[1:]))
    except (LanguageError, subprocess.CalledProcessError) as error:
        print(f"language_info: {error}", file=sys.stderr)
        sys.exit(2)
