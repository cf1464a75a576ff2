"""Tests of the release workflow, which nothing here can run."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_pattern_of_debian_library_matches_only_its_package() -> None:
    table = (ROOT / "cpp" / "README.md").read_text(encoding="utf-8")
    packages = {*re.findall(r"libfletching[-\w.]*\.deb", table)}
    (pattern,) = re.findall(r"deb/(libfletching\S*\.deb)", WORKFLOW)
    (found,) = fnmatch.filter(packages, pattern)
    assert not found.startswith("libfletching-dev")
