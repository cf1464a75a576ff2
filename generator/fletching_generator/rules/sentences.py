"""Splits a published text into its sentences and knows those that demand something.

Code counts with its comments only. A block ends at an empty line, a bullet, a change of the
indentation or a line of code; a sentence ends inside its block.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .formats import read_docstring, read_header, read_plain, read_rst

# A sentence is normative when it has one of these; upper or lower case does not matter. MAY counts
# in capitals only: as a common word it says nothing.
NORMATIVE = tuple(
    """
    must, mandatory, require, requires, required, requirement, requirements, shall, should, cannot,
    can not, can't, may not, may only, only valid, is valid, be valid, invalid, not valid, allowed,
    disallowed, prohibited, forbidden, guarantee, guaranteed, an error, undefined, unspecified,
    unsupported, not supported, recommended, recommendation, encouraged, discouraged, preferred,
    never, always, only once, exactly, at most, at least, ensure, ensures, expected, assume,
    assumed, responsible, responsibility, has to, have to, need to, needs to, not safe, frozen
    """.replace("\n    ", " ")
    .strip()
    .split(", ")
)
_NORMATIVE = re.compile(rf"\b(?:(?i:{'|'.join(NORMATIVE)})|MAY)\b")

_ROLE = re.compile(r":[a-z:]+:`([^`]*)`")
_TARGET = re.compile(r"\s*<[^<>`]*>(?=`)")
# Where one sentence ends and another begins; quotes, also typographic ones, may be between.
_END = re.compile("(?<=[.?!:])[)\"\u201d\u2019'`*]*\\s+(?=[\"\u201c\u2018'`*(\\[]*[A-Z0-9])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs)\.$")


@dataclass(frozen=True)
class Sentence:
    section: str  # "ArrowDeviceArray.reserved": the heading or the member it is under
    line: int  # 318: where its block begins
    text: str  # as published, without line breaks

    @property
    def hash(self) -> str:
        return sentence_hash(self.text)

    @property
    def normative(self) -> bool:
        return _NORMATIVE.search(self.text) is not None


def sentence_hash(text: str) -> str:
    """The same for every way of marking the same words up: 16 hexadecimal digits."""
    plain = _ROLE.sub(r"\1", _TARGET.sub("", text)).lower()
    words = re.findall(r"[^\W_]+|[<>]=?|[!=]=|-(?=\d)", plain)
    return hashlib.sha256(" ".join(words).encode("utf-8")).hexdigest()[:16]


def read_sentences(
    text: str, form: str, headings: tuple[str, ...] = (), functions: tuple[str, ...] = ()
) -> list[Sentence]:
    """The sentences of a text in their order, each once for its section."""
    match form:
        case "plain":
            blocks = list(read_plain(text, headings))
        case "rst":
            blocks = list(read_rst(text, "", 1))
        case "python":
            blocks = [block for name in functions for block in read_docstring(text, name)]
        case _:
            blocks = list(read_header(text))
    found: dict[tuple[str, str], Sentence] = {}
    for block in blocks:
        for part in _split(block.text):
            sentence = Sentence(block.section, block.line, part)
            found.setdefault((sentence.section, sentence.hash), sentence)
    return list(found.values())


def _split(text: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(text):
        if not _ABBREVIATION.search(text[: match.start()]):
            yield text[start : match.end()].strip()
            start = match.end()
    if text[start:].strip():
        yield text[start:].strip()
