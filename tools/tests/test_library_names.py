"""The names by which libfletching is loaded must contain the version of the project."""

from __future__ import annotations

import re
import subprocess

import yaml

from languages import ROOT

_NAME = r"libfletching\.(so\.[0-9]+\.[0-9]+|[0-9]+\.[0-9]+\.dylib)"


def test_names_of_libfletching_have_the_version() -> None:
    project = yaml.safe_load((ROOT / "spec" / "project.yaml").read_text("utf-8"))
    version = re.escape(".".join(str(project["version"]).split(".")[:2]))
    found = subprocess.run(
        ["git", "grep", "-nEo", _NAME], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line for line in found if not re.search(rf"[a-z]\.{version}(\.dylib)?$", line)] == []
