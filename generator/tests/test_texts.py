"""Published texts against their entries: sentences, hashes, unmapped, stale and missing texts."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import REPOSITORY, UPSTREAM, Scratch

from fletching_generator.cli import main
from fletching_generator.rules.rulebook import (
    Family,
    Rule,
    Rulebook,
    Statement,
    Text,
    load_rulebook,
)
from fletching_generator.rules.sentences import read_sentences, sentence_hash
from fletching_generator.rules.texts import as_skeleton, as_text, check_texts, compare, read_text
from fletching_generator.spec.load import load_spec

# The texts themselves are not part of the repository; FLETCHING_TEXTS names folders that hold them.
TEXTS = [Path(p) for p in os.environ.get("FLETCHING_TEXTS", "").split(os.pathsep) if p] or [
    REPOSITORY.parent / "shared" / "reference"
]


def normative(text: str, form: str, **more: tuple[str, ...]) -> list[tuple[str, str]]:
    """Section and words of each sentence that demands something."""
    sentences = read_sentences(text, form, **more)
    return [(s.section, s.text) for s in sentences if s.normative]


# --- Sentences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "marked",
    [
        "The ``out`` argument MUST be :ref:`released <there>`.",
        "the *out* argument\nmust be released",
        "“The out argument” must be `released <there>`_.",
        "- The out argument must be :c:member:`released`!",
    ],
)
def test_markup_does_not_change_the_hash(marked: str) -> None:
    assert sentence_hash(marked) == sentence_hash("The out argument must be released.")


@pytest.mark.parametrize(
    "other",
    [
        "n must be < 0",
        "n must be >= 0",
        "n must be <= -1",
        "n must be <= 1",
        "n must not be <= 0",
    ],
)
def test_other_words_change_the_hash(other: str) -> None:
    assert sentence_hash(other) != sentence_hash("n must be <= 0")


def test_plain_text_with_headings_and_code() -> None:
    text = """\
Boxes#

A box is square. It must be closed,
even when it is empty (e.g. Monday). Nobody
looks inside.

int (*Box.open)(struct Box*)#

 struct Box {
 // must be called
 // from one thread
 int (*open)(struct Box*); // never read
 };

* A lid should fit.
* A lid is red. Lids MAY be blue, and may be green.
"""
    assert normative(text, "plain") == [
        ("Boxes", "It must be closed, even when it is empty (e.g. Monday)."),
        ("Box.open", "must be called from one thread"),
        ("Box.open", "never read"),
        ("Box.open", "* A lid should fit."),
        ("Box.open", "Lids MAY be blue, and may be green."),
    ]


def test_plain_text_with_given_headings() -> None:
    text = "Boxes\nA box must be closed.\nLids\nA lid must fit.\n"
    assert normative(text, "plain", headings=("Boxes", "Lids")) == [
        ("Boxes", "A box must be closed."),
        ("Lids", "A lid must fit."),
    ]


def test_restructured_text() -> None:
    text = """\
.. This comment must not be read.
   Nor must this.

Boxes
=====

.. note::
   A box must be
   closed.  It is square.

.. c:member:: int (*Box.open)(struct Box*)

   *Mandatory.*  Opens the box.

   :param key: The key must fit
       the lock.

.. code-block:: c

   // A comment must be read,
   // to its end.
   int must_not_be_read;

Then::

   int must_not_be_read;

+------+---------------+
| 1    | must be red   |
+------+---------------+
| 2    | must be blue  |
+------+---------------+
"""
    assert normative(text, "rst") == [
        ("Boxes", "A box must be closed."),
        ("Box.open", "*Mandatory.*"),
        ("Box.open", "The key must fit the lock."),
        ("Box.open", "A comment must be read, to its end."),
        ("Box.open", "| 1    | must be red   |"),
        ("Box.open", "| 2    | must be blue  |"),
    ]


def test_docstrings_of_named_functions() -> None:
    text = '''\
def __dlpack__(self):
    """Exports.

    stream: int
        It must be valid.

    .. code:: python

        x = 1  # this must be read
    """

def other():
    """This must not be read."""
'''
    assert normative(text, "python", functions=("__dlpack__",)) == [
        ("__dlpack__", "It must be valid."),
        ("__dlpack__", "this must be read"),
    ]


def test_comments_of_a_header() -> None:
    text = """\
