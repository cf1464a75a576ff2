"""Checks the contents of the source distribution and the wheels: `check_files.py FOLDER`."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def files_of_sdist(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as sdist:
        members = [member for member in sdist.getmembers() if member.isfile()]
        read = {member.name: sdist.extractfile(member) for member in members}
        return {name.partition("/")[2]: file.read() for name, file in read.items() if file}


def files_of_wheel(path: Path) -> dict[str, bytes]:
    """Returns the files of a wheel; license files have only their base names."""
    with zipfile.ZipFile(path) as wheel:
        return {name.rpartition("/licenses/")[2]: wheel.read(name) for name in wheel.namelist()}


def problems_of(files: dict[str, bytes], package: str) -> list[str]:
    """Returns the problems; `package` is the folder of the modules."""
    found = []
    for name in ("LICENSE", "NOTICE"):
        if files.get(name) != (ROOT / name).read_bytes():
            found.append(f"{name} differs from the repository's")
    for name in ("llvm.txt", "nanobind.txt", "robin_map.txt"):  # the wheel contains their code
        if not any(path.endswith(name) for path in files):
            found.append(f"licenses/{name} is missing")
    for name in ("__init__.py", "_core.pyi", "abi.py", "py.typed"):
        if f"{package}/{name}" not in files:
            found.append(f"{package}/{name} is missing")
    found += [f"{name}: installs commands" for name in files if name.endswith("entry_points.txt")]
    found += [f"{name}: a test" for name in files if "test" in name]
    return found


def main() -> int:
    folder = Path(sys.argv[1])
    checked = {path: (files_of_sdist(path), "src/fletching") for path in folder.glob("*.tar.gz")}
    checked |= {path: (files_of_wheel(path), "fletching") for path in folder.glob("*.whl")}
    if len(checked) < 2:
        print(f"{folder}: expected a .tar.gz and a .whl, got {len(checked)} files", file=sys.stderr)
        return 1
    lines = [
        f"{path.name}: {problem}"
        for path, (files, package) in checked.items()
        for problem in problems_of(files, package)
    ]
    print("\n".join(lines), file=sys.stderr, end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
