"""Prints mentions of single languages outside of their homes.

The mentions come from the language's language.toml: its name, its title and its columns in quotes,
the path of its home, its commands, and its manifests. The search excludes the homes, the generator,
the spec, and prose (Markdown, docs/, comments). C++ and Python have no forbidden commands and
manifests, because the oracle, the producer and the stand-ins are written in C++ and the tools in
Python; their names count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from languages import ROOT, Language, load

HOMES = ("bindings/", "cpp/", "generator/", "tests/new_language/bindings/")
PROSE = ("docs/", "spec/", "LICENSE", "NOTICE")
# At most five, each with its reason.
ALLOWED = {
    # pyarrow and nanoarrow access the structs through the Python package.
    "tests/roundtrip/programs.py": "where the peers find that package",
    "pyproject.toml": "where mypy and pytest find it",
    # arrow-go's headers are published as a module, which the Go client downloads.
    "tests/published/fetch.py": "that client",
    "tests/published/test_fetch.py": "its test",
    "tools/tests/test_languages.py": "the lines that the test of this check plants",
}
_COMMENT = re.compile(r"^\s*(#(?!include)|//|\*|/\*)")


def files(root: Path) -> list[str]:
    """Tracked and untracked files, except ignored ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [
        name
        for name in listed.split("\0")
        if name
        and not name.startswith((*HOMES, *PROSE))
        and not name.endswith(".md")
        and name not in ALLOWED
        and (root / name).is_file()
    ]


def patterns(known: Mapping[str, Language]) -> re.Pattern[str]:
    """The forbidden mentions in a line."""
    names = {
        name
        for each in known.values()
        for name in (each.name, each.title, *(column.name for column in each.columns))
    }
    quoted = "|".join(map(re.escape, sorted(names)))
    folders = "|".join(re.escape(each.name) for each in known.values() if each.folder != each.name)
    commands = [re.escape(command) for each in known.values() for command in each.commands]
    parts = [
        rf"(?<!/ )[\"'](?:{quoted})[\"'](?! /)",
        rf"bindings/(?:{folders})\b",
        rf"[\"']bindings[\"'] / [\"'](?:{folders})[\"']",
    ]
    if commands:
        parts.append(rf"(?<![\w./-])(?:{'|'.join(commands)})(?![\w.-])")
    return re.compile("|".join(parts))


def footprints(root: Path, known: Mapping[str, Language]) -> Iterator[str]:
    """One line per mention: file, line and text."""
    manifests = {name: each for each in known.values() for name in each.manifests}
    pattern = patterns(known)
    for name in files(root):
        owner = manifests.get(Path(name).name)
        if owner is not None:
            yield f"{name}: a manifest of {owner.title}: expected it in {owner.folder}/"
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            found = pattern.search(line)
            if found and not _COMMENT.match(line) and "# " not in line[: found.start()]:
                yield f"{name}:{number}: {found[0]}: expected in a language.toml: {line.strip()}"


if __name__ == "__main__":
    left = list(footprints(ROOT, load()))
    print(*left, sep="\n")
    sys.exit(1 if left else 0)
