"""Do the rules fit their sentences: strength, party, and subject?

Judged is what the words show. A rule that differs on purpose says why: `stricter` for an error of
a text that says "should" or "may", `lenient` for a warning of a text that says "must".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..reading.types import Callback, FixedArray, Pointer, StructType, Type
from ..spec.model import Spec
from .rulebook import Rule, Rulebook, Statement, Text
from .sentences import Sentence

# Words that look like a demand and are none: "recommended, but not required".
_NO_DEMAND = re.compile(
    r"\b(?:not|n't|no) (?:be )?(?:required|guaranteed|necessary|necessarily|have to|need to)\b"
    r"|\bif (?:necessary|required)\b|\bthe expected\b|\bmay have to\b",
    re.IGNORECASE,
)
_MUST = re.compile(
    r"\b(?:must|mandatory|shall|requires?|required|(?:may|can)(?: \w+){0,3} only|only valid|invalid"
    r"|prohibited|forbidden|disallowed|never|responsible|guaranteed|the only)\b"
    r"|\b(?:may|can) only\b",
    re.IGNORECASE,
)
_CANNOT = re.compile(r"\bCANNOT\b")
_SHOULD = re.compile(
    r"\b(?:should|recommended|recommendation|encouraged|discouraged|preferred|expected|ideally)\b",
    re.IGNORECASE,
)
_MAY = re.compile(
    r"\bMAY\b|\b(?:may|can|CAN) (?:\w+ ){0,2}?(?:be|return|provide)\b"
    r"|\bis valid for\b|\ballowed\b|\bpermitted\b|\boptional\b"
)
_PARTY = re.compile(
    r"\b(producer|consumer|(?<=the )user)s?(?: \w+){0,4}? (?:must|should|shall|cannot)\b",
    re.IGNORECASE,
)
# Names of one thing: of the page and of abi.h, of the older and of the newer struct.
_SAME = {"ArrowArrayTask": "ArrowAsyncTask", "DLManagedTensor": "DLManagedTensorVersioned"}

MUST, SHOULD, EITHER, MAY, STATES = "must", "should", "must and should", "may", "states"


@dataclass(frozen=True)
class Mapped:
    """A sentence, and the entry that says which rules it became."""

    text: Text  # the text that was read
    sentence: Sentence
    statement: Statement

    def __str__(self) -> str:
        return f"{self.text.file}:{self.sentence.line}: [{self.sentence.section}]"


def strength(sentence: str) -> str:
    """How much a sentence demands; EITHER when it has a "must" and a "should"."""
    words = _NO_DEMAND.sub("", sentence)
    must = _MUST.search(words) or _CANNOT.search(words)
    if _SHOULD.search(words):
        return EITHER if must else SHOULD
    return MUST if must else MAY if _MAY.search(words) else STATES


def misfits(book: Rulebook, spec: Spec | None, mapped: list[Mapped]) -> Iterator[str]:
    """A line for each rule and each entry that does not fit, with what to do."""
    rules = {rule.id: rule for rule in book.rules}
    related = _related(spec) if spec else {}
    by_rule: dict[str, list[Mapped]] = {}
    for entry in mapped:
        for rule in entry.statement.rules:
            by_rule.setdefault(rule, []).append(entry)
        own = [rules[rule] for rule in entry.statement.rules]
        yield from _wrong_party(entry, own)
        yield from _wrong_subject(entry, own, related)
    read = {entry.text.id for entry in mapped}
    for name, entries in by_rule.items():
        complete = read >= set(book.sources[name])
        yield from _wrong_strength(rules[name], entries, complete)


def _wrong_strength(rule: Rule, entries: list[Mapped], complete: bool) -> Iterator[str]:
    """`complete`: every text of the rule was read, so that nothing stronger is left."""
    said = {strength(entry.sentence.text): str(entry) for entry in reversed(entries)}
    if rule.severity == "warning" and MUST in said:
        if rule.lenient is None:
            yield (
                f"{said[MUST]} says \"must\", but '{rule.id}' is a warning; "
                "make it an error, or say why not under 'lenient'"
            )
    elif rule.lenient is not None and complete:
        yield f"'{rule.id}' has 'lenient', but no sentence says \"must\"; remove it"
    if MUST in said and rule.stricter is not None:
        yield f"{said[MUST]} says \"must\", so '{rule.id}' is not stricter; remove 'stricter'"
    if not complete or rule.stricter is not None or said.keys() & {MUST, EITHER}:
        return
    if SHOULD in said and rule.severity == "error":
        yield (
            f"{said[SHOULD]} says \"should\", but '{rule.id}' is an error; "
            "make it a warning, or say why not under 'stricter'"
        )
    if said.keys() == {MAY} and rule.party not in ("consumer", "both"):
        yield (
            f"{said[MAY]} permits, so the {rule.party} cannot break '{rule.id}'; "
            "map it to what the consumer accepts, or say why not under 'stricter'"
        )


def _wrong_party(entry: Mapped, rules: list[Rule]) -> Iterator[str]:
    parties = {party.lower() for party in _PARTY.findall(entry.sentence.text)}
    if rules and len(parties) == 1 and not {rule.party for rule in rules} & {*parties, "both"}:
        names = ", ".join(f"'{rule.id}' ({rule.party})" for rule in rules)
        yield f"{entry} binds the {parties.pop()}, but maps to {names}; map it to a rule of that"


def _wrong_subject(
    entry: Mapped, rules: list[Rule], related: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    """At least one rule is about the struct of the section, or about a related one."""
    section = entry.sentence.section
    for old, new in _SAME.items():
        section = re.sub(rf"\b{old}\b", new, section)
    structs = [name for name in related if "." not in name and re.search(rf"\b{name}\b", section)]
    if len(structs) != 1 or not rules or any(rule.about is None for rule in rules):
        return
    near = {structs[0], *related.get(section, ())}
    for rule in rules:
        about = str(rule.about)
        struct = about.partition(".")[0]
        named = re.search(rf"\b{re.escape(struct)}s?\b", entry.sentence.text)
        if named or {struct, *related.get(about, ())} & near:
            return
    abouts = ", ".join(f"'{rule.id}' (about {rule.about})" for rule in rules)
    yield f"{entry} is about {structs[0]}, but maps to {abouts}; map it to a rule of {structs[0]}"


def _related(spec: Spec) -> dict[str, frozenset[str]]:
    """The structs in the type of each member, by `Struct.member`; and the structs themselves."""
    found: dict[str, frozenset[str]] = {}
    for struct in spec.structs:
        found[struct.name] = frozenset()
        for field in struct.fields:
            found[f"{struct.name}.{field.name}"] = frozenset(_structs(field.type))
    return found


def _structs(type_: Type) -> Iterator[str]:
    match type_:
        case StructType(name=name):
            yield name
        case Pointer(to=inner) | FixedArray(of=inner):
            yield from _structs(inner)
        case Callback(arguments=arguments):
            for argument in arguments:
                yield from _structs(argument.type)
