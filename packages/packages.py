"""Builds the packages of a release, and uses them as a project outside the repository does.

    packages.py build [HOME...]   builds into build/packages, with checksums, SBOM and manifest
    packages.py test [HOME...]    uses them in fresh projects with empty caches
    packages.py quick HOME...     builds and uses what takes seconds, in build/packages-quick
    packages.py compare           builds again from a clone, on another day, and compares the bytes

HOME is a folder with the scripts build-package and test-package, such as bindings/rust. They run
there with OUT or PACKAGES (the artifacts of this home), VERSION, SOURCE_DATE_EPOCH (the time of the
last commit) and, for `quick`, QUICK=1.
Exit codes: 0 success, 1 a package is wrong or differs, 2 could not run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from homes import ROOT, PackageError, epoch, git, homes, run, version
from manifest import differences, write_manifest
from sbom import write_sbom

OUT = ROOT / "build" / "packages"
QUICK = ROOT / "build" / "packages-quick"


def main(arguments: Sequence[str]) -> int:
    try:
        match arguments:
            case ["build", *names]:
                build(ROOT, OUT, names)
            case ["test", *names]:
                for home in homes(names):
                    use(home, OUT, {})
            case ["quick", name, *names]:
                for home in homes([name, *names]):
                    make(home, QUICK, {"QUICK": "1"})
                    use(home, QUICK, {"QUICK": "1"})
            case ["compare"]:
                return compare()
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except PackageError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    return 0


def build(root: Path, out: Path, names: Sequence[str] = ()) -> None:
    """Builds the packages of the repository in `root` into `out`.

    Refuses a tree with uncommitted files, because most packages contain whole folders.
    """
    dirty = git("status", "--porcelain", root=root)
    if dirty:
        raise PackageError(
            f"build: uncommitted files: expected a clean tree, got {dirty.splitlines()[0]!r}; "
            "hint: commit or remove them, or use `packages.py quick`"
        )
    for home in homes(names, root):
        make(home, out, {}, root)
    bill = write_sbom(out, version(root), epoch(root))
    tools = ROOT / "build" / "packages-tools" / "bin" / "python"
    subprocess.run([tools, root / "packages" / "validate_sbom.py", bill], check=True)
    write_manifest(out, version(root), epoch(root))


def make(home: str, out: Path, more: Mapping[str, str], root: Path = ROOT) -> None:
    """Builds the packages of one home. A failed build leaves the old packages as they are."""
    target = out / Path(home).name
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".new-") as new:
        run("build-package", home, {"OUT": new, **more}, root)
        if not any(Path(new).iterdir()):
            raise PackageError(f"{home}/build-package: wrote no file: expected packages in $OUT")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(new, target)
        target.chmod(0o755)


def use(home: str, packages: Path, more: Mapping[str, str]) -> None:
    """Uses the packages of one home outside the repository."""
    found = packages / Path(home).name
    if not found.is_dir():
        raise PackageError(f"{found}: not found: run `make packages` first")
    run("test-package", home, {"PACKAGES": str(found), **more})


def compare() -> int:
    """Builds from a clone in another folder three days later, and lists the files that differ."""
    if not OUT.is_dir():
        raise PackageError(f"{OUT}: not found: run `make packages` first")
    with tempfile.TemporaryDirectory(prefix="fletching-again-") as folder:
        copy = clone(Path(folder, "another", "clone"))
        again = [sys.executable, str(copy / "packages" / "packages.py"), "build"]
        code = subprocess.run(["faketime", "+3 days", *again], check=False).returncode
        if code:
            raise PackageError(f"compare: the second build failed with exit code {code}")
        wrong = list(differences(OUT, copy / "build" / "packages"))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"packages: {len(wrong)} files differ" if wrong else "packages: identical bytes")
    return 1 if wrong else 0


def clone(folder: Path) -> Path:
    """Clones the last commit into `folder`, with the tools of this repository."""
    if git("status", "--porcelain", "--untracked-files=no"):
        raise PackageError("clone: uncommitted changes: expected a clean tree, as for a release")
    git("clone", "--quiet", str(ROOT), str(folder))
    (folder / "build").mkdir()
    for tools in (".venv", "build/packages-tools"):
        (folder / tools).symlink_to(ROOT / tools)
    return folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
