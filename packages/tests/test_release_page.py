"""Tests release-page with a fake gh, whose pages are folders."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from manifest import write_manifest

ROOT = Path(__file__).resolve().parents[2]
TAG = "v1.10.0"
# Keeps the pages in $PAGES/draft/TAG and $PAGES/published/TAG, and the calls in $PAGES/log.
GH = r"""#!/usr/bin/env bash
set -euo pipefail
echo "$*" >>"$PAGES/log"
[ "${GH_FAILS:-}" != "$2" ] || { echo "gh: HTTP 502" >&2; exit 1; }
tag=$3
page=$(find "$PAGES" -mindepth 2 -maxdepth 2 -name "$tag")
case "$2 $*" in
  list*--exclude-drafts*) ls "$PAGES/published" ;;
  list*)
    wanted=$(sed -n 's/.*tagName == "\([^"]*\)".*/\1/p' <<<"$*")
    for kind in draft published; do [ ! -d "$PAGES/$kind/$wanted" ] || echo "$kind"; done ;;
  create*--draft*--verify-tag*) mkdir "$PAGES/draft/$tag" ;;
  upload*--clobber*) cp "${@:5}" "$page" ;;
  download*--dir*) cp "$page"/* "$5" ;;
  download*--pattern*--output*) cp "$page"/$5 "$7" ;;
  edit*--draft=false) [[ $page == */published/* ]] || mv "$page" "$PAGES/published" ;;
  *) exit 2 ;;
esac
"""


class Page:
    def __init__(self, folder: Path) -> None:
        self.pages, self.packages = folder / "pages", folder / "packages"
        for kind in ("draft", "published"):
            (self.pages / kind).mkdir(parents=True)
        gh = folder / "bin" / "gh"
        gh.parent.mkdir()
        gh.write_text(GH, encoding="utf-8")
        gh.chmod(0o755)
        self.environment = {"PATH": f"{gh.parent}:{os.environ['PATH']}", "PAGES": str(self.pages)}
        self.build("first")

    def build(self, text: str) -> None:
        """Makes packages that contain the text."""
        for name in ("cpp/a.deb", "cpp/b.tar.gz", "python/b.tar.gz"):
            path = self.packages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} {text}", encoding="utf-8")
        write_manifest(self.packages, "1.10.0", 0)

    def run(
        self, command: str, *arguments: str, tag: str = TAG, fails: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "packages" / "release-page", command, tag, *arguments],
            check=False,
            env={**os.environ, **self.environment, "GH_FAILS": fails},
            text=True,
            capture_output=True,
        )

    def draft(self, fails: str = "") -> subprocess.CompletedProcess[str]:
        return self.run("draft", str(self.packages), "notes.md", fails=fails)

    def publish(self) -> subprocess.CompletedProcess[str]:
        return self.run("publish", str(self.packages))

    def content(self) -> dict[str, bytes]:
        (page,) = self.pages.glob(f"*/{TAG}")
        return {path.name: path.read_bytes() for path in page.iterdir()}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path)


def test_draft_has_files_with_their_checksums(page: Page) -> None:
    assert page.draft().returncode == 0
    folder = page.pages / "draft" / TAG
    archive = "fletching-packages-1.10.0.tar"
    names = {"SHA256SUMS", "a.deb", "b.tar.gz", "manifest.json", archive}
    assert {*page.content()} == names
    assert page.content()["b.tar.gz"] == b"cpp/b.tar.gz first"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    listed = (folder / "SHA256SUMS").read_text(encoding="utf-8").split()[1::2]
    assert {*listed} == names - {"SHA256SUMS"}
    with tarfile.open(folder / archive) as packed:
        assert "./python/b.tar.gz" in packed.getnames()


def test_draft_is_replaced_by_second_build(page: Page) -> None:
    page.draft()
    page.build("second")
    assert page.draft().returncode == 0
    assert page.content()["a.deb"] == b"cpp/a.deb second"
    assert (page.pages / "log").read_text(encoding="utf-8").count("create") == 1


def test_published_page_is_not_replaced(page: Page) -> None:
    page.draft()
    assert page.publish().returncode == 0
    assert page.draft().returncode == 0  # the same files
    before = page.content()
    page.build("second")
    done = page.draft()
    assert done.returncode == 1
    assert "a.deb" in done.stdout
    assert f"release-page: {TAG}: the page has other files: expected those of " in done.stderr
    assert "hint: published files are not replaced" in done.stderr
    assert page.content() == before


def test_publish_accepts_published_page(page: Page) -> None:
    page.draft()
    assert [page.publish().returncode for _ in range(2)] == [0, 0]
    assert (page.pages / "published" / TAG).is_dir()


@pytest.mark.parametrize("change", ["missing", "other"])
def test_publish_rejects_incomplete_draft(page: Page, change: str) -> None:
    page.draft()
    file = page.pages / "draft" / TAG / "a.deb"
    file.unlink() if change == "missing" else file.write_text("half", encoding="utf-8")
    done = page.publish()
    assert done.returncode == 1 and "the page has other files" in done.stderr
    assert not (page.pages / "published" / TAG).exists()


def test_publish_without_draft_fails(page: Page) -> None:
    assert "no page: expected a draft" in page.publish().stderr


def test_draft_of_damaged_packages_fails(page: Page) -> None:
    (page.packages / "python" / "b.tar.gz").write_text("damaged", encoding="utf-8")
    done = page.draft()
    assert done.returncode == 1 and "not the files of its SHA256SUMS" in done.stderr


def test_draft_after_failed_query_creates_nothing(page: Page) -> None:
    assert page.draft(fails="list").returncode != 0
    assert "create" not in (page.pages / "log").read_text(encoding="utf-8")


def test_baseline_is_highest_earlier_release(page: Page, tmp_path: Path) -> None:
    page.draft()
    page.publish()
    for tag in ("v1.2.0", "v1.9.3", "v1.11.0", "v2.0.0"):
        (page.pages / "published" / TAG).rename(page.pages / "published" / tag)
        page.draft()
        page.publish()
        name = page.pages / "published" / tag / "fletching-packages-1.10.0.tar"
        name.rename(name.with_name(f"fletching-packages-{tag[1:]}.tar"))
    (page.pages / "published" / TAG).rename(page.pages / "draft" / TAG)
    assert page.run("baseline", str(tmp_path / "old")).returncode == 0
    assert (tmp_path / "old" / "manifest.json").is_file()
    downloads = [
        line
        for line in (page.pages / "log").read_text(encoding="utf-8").splitlines()
        if "download" in line and "--pattern" in line
    ]
    assert [line.split()[2] for line in downloads] == ["v1.9.3"]


def test_baseline_of_first_release_is_none(page: Page, tmp_path: Path) -> None:
    done = page.run("baseline", str(tmp_path / "old"))
    assert done.returncode == 0 and "no release before v1.10.0" in done.stdout
    assert not (tmp_path / "old").exists()
