"""Rehearses two releases with local registries, and uses them as projects of users do.

Releases the present version (the next one, if it is released) from a clone, then a fix as the next
version, and yanks the first: docs/versions.md says how. Builds the quick packages, because the
subject is how versions are resolved. Prints a line for each check.
Exit codes: 0 success, 1 a check failed, or a package does not build.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import packages
import registries
from homes import PackageError, homes, version
from users import MODULES, USERS, go_home, read, run, write
from versions import CHANGELOG

REASON = "It is yanked in a rehearsal."


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="fletching-rehearsal-") as folder:
        try:
            rehearse(Path(folder))
        except PackageError as error:
            print(f"rehearsal: {error}", file=sys.stderr)
            return 1
    return 0


def rehearse(folder: Path) -> None:
    clone, registry = packages.clone(folder / "clone"), folder / "registry"
    registries.create(registry)
    present = version(clone)
    first = after(present) if f"\n## [{present}]" in read(clone / CHANGELOG) else present
    second = after(first)

    release(clone, first, registry, "### Added\n\n- A first version.")
    texts = {"old": first, "minor": first.rpartition(".")[0], "new": first}
    for name in USERS:
        check_new(name, folder / name, texts, registry)

    retract(clone, first)
    release(clone, second, registry, "### Fixed\n\n- A fault.")
    registries.yank(registry, first, REASON)
    texts["new"] = second
    for name, user in USERS.items():
        got = use(name, folder / name, registry)
        check(name, f"a project with {first} locked", first, got)
        check_new(name, folder / f"{name}-new", texts, registry)
        if user.unmet:
            check_refusal(name, folder / f"{name}-unmet", texts, registry)
    check_retraction(folder / "go", first, second, registry)
    check_reuse(clone, second)


def after(number: str) -> str:
    major, minor, patch = number.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def release(clone: Path, number: str, registry: Path, entry: str) -> None:
    """Releases a version with a new entry in the change log, and publishes its packages."""
    heading = "\n## [Unreleased]\n"
    log = read(clone / CHANGELOG).replace(heading, f"{heading}\n{entry}\n", 1)
    write(clone / CHANGELOG, log)
    registries.commit(clone, "Add an entry")
    run(sys.executable, "packages/release.py", number, cwd=clone)
    registries.commit(clone, f"Release {number}")
    check("release", "the version of the clone", number, version(clone))
    out = clone / "build" / "packages-quick"
    for home in homes((), clone):
        if Path(home).name in registries.FOLDERS:
            packages.make(home, out, {"QUICK": "1"}, clone)
    registries.publish(out, registry)


def retract(clone: Path, number: str) -> None:
    """Marks a version as yanked where the next version has to say it: Go and the change log."""
    for folder in ("bindings/go", "bindings/go/arrowgo"):
        path = clone / folder / "go.mod"
        write(path, f"{read(path)}\nretract v{number} // {REASON}\n")
    heading = rf"^## \[{re.escape(number)}\] .*$"
    log = re.sub(heading, rf"\g<0> [YANKED] {REASON}", read(clone / CHANGELOG), flags=re.MULTILINE)
    write(clone / CHANGELOG, log)


def check_new(name: str, project: Path, texts: Mapping[str, str], registry: Path) -> None:
    """Checks that a new project with the recommended requirement gets the new version."""
    requirement = USERS[name].requirement.format_map(texts)
    got = use(name, project, registry, requirement)
    check(name, f"a new project with '{requirement}'", texts["new"], got)


def check_refusal(name: str, project: Path, texts: Mapping[str, str], registry: Path) -> None:
    """Checks that a new project does not get the yanked version."""
    user = USERS[name]
    requirement, refusal = (text.format_map(texts) for text in (user.unmet, user.refusal))
    got = use(name, project, registry, requirement)
    check(name, f"a new project with '{requirement}'", refusal, refusal if refusal in got else got)


def use(name: str, project: Path, registry: Path, requirement: str = "") -> str:
    """The version that a project gets, or the error. With a requirement the project is new."""
    user = USERS[name]
    try:
        if requirement:
            user.create(project, requirement, registry)
        return user.use(project, registry)
    except PackageError as error:
        return str(error)


def check_retraction(project: Path, first: str, second: str, registry: Path) -> None:
    home = go_home(project, registry)
    for module in MODULES:
        text = run("go", "list", "-m", "-u", "-json", module, cwd=project, variables=home)
        told = json.loads(text)
        got = f"{told.get('Retracted')} {told.get('Update', {}).get('Version')}"
        check("go", f"list -m -u {module}", f"{[REASON]} v{second}", got)
        for options, expected in ([], f"v{second}"), (["-retracted"], f"v{first} v{second}"):
            command = ["go", "list", "-m", "-versions", *options, module]
            got = run(*command, cwd=project, variables=home).partition(" ")[2].strip()
            check("go", " ".join(command[1:]), expected, got)


def check_reuse(clone: Path, number: str) -> None:
    text = run(sys.executable, "packages/release.py", number, cwd=clone, may_fail=True)
    expected = f"expected one later than the released version {number}"
    check("release", f"{number} again", expected, expected if expected in text else text)


def check(ecosystem: str, subject: str, expected: str, got: str) -> None:
    if got != expected:
        raise PackageError(f"{ecosystem}: {subject}: expected {expected}, got {got}")
    print(f"rehearsal: {ecosystem}: {subject}: {got}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
