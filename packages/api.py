"""Compares the APIs and ABIs of two releases.

    api.py compatible FOLDER  compares build/packages with an earlier one
    api.py guards [HOME...]   plants a break of each API, which the comparison has to name

A home with an API has the scripts compare-api, which fails for a break, and plant-break, which
makes one and prints its name. They get the packages of the home as OLD and NEW.
Exit codes: 0 success, 1 a break that the new version does not allow, or one that was not found.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from homes import ROOT, PackageError, call, homes
from manifest import MANIFEST
from packages import OUT


def main(arguments: Sequence[str]) -> int:
    try:
        match arguments:
            case ["compatible", folder]:
                return compatible(Path(folder).resolve(), OUT)
            case ["guards", *names]:
                missed = [home for home in with_api(names) if not reports_break(home)]
                return 1 if missed else 0
    except PackageError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 2


def with_api(names: Sequence[str] = ()) -> list[str]:
    return [home for home in homes(names) if (ROOT / home / "compare-api").is_file()]


def compatible(old: Path, new: Path) -> int:
    """Compares the API of each home. Returns 1 for a break that the new version does not allow."""
    before, after = (release_of(folder) for folder in (old, new))
    broken = [home for home in with_api() if breaks(home, old, new)]
    if not broken:
        print(f"packages: {after} is compatible with {before}")
        return 0
    print(f"packages: {after} breaks users of {before}: {', '.join(broken)}")
    allowed = may_break(before, after)
    print(f"packages: {'allowed' if allowed else 'expected a higher version'}: docs/versions.md")
    return 0 if allowed else 1


def release_of(folder: Path) -> str:
    try:
        return str(json.loads((folder / MANIFEST).read_text("utf-8"))["version"])
    except (OSError, ValueError, KeyError) as error:
        raise PackageError(
            f"{folder}: no release: expected a folder of `make packages`, got {error}"
        ) from error


def breaks(home: str, old: Path, new: Path) -> bool:
    given = {"OLD": str(old / Path(home).name), "NEW": str(new / Path(home).name)}
    print(f"packages: {home}/compare-api", flush=True)
    return call("compare-api", home, given).returncode != 0


def may_break(before: str, after: str) -> bool:
    """Whether docs/versions.md allows a break: a new major version, before 1.0 a new minor one."""
    old, new = ([int(part) for part in each.split(".")] for each in (before, after))
    return new[0] > old[0] or (old[0] == 0 and new[1] > old[1])


def reports_break(home: str) -> bool:
    """Whether compare-api accepts unchanged packages, and names a planted break."""
    with tempfile.TemporaryDirectory(prefix="fletching-break-") as folder:
        old, new = OUT / Path(home).name, Path(folder, "new")
        shutil.copytree(old, new)
        given = {"OLD": str(old), "NEW": str(new)}
        same = call("compare-api", home, given, capture=True)
        planted = call("plant-break", home, given, capture=True)
        found = call("compare-api", home, given, capture=True)
    name = planted.stdout.strip()
    right = same.returncode == 0 == planted.returncode and found.returncode and name in found.stdout
    print(f"packages: {home}: {name}: {'reported' if right else 'NOT REPORTED'}", flush=True)
    if not right:
        print(same.stdout, planted.stdout, found.stdout, sep="\n")
    return bool(right)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
