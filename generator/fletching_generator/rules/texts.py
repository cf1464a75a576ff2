"""Compares published texts with spec/texts/ and finds the sections that have changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from .rulebook import Rulebook, Text, TextSection
from .sections import Section, read_sections


@dataclass(frozen=True)
class TextResult:
    """The comparison of one text."""

    text: Text
    sections: int  # in the published text
    new: tuple[Section, ...]  # without an entry
    changed: tuple[tuple[Section, TextSection], ...]  # with another hash than the entry
    gone: tuple[TextSection, ...]  # entries without a section

    @property
    def wrong(self) -> bool:
        return bool(self.new or self.changed or self.gone)


@dataclass(frozen=True)
class TextReport:
    results: tuple[TextResult, ...]
    not_given: tuple[Text, ...]  # in none of the folders

    @property
    def wrong(self) -> bool:
        return any(result.wrong for result in self.results)


def check_texts(book: Rulebook, folders: list[Path]) -> TextReport:
    """Raises UsageError if the folders have no text of spec/texts/, or one that is unreadable."""
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a directory: expected a folder with texts")
    given: dict[str, Path] = {}
    for text in book.texts:
        paths = [folder / text.file for folder in folders if (folder / text.file).is_file()]
        if paths:
            given[text.id] = paths[0]
    if not given:
        names = ", ".join(text.file for text in book.texts)
        raise UsageError(f"no text found: expected a folder with at least one of {names}")
    return TextReport(
        tuple(compare(t, _read(t, given[t.id])) for t in book.texts if t.id in given),
        tuple(text for text in book.texts if text.id not in given),
    )


def compare(text: Text, sections: list[Section]) -> TextResult:
    entries = {entry.name: entry for entry in text.sections}
    known = [(s, entries[s.name]) for s in sections if s.name in entries]
    present = {section.name for section in sections}
    return TextResult(
        text=text,
        sections=len(sections),
        new=tuple(section for section in sections if section.name not in entries),
        changed=tuple((s, entry) for s, entry in known if s.hash != entry.hash),
        gone=tuple(entry for entry in text.sections if entry.name not in present),
    )


def _read(text: Text, path: Path) -> list[Section]:
    try:
        return read_sections(path.read_text(encoding="utf-8"), text.format, text.functions)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None
    except SyntaxError as error:
        raise UsageError(f"{path}:{error.lineno}: not Python: {error.msg}") from None


def as_text(report: TextReport) -> str:
    """A line for each text, then a line for each difference with its fix."""
    width = max(len(text.file) for text in [*(r.text for r in report.results), *report.not_given])
    lines = [f"{'text':{width}}  sections  new  changed  gone"]
    lines.extend(
        f"{r.text.file:{width}}  {r.sections:8}"
        f"  {len(r.new):3}  {len(r.changed):7}  {len(r.gone):4}"
        for r in report.results
    )
    lines.extend(f"{text.file:{width}}  not given" for text in report.not_given)
    for result in report.results:
        lines.extend(_differences(result))
    return "\n".join(lines) + "\n"


def as_json(report: TextReport) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [
        {
            "file": result.text.file,
            "given": True,
            "sections": result.sections,
            "new": [section.name for section in result.new],
            "changed": [section.name for section, _ in result.changed],
            "gone": [entry.name for entry in result.gone],
        }
        for result in report.results
    ]
    return found + [{"file": text.file, "given": False} for text in report.not_given]


def _differences(result: TextResult) -> list[str]:
    file, entries = result.text.file, f"spec/texts/{result.text.id}.yaml"
    new = [
        f"{file}:{s.line}: section '{s.name}' is new; hint: read it and add to {entries}: "
        f'- {{name: "{s.name}", anchor: "", hash: "{s.hash}", rules: []}}'
        for s in result.new
    ]
    changed = [
        f"{file}:{s.line}: section '{s.name}' has changed; hint: review "
        f"{', '.join(entry.rules) or 'whether it needs a rule'}, "
        f'then write hash: "{s.hash}" in {entries}'
        for s, entry in result.changed
    ]
    gone = [
        f"{entries}: section '{entry.name}' is not in {file}; hint: remove the entry, and map "
        f"{', '.join(entry.rules) or 'no rule'} elsewhere"
        for entry in result.gone
    ]
    return [*new, *changed, *gone]
