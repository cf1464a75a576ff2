"""The rules and their texts: spec/rules/ and spec/texts/, as typed, frozen data.

Held apart from the rest of the spec: only `check-spec` and the reference pages need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ..cuda_array_interface.dictionaries import DictionaryInterface
from ..errors import Mistake, SpecError
from ..reading.documents import Document, KeyPath
from ..spec.model import Erratum, Spec


@dataclass(frozen=True)
class Rule:
    """One thing that can be broken."""

    id: str  # "device-array.reserved-zero": group and name
    party: Literal["producer", "consumer", "both", "library", "user"]  # who must follow it
    severity: Literal["error", "warning"]  # the text's "must" or "should", unless stricter
    text: str  # "The producer sets every byte of reserved to zero."
    check: Literal[
        "validator", "compile", "test", "static", "not_checkable"
    ]  # validator: at run time
    about: str | None = None  # "ArrowDeviceArray.reserved": a name of the spec
    reason: str | None = None  # why it cannot be checked
    no_case: str | None = None  # for "validator" or "test": why no case breaks it
    stricter: str | None = None  # why it is an error even though the text says "should" or "may"
    lenient: str | None = None  # why it is a warning even though the text says "must"
    errata: tuple[str, ...] = ()  # ("reserved-not-zeroed",)
    source: str | None = None  # where it is published, if in no section of a text

    @property
    def group(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Family:
    """The rules of one interface or protocol."""

    id: str  # "c-device-data": the file name without its ending
    title: str  # "C device data interface rules"
    doc: str
    groups: dict[str, str]  # {"device-array": "ArrowDeviceArray"}: headings of the page
    rules: tuple[Rule, ...]

    def of_group(self, group: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.group == group)


@dataclass(frozen=True)
class TextSection:
    """A section of a published text, and the rules that come from it."""

    name: str  # "ArrowDeviceArray.reserved"; "" for the part of a header outside of declarations
    anchor: str  # "c.ArrowDeviceArray.reserved"; "" for a page without anchors
    hash: str  # "4c2bcc5bb5ab2f0f", see sections.py
    rules: tuple[str, ...]  # ("device-array.reserved-zero",); empty if the section demands nothing
    url: str | None = None  # of a section on a separate page


@dataclass(frozen=True)
class Text:
    """A published text. The words themselves are not in the repository."""

    id: str  # "arrow-device": the file name without its ending
    file: str  # "CDeviceDataInterface.rst": its name in the folder of `check-spec --texts`
    title: str  # "The Arrow C Device data interface"
    version: str  # of Arrow: "25.0.1"
    url: str  # "https://arrow.apache.org/docs/format/CDeviceDataInterface.html"
    format: str  # "rst", see sections.py
    functions: tuple[str, ...]  # of Python source: the functions whose docstrings count
    sections: tuple[TextSection, ...]

    def link(self, section: TextSection) -> str:
        url = section.url or self.url
        return f"{url}#{section.anchor}" if section.anchor else url


@dataclass(frozen=True)
class Rulebook:
    families: tuple[Family, ...]
    texts: tuple[Text, ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(rule for family in self.families for rule in family.rules)

    def text(self, name: str) -> Text:
        return next(text for text in self.texts if text.id == name)

    @cached_property
    def sources(self) -> dict[str, list[tuple[Text, TextSection]]]:
        """The published sections of each rule, by its id."""
        found: dict[str, list[tuple[Text, TextSection]]] = {rule.id: [] for rule in self.rules}
        for text in self.texts:
            for section in text.sections:
                for rule in section.rules:
                    found.setdefault(rule, []).append((text, section))
        return found


def load_rulebook(root: Path, spec: Spec) -> Rulebook:
    """The rules and texts under `root`, checked against the spec. Raises SpecError."""
    folders = root / "spec" / "rules", root / "spec" / "texts"
    schemas = "rules", "text"
    families, texts = (
        dict(_read(folder, root, schema)) for folder, schema in zip(folders, schemas, strict=True)
    )
    book = Rulebook(
        tuple(_family(name, doc.content) for name, doc in families.items()),
        tuple(_text(name, doc.content) for name, doc in texts.items()),
    )
    mistakes = [
        *_check_families(book, spec, families),
        *_check_dictionary(book, spec.cuda_array_interface, families, root),
        *_check_texts(book, texts),
    ]
    if mistakes:
        raise SpecError(*sorted(mistakes, key=lambda mistake: (mistake.file, mistake.line)))
    return book


def _read(folder: Path, root: Path, schema: str) -> Iterator[tuple[str, Document]]:
    for path in sorted(folder.glob("*.yaml")):
        document = Document(path, path.relative_to(root).as_posix())
        document.validate(root / "spec" / "schema" / f"{schema}.schema.json")
        yield path.stem, document


def _family(name: str, content: dict[str, Any]) -> Family:
    rules = (Rule(**{**r, "errata": tuple(r.get("errata", ()))}) for r in content["rules"])
    return Family(**{**content, "id": name, "rules": tuple(rules)})


def _text(name: str, content: dict[str, Any]) -> Text:
    sections = (
        TextSection(s["name"], s.get("anchor", ""), s["hash"], tuple(s["rules"]), s.get("url"))
        for s in content["sections"]
    )
    functions = tuple(content.get("functions", ()))
    return Text(**{**content, "id": name, "functions": functions, "sections": tuple(sections)})


def _check_families(
    book: Rulebook, spec: Spec, documents: dict[str, Document]
) -> Iterator[Mistake]:
    reached = {rule for text in book.texts for s in text.sections for rule in s.rules}
    seen: dict[str, str] = {}
    for family in book.families:
        document = documents[family.id]
        for group in family.groups:
            if not family.of_group(group):
                problem = f"no rule is in group '{group}'"
                yield document.mistake(["groups", group], problem, "remove it")
        for index, rule in enumerate(family.rules):
            keys: KeyPath = ["rules", index]
            if rule.id in seen:
                where = f"it is already in spec/rules/{seen[rule.id]}.yaml"
                yield document.mistake([*keys, "id"], f"'{rule.id}' is a duplicate", where)
            seen[rule.id] = family.id
            if rule.group not in family.groups:
                problem = f"'{rule.group}' is not a group of this file"
                hint = f"use one of {', '.join(family.groups)}"
                yield document.mistake([*keys, "id"], problem, hint)
            if rule.id not in reached and not rule.errata and rule.source is None:
                problem = f"no section of spec/texts/ has rule '{rule.id}'"
                hint = "add the rule to its section, link an erratum, or add its 'source'"
                yield document.mistake(keys, problem, hint)
            yield from _check_rule(rule, spec, keys, document)


def _check_rule(rule: Rule, spec: Spec, keys: KeyPath, document: Document) -> Iterator[Mistake]:
    if rule.about is not None and rule.about not in _names(spec):
        problem = f"'{rule.about}' is not defined"
        hint = "name a struct, Struct.field, typedef, function, constant, guard or key of the spec"
        yield document.mistake([*keys, "about"], problem, hint)
    if (rule.check == "not_checkable") != (rule.reason is not None):
        problem = "'not_checkable' and 'reason' belong together"
        yield document.mistake([*keys, "check"], problem, "write both or neither")
    if rule.no_case is not None and rule.check not in {"validator", "test"}:
        problem = f"'no_case' is for a check 'validator' or 'test', not '{rule.check}'"
        yield document.mistake([*keys, "no_case"], problem, "remove it")
    if rule.stricter is not None and rule.severity != "error":
        problem = "a warning is not stricter than the text"
        yield document.mistake([*keys, "stricter"], problem, "remove it")
    if rule.lenient is not None and rule.severity != "warning":
        problem = "an error is not more lenient than the text"
        yield document.mistake([*keys, "lenient"], problem, "remove it")
    known = [erratum.id for erratum in spec.errata]
    for number, erratum in enumerate(rule.errata):
        if erratum not in known:
            problem = f"unknown erratum '{erratum}'"
            hint = "use the id of an entry in spec/errata.yaml"
            yield document.mistake([*keys, "errata", number], problem, hint)


def _check_dictionary(
    book: Rulebook, interface: DictionaryInterface, families: dict[str, Document], root: Path
) -> Iterator[Mistake]:
    """The checks of an interface and the rules of its family must refer to each other."""
    name = f"spec/{interface.id}.yaml"
    rules = [rule for family in book.families if family.id == interface.id for rule in family.rules]
    known = {rule.id for rule in rules}
    for index, check in enumerate(interface.checks):
        for number, rule_id in enumerate(check.rules):
            if rule_id not in known:
                problem = f"unknown rule '{rule_id}'"
                hint = f"use an id of spec/rules/{interface.id}.yaml, or add the rule there"
                keys: KeyPath = ["checks", index, "rules", number]
                yield Document(root / name, name).mistake(keys, problem, hint)
    reached = {rule_id for check in interface.checks for rule_id in check.rules}
    for index, rule in enumerate(rules):
        if (rule.check == "validator") != (rule.id in reached):
            if rule.id in reached:
                problem = f"{name} has a check for '{rule.id}'"
                hint = "write 'check: validator'"
            else:
                problem = f"no check of {name} has '{rule.id}'"
                hint = "name it there under 'rules', or write 'test' when no dictionary shows it"
            yield families[interface.id].mistake(["rules", index, "check"], problem, hint)


def _names(spec: Spec) -> set[str]:
    names = spec.declared_names | {constant.name for constant in spec.constants}
    names |= {f.name for interface in spec.interfaces for f in interface.functions if f.name}
    dictionary = spec.cuda_array_interface
    return names | {
        dictionary.attribute,
        *(f"{dictionary.attribute}.{key.name}" for key in dictionary.keys),
    }


def _check_texts(book: Rulebook, documents: dict[str, Document]) -> Iterator[Mistake]:
    rules = {rule.id for rule in book.rules}
    files: dict[str, str] = {}
    for text in book.texts:
        document = documents[text.id]
        if text.file in files:
            problem = f"'{text.file}' is already the file of '{files[text.file]}'"
            yield document.mistake(["file"], problem, "one file, one text")
        files[text.file] = text.id
        yield from _check_sections(text, rules, document)


def _check_sections(text: Text, rules: set[str], document: Document) -> Iterator[Mistake]:
    seen: set[str] = set()
    for index, section in enumerate(text.sections):
        keys: KeyPath = ["sections", index]
        if section.name in seen:
            problem = f"'{section.name}' is a duplicate"
            yield document.mistake([*keys, "name"], problem, "put both into one entry")
        seen.add(section.name)
        for number, rule in enumerate(section.rules):
            if rule not in rules:
                problem = f"unknown rule '{rule}'"
                hint = "use an id of spec/rules/, or add the rule there"
                yield document.mistake([*keys, "rules", number], problem, hint)


def rule_errata(spec: Spec, rule: Rule) -> list[Erratum]:
    return [erratum for erratum in spec.errata if erratum.id in rule.errata]
