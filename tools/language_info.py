"""Information about the languages for Makefile and bash.

    language_info.py packages              Debian packages that the languages need: PACKAGE:PROOF
    language_info.py toolchains            one line for each missing toolchain
    language_info.py format                runs the formatters of the installed toolchains
    language_info.py setup-targets         installs the languages' dependencies of `make targets`

Exit code 2: a language.toml is wrong.
"""

from __future__ import annotations

import subprocess
import sys

from languages import LanguageError, load, run, succeeds


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
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (LanguageError, subprocess.CalledProcessError) as error:
        print(f"language_info: {error}", file=sys.stderr)
        sys.exit(2)
