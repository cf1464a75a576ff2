"""Builds each language's files for a GPU machine, without those whose toolchain is missing here.

    language_programs.py FOLDER

tests/gpu/build-programs calls it. Exit codes: 0 all were built, 1 a build failed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

from languages import load, run, succeeds


def main(folder: Path) -> int:
    failed = []
    for name, language in load().items():
        if not language.gpu:
            continue
        if not succeeds(language, language.toolchain.check):
            print(f"gpu-programs: {name} is left out: {language.toolchain.hint}")
            continue
        print(f"gpu-programs: {name} ...", flush=True)
        out = shlex.quote(str(folder.resolve()))
        try:
            run(language, f"set -o pipefail; export OUT={out}\n{language.gpu.build}")
        except subprocess.CalledProcessError:
            failed.append(name)
    if failed:
        print(f"gpu-programs: failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
