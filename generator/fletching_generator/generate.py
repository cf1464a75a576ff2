"""Writes every generated file, or compares what is there with what should be."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from .async_stream import diagram, trace_files
from .cuda_array_interface import files as cuda_array_interface
from .docs import async_page, maps, pages, rule_pages
from .files import replace_file
from .languages import LANGUAGES
from .render import BANNER, render_module
from .rules.rulebook import Rulebook
from .runtimes import vendor_checks
from .spec.model import Spec

# Folders that hold nothing but generated files.
_SUBJECTS = (diagram, trace_files, cuda_array_interface, async_page, maps, pages, vendor_checks)
GENERATED_ONLY = ("docs/reference",)
# Folders that hold tools, build results, or the templates with their banners.
_PASSED_OVER = {".git", ".venv", "build", "target", "node_modules", "__pycache__", "templates"}


def render_all(spec: Spec, book: Rulebook | None = None) -> dict[str, str]:
    """The text of every generated file by path: of every language, and of the rules if given."""
    texts: dict[str, str] = {}
    for language in (*LANGUAGES, *_SUBJECTS):
        texts.update(render_module(language, spec))
    if book is not None:
        texts.update(render_module(rule_pages, spec, book))
    return texts


def write(root: Path, texts: dict[str, str]) -> list[str]:
    """Brings the tree up to date; returns the paths that changed.

    Strays with our banner are removed; others, which somebody else wrote, are left to --check.
    """
    changed = [path for path, text in texts.items() if _read(root / path) != text]
    for path in changed:
        replace_file(root / path, texts[path])
    strays = [path for path in find_strays(root, texts) if _has_banner(root / path)]
    for path in strays:
        (root / path).unlink()
    return changed + [f"{path} (removed)" for path in strays]


def compare(root: Path, texts: dict[str, str]) -> list[str]:
    """One text for each file that differs from what the spec says: a diff, or a sentence."""
    found = []
    for path, text in texts.items():
        present = _read(root / path)
        if present is None:
            found.append(f"{path} is missing; run 'fletching generate'\n")
        elif present != text:
            lines = difflib.unified_diff(
                present.splitlines(keepends=True),
                text.splitlines(keepends=True),
                f"{path} (in the tree)",
                f"{path} (from the spec)",
            )
            found.append("".join(lines))
    for path in find_strays(root, texts):
        found.append(f"{path} is a stray: nothing in the spec makes it; remove it\n")
    return found


def find_strays(root: Path, texts: dict[str, str]) -> list[str]:
    """Files that say they are generated, or lie where only such files lie, but are not."""
    strays = []
    for path in _walk(root):
        name = path.relative_to(root).as_posix()
        if name in texts:
            continue
        if name.startswith(tuple(f"{folder}/" for folder in GENERATED_ONLY)) or _has_banner(path):
            strays.append(name)
    return sorted(strays)


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _PASSED_OVER]
        yield from (Path(folder) / name for name in files)


def _has_banner(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(512).decode("utf-8", errors="replace")
    except OSError:
        return False
    return BANNER.search("\n".join(head.splitlines()[:3])) is not None


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
