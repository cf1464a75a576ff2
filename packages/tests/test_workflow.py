"""Tests of the release workflow, which nothing here can run."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from manifest import write_manifest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_pattern_of_debian_library_matches_only_its_package() -> None:
    table = (ROOT / "cpp" / "README.md").read_text(encoding="utf-8")
    packages = {*re.findall(r"libfletching[-\w.]*\.deb", table)}
    (pattern,) = re.findall(r"deb/(libfletching\S*\.deb)", WORKFLOW)
    (found,) = fnmatch.filter(packages, pattern)
    assert not found.startswith("libfletching-dev")


def test_job_that_builds_has_no_identity() -> None:
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    building = [job for job in jobs.values() if "make packages" in str(job["steps"])]
    assert [job.get("permissions", {}) for job in building] == [{"contents": "read"}]


def test_checksums_on_release_page_match_its_files(tmp_path: Path) -> None:
    for name in ("cpp/a.deb", "cpp/b c.tar.gz", "rust/cpp.crate"):
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    write_manifest(tmp_path / "packages", "1.2.3", 0)
    run(step("github", "Checksums of the files on the page"), tmp_path)
    page = tmp_path / "packages" / "cpp"
    (tmp_path / "SHA256SUMS").rename(page / "SHA256SUMS")
    (tmp_path / "packages" / "manifest.json").rename(page / "manifest.json")
    assert run("sha256sum -c SHA256SUMS", page).split("\n")[:-1] == [
        "a.deb: OK",
        "b c.tar.gz: OK",
        "manifest.json: OK",
    ]
    assert " SHA256SUMS packages/*.json packages/cpp/*" in WORKFLOW


def step(job: str, name: str) -> str:
    """Returns the command of a step."""
    steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW)["jobs"][job]["steps"]
    (command,) = [each["run"] for each in steps if each.get("name") == name]
    return str(command)


def run(command: str, folder: Path) -> str:
    words = ["bash", "-eo", "pipefail", "-c", command]
    return subprocess.run(words, cwd=folder, check=True, text=True, stdout=subprocess.PIPE).stdout
