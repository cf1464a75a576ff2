"""Information about the homes of the languages for Makefile and bash.

    homes.py names                 the homes, in the order of their builds
    homes.py packages              Debian packages that the homes need: PACKAGE:PROOF
    homes.py missing               one line for each missing toolchain
    homes.py format                runs the formatters of the installed toolchains
    homes.py setup-targets         installs the languages' dependencies of `make targets`
    homes.py lacks [LANGUAGE...]   the parts that each language lacks, and why

Exit code 2: a language.toml is wrong.
"""

from __future__ import annotations

import subprocess
import sys

from lacking import problems
from languages import LanguageError, load, run, succeeds


def main(arguments: list[str]) -> int:
    known = load()
    match arguments:
        case ["names"]:
            print(*known)
        case ["packages"]:
            print(*(package for each in known.values() for package in each.toolchain.packages))
        case ["missing"]:
            for each in known.values():
                if not succeeds(each, each.toolchain.check):
                    print(f"{each.title} will be reported as absent: {each.toolchain.hint}")
        case ["format" | "setup-targets" as what]:
            for each in known.values():
                command = each.format if what == "format" else each.setup
                if command and succeeds(each, each.toolchain.check):
                    run(each, command)
        case ["lacks", *names]:
            for name in names or known:
                for part, reason in known[name].lacks.items():
                    print(f"{name}: {part}: {reason}")
            print(*(line for name in names or known for line in problems(known[name])), sep="\n")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (LanguageError, subprocess.CalledProcessError) as error:
        print(f"homes: {error}", file=sys.stderr)
        sys.exit(2)