/*! \\brief Must be odd. */
#define BOX 1
typedef struct {
  /*!
   * \\brief The lid.
   * \\note It must fit.
   * \\code
   * must_not_be_read();
   * \\endcode
   */
  void* lid;
  // The lock should
  // hold.
  int (*lock)(void);
} Box;
struct Chest {
  // Never empty.
  int64_t gold[3];
};
"""
    assert normative(text, "c-header") == [
        ("BOX", "Must be odd."),
        ("Box.lid", "It must fit."),
        ("Box.lock", "The lock should hold."),
        ("Chest.gold", "Never empty."),
    ]


# --- Entries of a text of our own --------------------------------------------------------------

BOX = "Boxes#\n\nA box must be closed. A lid should fit. It is red. Paint is recommended.\n"
WORDS = ("A box must be closed.", "A lid should fit.", "It is red.", "Paint is recommended.")


def box(*statements: Statement, name: str = "box", shares: tuple[str, ...] = ()) -> Text:
    path = f"{name}.txt"
    return Text(name, path, "Boxes", "1", "p", path, "plain", (), (), shares, None, statements)


def book(*texts: Text) -> Rulebook:
    rules = (Rule("box.closed", "producer", "error", "Closed.", "validator"),)
    return Rulebook((Family("box", "Boxes", "Boxes.", {"box": "Boxes"}, rules),), texts)


CLOSED, FITS, RED, PAINT = (sentence_hash(words) for words in WORDS)
COMPLETE = (
    Statement("Boxes", CLOSED, ("box.closed",), None),
    Statement("Boxes", FITS, ("box.closed",), None),
    Statement("Boxes", RED, ("box.closed",), None),
    Statement("Boxes", PAINT, (), "a matter of taste"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "box.txt").write_text(BOX, encoding="utf-8")
    return tmp_path


def test_a_complete_mapping(folder: Path) -> None:
    report = check_texts(book(box(*COMPLETE)), [folder])
    assert not report.wrong
    (result,) = report.results
    assert (result.normative, result.mapped, result.not_a_rule, result.further) == (3, 2, 1, 1)


@pytest.mark.parametrize("removed", [0, 1, 3])
def test_a_removed_entry_is_missed(removed: int, folder: Path) -> None:
    rest = COMPLETE[:removed] + COMPLETE[removed + 1 :]
    report = check_texts(book(box(*rest)), [folder])
    assert report.wrong
    expected = f"box.txt:3: [Boxes] {COMPLETE[removed].hash} is unmapped; "
    assert f"{expected}add it to spec/texts/box.yaml: {WORDS[removed]}" in as_text(report)


@pytest.mark.parametrize(
    "stale",
    [
        Statement("Boxes", "0" * 16, ("box.closed",), None),
        Statement("Lids", CLOSED, ("box.closed",), None),
    ],
)
def test_an_entry_without_its_sentence_is_stale(stale: Statement, folder: Path) -> None:
    report = check_texts(book(box(*COMPLETE, stale)), [folder])
    assert report.wrong
    assert f"spec/texts/box.yaml: [{stale.section}] {stale.hash} is stale" in as_text(report)


def test_a_changed_sentence_is_unmapped_and_stale(folder: Path) -> None:
    (folder / "box.txt").write_text(BOX.replace("must be", "must not be"), encoding="utf-8")
    (result,) = check_texts(book(box(*COMPLETE)), [folder]).results
    assert [s.text for s in result.unmapped] == ["A box must not be closed."]
    assert [s.hash for s in result.stale] == [CLOSED]


def test_entries_of_another_text_are_shared(folder: Path) -> None:
    (folder / "copy.txt").write_text("Boxes#\n\nA box must be *closed*.", encoding="utf-8")
    copy = box(name="copy")
    assert check_texts(book(box(*COMPLETE), copy), [folder]).wrong
    assert not check_texts(book(box(*COMPLETE), replace(copy, shares=("box",))), [folder]).wrong


NEW_FIELD = "Box.lock#\n\nMandatory. Users MUST NOT open this. It must be closed.\n"


@pytest.mark.parametrize("shares", [(), ("box",)])
def test_sentences_of_a_new_field_are_missed(shares: tuple[str, ...], folder: Path) -> None:
    """Although each of them has an entry under another field."""
    fields = "".join(NEW_FIELD.replace("lock", name) for name in ("lid", "key"))
    words = [s for s in read_sentences(fields, "plain") if s.normative]
    known = box(*(Statement(s.section, s.hash, ("box.closed",), None) for s in words))
    copy = box(*(() if shares else known.statements), name="copy", shares=shares)
    (folder / "box.txt").write_text(fields, encoding="utf-8")
    (folder / "copy.txt").write_text(fields, encoding="utf-8")
    assert not check_texts(book(known, copy), [folder]).wrong
    (folder / "copy.txt").write_text(fields + NEW_FIELD, encoding="utf-8")
    _, result = check_texts(book(known, copy), [folder]).results
    assert [(s.section, s.text) for s in result.unmapped] == [
        ("Box.lock", "Mandatory."),
        ("Box.lock", "Users MUST NOT open this."),
        ("Box.lock", "It must be closed."),
    ]


def test_texts_that_are_shared_and_do_not_agree(folder: Path) -> None:
    """The sentence needs a separate entry then, which is stronger than both."""
    (folder / "box.txt").write_text("Boxes#\n\nA box must be closed.", encoding="utf-8")
    (folder / "lid.txt").write_text("Boxes#\n\nA box must be closed.", encoding="utf-8")
    (folder / "copy.txt").write_text("Boxes#\n\nA box must be closed.", encoding="utf-8")
    closed, taste = COMPLETE[0], replace(COMPLETE[3], hash=CLOSED)
    both = box(closed), box(taste, name="lid")
    report = check_texts(book(*both, box(name="copy", shares=("box", "lid"))), [folder])
    assert [len(result.unmapped) for result in report.results] == [0, 0, 1]
    own = box(closed, name="copy", shares=("box", "lid"))
    report = check_texts(book(*both, own), [folder])
    assert not report.wrong
    assert [(r.mapped, r.not_a_rule) for r in report.results] == [(1, 0), (0, 1), (1, 0)]


def test_a_text_that_is_not_given_is_named_but_no_failure(folder: Path) -> None:
    report = check_texts(book(box(*COMPLETE), box(name="lid")), [folder])
    assert not report.wrong
    assert re.search(r"^lid\.txt +not given$", as_text(report), re.MULTILINE)


def test_a_file_that_no_text_names_is_named(folder: Path) -> None:
    (folder / "lid.txt").write_text("A lid must fit.", encoding="utf-8")
    report = check_texts(book(box(*COMPLETE)), [folder])
    assert re.search(r"^lid\.txt +not a text of spec/texts/$", as_text(report), re.MULTILINE)


def test_the_skeleton_has_what_is_missing(folder: Path) -> None:
    skeleton = as_skeleton(check_texts(book(box(*COMPLETE[1:])), [folder]))
    assert f'  - {{section: "Boxes", hash: "{CLOSED}", rules: []}}' in skeleton
    assert FITS not in skeleton
    assert as_skeleton(check_texts(book(box(*COMPLETE)), [folder])) == ""


# --- The command and the real texts ------------------------------------------------------------


def check_spec(root: Path, *arguments: str | Path) -> int:
    return main(["--root", str(root), "check-spec", *map(str, arguments)])


def test_the_headers_of_the_pinned_wheel_are_dealt_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check_spec(REPOSITORY, "--texts", UPSTREAM) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if " 0 " in line] == ["abi.h", "dlpack_abi.h"]


def test_the_command_fails_when_an_entry_is_missing(
    scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = scratch.root / "spec" / "texts" / "arrow-header.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    license_ = next(line for line in lines if "not_a_rule: license" in line)
    path.write_text("".join(line for line in lines if line != license_), encoding="utf-8")
    assert check_spec(scratch.root, "--texts", UPSTREAM) == 1
    assert "is unmapped; add it to spec/texts/arrow-header.yaml" in capsys.readouterr().out
    assert check_spec(scratch.root, "--texts", UPSTREAM, "--skeleton") == 1
    skeleton = capsys.readouterr().out.splitlines()[-1]
    assert skeleton.endswith("rules: []}")
    filled = skeleton.replace("rules: []", "not_a_rule: license")
    path.write_text(path.read_text(encoding="utf-8") + filled + "\n", encoding="utf-8")
    assert check_spec(scratch.root, "--texts", UPSTREAM) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--texts", "nowhere"), "nowhere is not a directory; expected one with the texts"),
        (("--texts", "."), "no text found; the folder has to hold some of"),
        (("--skeleton",), "--skeleton: expected --texts FOLDER too"),
    ],
)
def test_what_cannot_be_checked(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_spec(REPOSITORY, *arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("abi.h", b"// \xff", "abi.h: byte 3 is not UTF-8"),
        ("array_object.py", b"x = 1\ndef (", "array_object.py:2: not Python: "),
    ],
)
def test_a_text_that_cannot_be_read(
    file: str, content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).write_bytes(content)
    assert check_spec(REPOSITORY, "--texts", tmp_path) == 2
    assert words in capsys.readouterr().err


def given_folders() -> list[Path]:
    folders = [folder for folder in TEXTS if folder.is_dir()]
    if not folders:
        pytest.skip(f"no texts in {TEXTS[0]}; FLETCHING_TEXTS can name other folders")
    return [*folders, UPSTREAM]


def test_every_sentence_of_the_given_texts_is_dealt_with() -> None:
    folders = given_folders()
    rulebook = load_rulebook(REPOSITORY, load_spec(REPOSITORY))
    report = check_texts(rulebook, folders, load_spec(REPOSITORY))
    assert not report.wrong, as_text(report)
    known = {text.file for text in rulebook.texts}
    reference = TEXTS[0]
    if reference.name == "reference":
        assert {path.name for path in reference.iterdir()} <= known


def test_a_new_field_of_a_published_text_is_missed(tmp_path: Path) -> None:
    given_folders()
    rulebook = load_rulebook(REPOSITORY, load_spec(REPOSITORY))
    text = rulebook.text("arrow-device-page-v13")
    words = (TEXTS[0] / text.file).read_text(encoding="utf-8")
    heading, field = (
        "void *ArrowDeviceArrayStream.private_data",
        "void *ArrowDeviceArrayStream.hint",
    )
    member = f"\n{field}\n\nMandatory. {{}}\n\nConsumers MUST NOT process this member.\n\n"
    called = "This callback must NOT be called on a released ArrowDeviceArrayStream."
    path = tmp_path / text.file
    path.write_text(words.replace(heading, member.format(called) + heading), encoding="utf-8")
    text = replace(text, headings=(*text.headings, field))
    assert len(compare(rulebook, text, read_text(text, path)).unmapped) == 3


def test_every_entry_of_the_given_texts_is_needed() -> None:
    """Takes out one entry after the other and sees that its sentence is missed."""
    folders = given_folders()
    rulebook = load_rulebook(REPOSITORY, load_spec(REPOSITORY))
    for result in check_texts(rulebook, folders).results:
        text = result.text
        path = next(f / text.file for f in folders if (f / text.file).is_file())
        sentences = read_text(text, path)
        demanding = {(s.section, s.hash) for s in sentences if s.normative}
        for number, entry in enumerate(text.statements):
            if (entry.section, entry.hash) in demanding:
                rest = text.statements[:number] + text.statements[number + 1 :]
                missed = compare(rulebook, replace(text, statements=rest), sentences).unmapped
                assert [(s.section, s.hash) for s in missed] == [(entry.section, entry.hash)]
