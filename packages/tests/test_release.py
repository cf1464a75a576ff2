"""Tests of release.py in a small repository: changes, refusals, and errors that write nothing."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import release
import versions

ROOT = Path(__file__).resolve().parents[2]
TODAY = datetime.date(2031, 2, 3)
LOG = """# Changelog

## [Unreleased]

### Added

- A thing.

[Unreleased]: https://github.com/fletching/fletching/commits/main
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of PLACES, a generated file and a change log."""
    root = tmp_path_factory.mktemp("template")
    files = versions.tracked(ROOT)
    for name in versions.set_version(files, "1.8.7"):
        put(root, name, files[name])
    for folder in release.GO_MODULES:
        put(root, f"{folder}/go.mod", files[f"{folder}/go.mod"])
    put(root, versions.CHANGELOG, LOG)
    put(root, "version.h", f"{versions.project_version(files)}\n")
    put(root, ".gitattributes", "/version.h linguist-generated\n")
    git(root, "init", "-q")
    commit(root)
    return root


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "repository", symlinks=True)


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def git(root: Path, *arguments: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b"]
    command = ["git", *names, *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


def generate(root: Path) -> None:
    spec = (root / versions.SPEC).read_text()
    put(root, "version.h", f"{versions.project_version({versions.SPEC: spec})}\n")


def run(root: Path, version: str) -> list[str]:
    return release.release(root, version, TODAY, generate)


def test_release_sets_version_everywhere(repository: Path) -> None:
    changed = run(repository, "1.8.7")
    assert git(repository, "diff", "--name-only").split() == changed
    assert {"version.h", "CHANGELOG.md", "CITATION.cff", "bindings/rust/Cargo.lock"} <= {*changed}
    assert (repository / "version.h").read_text() == "1.8.7\n"
    assert (
        "\nversion: 1.8.7\ndate-released: 2031-02-03\n" in (repository / "CITATION.cff").read_text()
    )
    assert versions.disagreements(versions.tracked(repository)) == []


def test_release_rolls_change_log(repository: Path) -> None:
    run(repository, "1.8.7")
    text = (repository / versions.CHANGELOG).read_text()
    assert text == LOG.replace(
        "## [Unreleased]\n", "## [Unreleased]\n\n## [1.8.7] - 2031-02-03\n"
    ).replace("commits/main\n", "compare/v1.8.7...HEAD\n") + (
        "[1.8.7]: https://github.com/fletching/fletching/releases/tag/v1.8.7\n"
    )
    again = text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Another.\n")
    put(repository, versions.CHANGELOG, again)
    commit(repository)
    run(repository, "1.9.0")
    text = (repository / versions.CHANGELOG).read_text()
    assert re.findall(r"^## .*", text, re.MULTILINE) == [
        "## [Unreleased]",
        "## [1.9.0] - 2031-02-03",
        "## [1.8.7] - 2031-02-03",
    ]
    assert text.endswith(
        "[Unreleased]: https://github.com/fletching/fletching/compare/v1.9.0...HEAD\n"
        "[1.9.0]: https://github.com/fletching/fletching/compare/v1.8.7...v1.9.0\n"
        "[1.8.7]: https://github.com/fletching/fletching/releases/tag/v1.8.7\n"
    )
    assert text.index("- Another.") < text.index("## [1.8.7]")
    assert (repository / "CITATION.cff").read_text().count("date-released: ") == 1


def test_notes_are_section_of_present_version(repository: Path) -> None:
    with pytest.raises(release.RefusedError, match="no section of version"):
        release.notes(versions.tracked(repository))
    run(repository, "1.8.7")
    text = (repository / versions.CHANGELOG).read_text()
    put(repository, versions.CHANGELOG, text.replace("\n[U", "\n## [1.8.6] - 2030-01-01\n\n[U", 1))
    assert release.notes(versions.tracked(repository)) == "### Added\n\n- A thing.\n"


def test_release_accepts_present_version_once(repository: Path) -> None:
    present = versions.project_version(versions.tracked(repository))
    assert run(repository, present) == ["CHANGELOG.md", "CITATION.cff"]
    text = (repository / versions.CHANGELOG).read_text()
    put(repository, versions.CHANGELOG, text.replace("ed]\n", "ed]\n\n- Another.\n", 1))
    commit(repository)
    refuses(repository, present, f"expected one later than the released version {present}")


def refuses(root: Path, version: str, text: str) -> None:
    before = git(root, "status", "--porcelain")
    with pytest.raises(release.RefusedError, match=re.escape(text)):
        run(root, version)
    assert git(root, "status", "--porcelain") == before


@pytest.mark.parametrize(
    "version",
    [
        "1.2",
        "v1.2.3",
        "1.2.3-rc.1",
        "1.02.3",
        "1.2.3.4",
        "",
        "1.2.3\n",
        "1.0.10000",
        "9" * 12 + ".0.0",
    ],
)
def test_release_rejects_malformed_version(repository: Path, version: str) -> None:
    refuses(repository, version, "version: expected MAJOR.MINOR.PATCH")


def test_release_rejects_major_version_without_go_path(repository: Path) -> None:
    name = "bindings/go/arrowgo/go.mod"
    for module in ("bindings/go/go.mod", name):
        refuses(repository, "2.0.0", f"{module}: module path: expected one that ends with ")
        text = (repository / module).read_text()
        put(repository, module, re.sub(r"^(module .*)", r"\1/v2", text, flags=re.MULTILINE))
        commit(repository)
    assert name in run(repository, "2.0.0")
    commit(repository)
    refuses(repository, "3.0.0", "'bindings/go/v3' for version 3.0.0, got github.com")


def test_release_rejects_go_path_of_other_major_version(repository: Path) -> None:
    text = (
        (repository / "bindings/go/go.mod").read_text().replace("bindings/go\n", "bindings/go/v2\n")
    )
    put(repository, "bindings/go/go.mod", text)
    commit(repository)
    refuses(repository, "1.8.7", "'bindings/go' for version 1.8.7, got github.com")


def test_release_rejects_earlier_version(repository: Path) -> None:
    refuses(repository, "0.0.9", "expected one later than the present version")


def test_release_rejects_dirty_tree(repository: Path) -> None:
    put(repository, "new.txt", "")
    refuses(repository, "1.8.7", "uncommitted changes: expected a clean tree, got '?? new.txt'")


@pytest.mark.parametrize("tag", ["v1.8.7", "bindings/go/v1.8.7", "bindings/go/arrowgo/v1.8.7"])
def test_release_rejects_version_with_tag(repository: Path, tag: str) -> None:
    git(repository, "tag", tag)
    refuses(repository, "1.8.7", f"version: expected one without a tag, got {tag}")


def test_release_rejects_empty_change_log(repository: Path) -> None:
    put(repository, versions.CHANGELOG, LOG.replace("- A thing.\n", ""))
    commit(repository)
    refuses(repository, "1.8.7", "Unreleased: expected at least one entry")


def test_release_rejects_change_log_without_section(repository: Path) -> None:
    put(repository, versions.CHANGELOG, "# Changelog\n")
    commit(repository)
    refuses(repository, "1.8.7", "expected '## [Unreleased]'")


def test_release_rejects_version_outside_of_places(repository: Path) -> None:
    put(repository, "notes.md", "since 1.8.7\n")
    commit(repository)
    refuses(repository, "1.8.7", "notes.md:1: version of Fletching outside of PLACES")


def test_release_writes_nothing_if_generator_fails(repository: Path) -> None:
    def fail(root: Path) -> None:
        put(root, "version.h", "half")
        raise subprocess.CalledProcessError(2, "fletching")

    with pytest.raises(subprocess.CalledProcessError):
        release.release(repository, "1.8.7", TODAY, fail)
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("writes", [0, 1, 5])
def test_release_writes_nothing_if_disk_is_full(
    repository: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    count = 0
    write_bytes = Path.write_bytes

    def limited(path: Path, content: bytes) -> int:
        nonlocal count
        if path.is_relative_to(repository):
            count += 1
            if count > writes:
                write_bytes(path, content[:1])
                raise OSError(28, "No space left on device")
        return write_bytes(path, content)

    monkeypatch.setattr(Path, "write_bytes", limited)
    with pytest.raises(OSError, match="No space left"):
        run(repository, "1.8.7")
    assert git(repository, "status", "--porcelain") == ""


def test_release_keeps_file_mode(repository: Path) -> None:
    script = repository / "run"
    put(repository, "run", f"load {'libfletching'}.so.0.1\n")
    script.chmod(0o755)
    commit(repository)
    assert "run" in run(repository, "1.8.7")
    assert script.stat().st_mode & 0o777 == 0o755


def test_generator_of_copy_writes_version(tmp_path: Path) -> None:
    """The real generator, in a copy of the repository."""
    listed = "git ls-files -z | tar --null --ignore-failed-read -cT - | tar -xC"
    subprocess.run(
        f"{listed} '{tmp_path}'", cwd=ROOT, shell=True, check=True, stderr=subprocess.DEVNULL
    )
    files = versions.set_version(versions.tracked(ROOT), "1.8.7")
    release.write(tmp_path, {name: text.encode() for name, text in files.items()})
    release.generate(tmp_path)
    header = (tmp_path / "cpp/include/fletching/version.h").read_text()
    assert '#define FLETCHING_VERSION "1.8.7"\n' in header
    present = re.escape(versions.project_version(versions.tracked(ROOT))).replace(r"\.", "[._]")
    for name in git(ROOT, "ls-files", "--", ":(attr:linguist-generated)").split():
        assert not re.search(rf"(?<![\d.]){present}(?![\d.])", (tmp_path / name).read_text()), name
