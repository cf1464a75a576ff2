"""The homes of packages, and the scripts in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))

from languages import environment, load  # noqa: E402
from versions import SPEC, project_version  # noqa: E402

TOOLS = "generator"  # the home of fletching-tools, which is no language


class PackageError(Exception):
    """A script of a home failed, or the tree cannot be packaged."""


def homes(names: Sequence[str] = (), root: Path = ROOT) -> list[str]:
    """The folders that make packages: those in `names`, or all."""
    known = [language.folder for language in load(root).values()] + [TOOLS]
    known = [folder for folder in known if (root / folder / "build-package").is_file()]
    for name in names:
        if name not in known:
            raise PackageError(f"no home '{name}': expected some of {', '.join(known)}")
    return list(names) or known


def run(script: str, home: str, more: Mapping[str, str], root: Path = ROOT) -> None:
    """Runs a script of a home. Raises PackageError if it fails."""
    print(f"packages: {home}/{script}", flush=True)
    code = call(script, home, more, root).returncode
    if code:
        raise PackageError(f"{home}/{script}: failed with exit code {code}")


def call(
    script: str, home: str, more: Mapping[str, str], root: Path = ROOT, *, capture: bool = False
) -> subprocess.CompletedProcess[str]:
    variables = {"VERSION": version(root), "SOURCE_DATE_EPOCH": str(epoch(root)), **more}
    language = next((each for each in load(root).values() if each.folder == home), None)
    given = environment(language, root) if language else {"ROOT": str(root)}
    return subprocess.run(
        [root / home / script],
        cwd=root / home,
        env={**os.environ, **given, **variables},
        check=False,
        text=True,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.STDOUT if capture else None,
    )


def version(root: Path = ROOT) -> str:
    """The version in spec/project.yaml."""
    return project_version({SPEC: (root / SPEC).read_text(encoding="utf-8")})


def epoch(root: Path = ROOT) -> int:
    """The time of the last commit in seconds, for the dates in archives."""
    return int(git("log", "-1", "--format=%ct", root=root))


def git(*arguments: str, root: Path = ROOT) -> str:
    """The output of a git command. Raises PackageError if it fails."""
    found = subprocess.run(
        ["git", *arguments], cwd=root, check=False, capture_output=True, text=True
    )
    if found.returncode:
        raise PackageError(f"git {arguments[0]}: {found.stderr.strip()}")
    return found.stdout.strip()
