"""Holds published texts against spec/texts/: has every sentence that demands something an entry?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..spec.model import Spec
from .mapping import Mapped, misfits
from .rulebook import Rulebook, Statement, Text
from .sentences import Sentence, read_sentences


@dataclass(frozen=True)
class TextResult:
    """One text, as it was found in a folder."""

    text: Text
    normative: int  # sentences that demand something
    mapped: int  # of these: became rules
    not_a_rule: int  # of these: became none, with a reason
    further: int  # entries for sentences that state something without such a word
    unmapped: tuple[Sentence, ...]  # of these: without an entry
    stale: tuple[Statement, ...]  # entries whose sentence the text does not have
    sentences: tuple[Mapped, ...]  # all that became rules


@dataclass(frozen=True)
class TextReport:
    results: tuple[TextResult, ...]
    not_given: tuple[Text, ...]  # no folder has them
    unknown: tuple[str, ...]  # files that spec/texts/ does not name
    misfits: tuple[str, ...]  # rules that do not fit their sentences

    @property
    def wrong(self) -> bool:
        return bool(self.misfits) or any(r.unmapped or r.stale for r in self.results)


def check_texts(book: Rulebook, folders: list[Path], spec: Spec | None = None) -> TextReport:
    """Raises UsageError without a text to check, and for an unreadable text.

    Without a spec the subjects of the rules are not checked.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a directory; expected one with the texts")
    given: dict[str, Path] = {}
    for text in book.texts:
        paths = [folder / text.file for folder in folders if (folder / text.file).is_file()]
        if paths:
            given[text.id] = paths[0]
    if not given:
        names = ", ".join(text.file for text in book.texts)
        raise UsageError(f"no text found; the folder has to hold some of {names}")
    files = {text.file for text in book.texts}
    results = tuple(
        compare(book, book.text(name), read_text(book.text(name), path))
        for name, path in given.items()
    )
    return TextReport(
        results=results,
        not_given=tuple(text for text in book.texts if text.id not in given),
        unknown=tuple(sorted(p.name for f in folders for p in f.iterdir() if p.name not in files)),
        misfits=tuple(misfits(book, spec, [m for r in results for m in r.sentences])),
    )


def compare(book: Rulebook, text: Text, sentences: list[Sentence]) -> TextResult:
    """Holds the sentences of a text against its entries and those that it shares."""
    entries = _entries(book, text)
    own = {(s.section, s.hash) for s in text.statements}
    found = [s for s in sentences if s.normative]
    dealt = {s: entries.get((s.section, s.hash)) for s in found}
    present = {(s.section, s.hash): s for s in sentences}
    became = [(s, entries[place]) for place, s in present.items() if place in entries]
    return TextResult(
        text=text,
        normative=len(found),
        mapped=sum(s is not None and bool(s.rules) for s in dealt.values()),
        not_a_rule=sum(s is not None and not s.rules for s in dealt.values()),
        further=sum(place in present and not present[place].normative for place in own),
        unmapped=tuple(s for s in found if dealt[s] is None),
        stale=tuple(s for s in text.statements if (s.section, s.hash) not in present),
        sentences=tuple(Mapped(text, s, entry) for s, entry in became if entry.rules),
    )


def _entries(book: Rulebook, text: Text) -> dict[tuple[str, str], Statement]:
    """The entries of a text, by section and hash, and those that the texts it shares agree on."""
    shared: dict[tuple[str, str], list[Statement]] = {}
    for name in text.shares:
        for statement in book.text(name).statements:
            shared.setdefault((statement.section, statement.hash), []).append(statement)
    agreed = {place: found[0] for place, found in shared.items() if len(set(found)) == 1}
    return agreed | {(s.section, s.hash): s for s in text.statements}


def read_text(text: Text, path: Path) -> list[Sentence]:
    """The sentences of a file. Raises UsageError when it cannot be read."""
    try:
        words = path.read_text(encoding="utf-8")
        return read_sentences(words, text.format, text.headings, text.functions)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: not Python: {error.msg}") from None


def as_text(report: TextReport) -> str:
    """A line for each text, then the faults."""
    known = [result.text for result in report.results] + list(report.not_given)
    width = max(len(text.file) for text in known)
    lines = [f"{'text':{width}}  normative  mapped  not a rule  unmapped  stale  further"]
    for r in sorted(report.results, key=lambda result: result.text.file):
        lines.append(
            f"{r.text.file:{width}}  {r.normative:9}  {r.mapped:6}  {r.not_a_rule:10}  "
            f"{len(r.unmapped):8}  {len(r.stale):5}  {r.further:7}"
        )
    lines.extend(f"{text.file:{width}}  not given" for text in report.not_given)
    lines.extend(f"{name:{width}}  not a text of spec/texts/" for name in report.unknown)
    for r in report.results:
        for s in r.unmapped:
            place = f"{r.text.file}:{s.line}: [{s.section}] {s.hash}"
            lines.append(f"{place} is unmapped; add it to spec/texts/{r.text.id}.yaml: {s.text}")
        for statement in r.stale:
            entry = f"spec/texts/{r.text.id}.yaml: [{statement.section}] {statement.hash}"
            lines.append(f"{entry} is stale: {r.text.file} has no such sentence there")
    lines.extend(report.misfits)
    return "\n".join(lines) + "\n"


def as_skeleton(report: TextReport) -> str:
    """The entries that are missing, ready to be filled in, each below its sentence."""
    lines: list[str] = []
    for result in report.results:
        if result.unmapped:
            lines.append(f"# spec/texts/{result.text.id}.yaml")
        for s in result.unmapped:
            lines.append(f"  # {result.text.file}:{s.line}: {s.text}")
            lines.append(f'  - {{section: "{s.section}", hash: "{s.hash}", rules: []}}')
    return "\n".join(lines) + ("\n" if lines else "")
