"""Tests of the release workflow, which nothing here can run."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
WORKFLOW = (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(WORKFLOW)["jobs"]
REGISTRIES = ["pypi", "crates", "go", "maven"]  # the one that can be undone least is the last


def test_pattern_of_debian_library_matches_only_its_package() -> None:
    table = (ROOT / "cpp" / "README.md").read_text(encoding="utf-8")
    packages = {*re.findall(r"libfletching[-\w.]*\.deb", table)}
    (pattern,) = re.findall(r"deb/(libfletching\S*\.deb)", WORKFLOW)
    (found,) = fnmatch.filter(packages, pattern)
    assert not found.startswith("libfletching-dev")


def test_job_that_runs_make_has_no_identity() -> None:
    running = [job for job in JOBS.values() if re.search(r"\bmake ", commands(job))]
    assert len(running) == 4
    assert all(job.get("permissions") == {"contents": "read"} for job in running)
    assert not any("environment" in job for job in running)


@pytest.mark.parametrize("target", ["test-packages", "compare-packages", "compatible BASELINE"])
def test_packages_are_checked_before_publication(target: str) -> None:
    (name,) = (name for name, job in JOBS.items() if f"make {target}" in commands(job))
    assert downloads_packages(JOBS[name])
    for job in publishing():
        assert name in earlier(job)


def test_commit_and_platforms_are_checked_before_publication() -> None:
    assert JOBS["platforms"]["uses"] == "./.github/workflows/platforms.yml"
    platforms = yaml.safe_load((WORKFLOWS / "platforms.yml").read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert {"workflow_call", "schedule"} <= {*platforms[True]}
    for target in ("targets", "packages", "platforms PLATFORMS=--complete"):
        assert f"make {target}" in commands(platforms["jobs"]["platforms"])
    for job in publishing():
        assert {"checked", "platforms", "attest"} <= earlier(job)


def test_registries_follow_in_order_and_page_is_last() -> None:
    order = ["draft", *REGISTRIES, "install", "page"]
    assert publishing() == [job for job in order if job != "install"]
    for index, job in enumerate(order):
        assert {*order[:index]} <= earlier(job)
    assert "--draft" in (ROOT / "packages" / "release-page").read_text(encoding="utf-8")
    assert "release-page draft" in commands(JOBS["draft"])
    assert "release-page publish" in commands(JOBS["page"])


def test_no_step_replaces_published_files() -> None:
    assert "--clobber" not in WORKFLOW
    for registry in ("pypi", "crates", "maven"):
        assert f"published.py {registry} build/packages" in commands(JOBS[registry])


def test_pypi_job_accepts_files_of_earlier_attempt() -> None:
    (step,) = (s for s in JOBS["pypi"]["steps"] if "pypi-publish" in s.get("uses", ""))
    assert step["with"] == {"skip-existing": True}


def test_crates_are_compared_and_published_without_build() -> None:
    text = commands(JOBS["crates"])
    compared, published = text.index("bindings/rust/compare-package"), text.index("cargo publish")
    assert compared < published < text.rindex("published.py crates")
    assert re.search(r"cargo publish .*--no-verify", text)
    assert JOBS["crates"]["container"] == JOBS["build"]["container"]
    # The token exists only after the comparison, which runs no build script either.
    steps = JOBS["crates"]["steps"]
    (auth,) = (i for i, step in enumerate(steps) if "auth-action" in step.get("uses", ""))
    assert "compare-package" in steps[auth - 1]["run"]


def test_maven_deployment_is_kept_for_later_attempt() -> None:
    steps = JOBS["maven"]["steps"]
    (kept,) = (step for step in steps if "upload-artifact" in step.get("uses", ""))
    assert kept["with"]["path"] == "deployment.txt"
    assert kept["if"].startswith("always()")
    text = commands(JOBS["maven"])
    name = kept["with"]["name"].replace("${{ needs.build.outputs.version }}", "$VERSION")
    assert f'gh run download --name "{name}"' in text
    assert text.index(name) < text.index("central.py bundle.zip")


@pytest.mark.parametrize(("runs", "expected"), [("2", 0), ("0", 1)])
def test_release_requires_passed_run_of_ci(tmp_path: Path, runs: str, expected: int) -> None:
    done = run_with_gh(f"echo {runs}", tmp_path)
    assert done.returncode == expected
    called = (tmp_path / "called").read_text(encoding="utf-8")
    assert "run list --workflow ci.yml --commit abc --branch main --event push" in called
    assert "--status success" in called
    if expected:
        assert "expected a successful run for abc on main, got none; hint:" in done.stdout


def test_release_without_answer_about_ci_fails(tmp_path: Path) -> None:
    assert run_with_gh("exit 1", tmp_path).returncode != 0


def run_with_gh(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    gh = folder / "gh"
    gh.write_text(f'#!/bin/bash\necho "$*" >{folder}/called\n{command}\n', encoding="utf-8")
    gh.chmod(0o755)
    words = ["bash", "-eo", "pipefail", "-c", step("checked", "ci.yml has passed for this commit")]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "GITHUB_SHA": "abc"}
    return subprocess.run(words, check=False, text=True, stdout=subprocess.PIPE, env=environment)


def publishing() -> list[str]:
    """The jobs that others can see: those with a secret, an identity or a right to write."""
    rights = [
        name
        for name, job in JOBS.items()
        if "environment" in job or job.get("permissions", {}).get("contents") == "write"
    ]
    return sorted(rights, key=lambda name: len(earlier(name)))


def earlier(job: str) -> set[str]:
    """All jobs that must succeed before this one starts."""
    needs = JOBS[job].get("needs", [])
    direct = {needs} if isinstance(needs, str) else {*needs}
    return direct.union(*(earlier(name) for name in direct))


def downloads_packages(job: dict[str, Any]) -> bool:
    used = [step for step in job["steps"] if "download-artifact" in step.get("uses", "")]
    return any("packages" in str(step["with"]) for step in used)


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job.get("steps", []))


def step(job: str, name: str) -> str:
    """Returns the command of a step."""
    (command,) = [each["run"] for each in JOBS[job]["steps"] if each.get("name") == name]
    return str(command)
