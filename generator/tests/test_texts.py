"""Published texts and their entries: sections, hashes, differences, unreadable texts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import REPOSITORY, UPSTREAM, Scratch

from fletching_generator.cli import main
from fletching_generator.rules.rulebook import Text, TextSection, load_rulebook
from fletching_generator.rules.sections import read_sections
from fletching_generator.rules.texts import compare
from fletching_generator.spec.load import load_spec

# Only the two headers come with a pinned package; FLETCHING_TEXTS names folders with other texts.
FOLDERS = [
    UPSTREAM,
    *(Path(p) for p in os.environ.get("FLETCHING_TEXTS", "").split(os.pathsep) if p),
]

RST = """\
.. A license

.. _boxes:

Boxes
=====

A box is closed.

.. c:member:: int (*Box.open)(struct Box*)

   *Mandatory.*  Opens the box.

.. c:macro:: BOX_ROUND

.. py:method:: __box__(self, key)

``Lids`` and keys
-----------------

A lid fits.
"""
PYTHON = '''\
def __box__(self):
    """Opens the box."""

def other():
    """Does something else."""
'''
HEADER = """\
#define BOX_ROUND 1

// A box.
struct Box {
  // The lid.
  void* lid;
  int (*open)(struct Box*);
};

/*!
 * \\brief A chest.
 */
typedef struct {
  int64_t gold[3];
} Chest;

typedef enum {
  kRed = 1,
} Color;

/*! \\brief Paints { a box }. */
typedef int (*Paint)(struct Box*, Color);
"""


def names(text: str, form: str, functions: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    return [(s.name, s.line) for s in read_sections(text, form, functions)]


def test_sections_of_restructured_text() -> None:
    expected = [("Boxes", 5), ("Box.open", 10), ("BOX_ROUND", 14), ("__box__", 16)]
    assert names(RST, "rst") == [*expected, ("Lids and keys", 18)]


def test_sections_of_docstrings() -> None:
    assert names(PYTHON, "python", ("__box__",)) == [("__box__", 1)]


def test_sections_of_header() -> None:
    expected = [("", 1), ("Box", 3), ("Chest", 10), ("Color", 17), ("Paint", 21)]
    assert names(HEADER, "c-header") == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("box is closed", "box\n  is  closed"),
        ("   *Mandatory.*  Opens", "      *Mandatory.*\n      Opens"),
    ],
)
def test_hash_ignores_line_breaks_and_indentation(old: str, new: str) -> None:
    changed = RST.replace(old, new)
    assert changed != RST
    assert hashes(changed) == hashes(RST)


def test_changed_word_changes_hash_of_section() -> None:
    before, after = hashes(RST), hashes(RST.replace("Opens", "Closes"))
    assert [name for name in before if before[name] != after[name]] == ["Box.open"]


def hashes(text: str) -> dict[str, str]:
    return {s.name: s.hash for s in read_sections(text, "rst")}


def test_sections_with_same_name_are_merged() -> None:
    twice = "Boxes\n=====\n\nRed.\n\nLids\n====\n\nRound.\n\nBoxes\n=====\n\n{}.\n"
    first, second = (read_sections(twice.format(word), "rst") for word in ("Blue", "Green"))
    assert [s.name for s in first] == ["Boxes", "Lids"]
    assert [a.hash == b.hash for a, b in zip(first, second, strict=True)] == [False, True]


def test_compare_finds_new_changed_and_removed_sections() -> None:
    entries = [TextSection(name, "", hash_, ()) for name, hash_ in hashes(RST).items()]
    text = Text("box", "box.rst", "Boxes", "1", "https://box", "rst", (), tuple(entries))
    assert not compare(text, read_sections(RST, "rst")).wrong
    changed = RST.replace("A lid fits", "No lid fits").replace("BOX_ROUND", "BOX_SQUARE")
    result = compare(text, read_sections(changed, "rst"))
    assert result.wrong
    assert [s.name for s in result.new] == ["BOX_SQUARE"]
    assert [(s.name, entry.name) for s, entry in result.changed] == [("Lids and keys",) * 2]
    assert [entry.name for entry in result.gone] == ["BOX_ROUND"]


def test_entries_match_given_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_spec(REPOSITORY, *(word for f in FOLDERS for word in ("--texts", f))) == 0
    lines = capsys.readouterr().out.splitlines()
    files = {line.split()[0] for line in lines[1:] if not line.endswith("not given")}
    assert files >= {"abi.h", "dlpack_abi.h"}


def test_link_has_anchor_of_section() -> None:
    book = load_rulebook(REPOSITORY, load_spec(REPOSITORY))
    text, section = book.sources["device-array.reserved-zero"][0]
    assert text.link(section) == f"{text.url}#c.ArrowDeviceArray.reserved"
    header = book.text("arrow-header")
    assert header.link(header.sections[0]) == header.url


def check_spec(root: Path, *arguments: str | Path) -> int:
    return main(["--root", str(root), "check-spec", *map(str, arguments)])


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("name: ArrowSchema,", "name: ArrowSchemas,", "abi.h:50: section 'ArrowSchema' is new; "),
        ("name: ArrowSchema,", "name: ArrowSchemas,", "'ArrowSchemas' is not in abi.h; hint: "),
        ('hash: "', 'hash: "0000', "section '' has changed; hint: review whether it needs a rule"),
    ],
)
def test_command_reports_difference_and_fix(
    old: str, new: str, found: str, scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = scratch.root / "spec" / "texts" / "arrow-header.yaml"
    text = path.read_text(encoding="utf-8")
    start = text.index(old)
    length = len(new) if "hash" in old else len(old)
    path.write_text(text[:start] + new + text[start + length :], encoding="utf-8")
    assert check_spec(scratch.root, "--texts", UPSTREAM) == 1
    assert found in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("nowhere", "nowhere is not a directory: expected a folder with texts"),
        (".", "no text found: expected a folder with at least one of"),
    ],
)
def test_rejects_folder_without_texts(
    folder: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_spec(REPOSITORY, "--texts", folder) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("abi.h", b"// \xff", "abi.h: byte 3 is not UTF-8"),
        ("array_object.py", b"x = 1\ndef (", "array_object.py:2: not Python: "),
    ],
)
def test_rejects_unreadable_text(
    file: str, content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).write_bytes(content)
    assert check_spec(REPOSITORY, "--texts", tmp_path) == 2
    assert words in capsys.readouterr().err
