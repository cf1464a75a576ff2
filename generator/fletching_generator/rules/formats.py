"""Cuts a published text of any format into blocks of running text, by section.

How each format is read:

- `plain`: running text. A heading ends in `#`, or is in the document's list of headings.
- `rst`: directives that hold text (notes, fields) are read, comments are not. A row of a table is
  a block of its own.
- `python`: the docstrings of the functions that the document names, read as `rst`.
- `c-header`: the comments. A Doxygen command begins a block of its own.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

_BULLET = re.compile(r"[-*•] +(?:- +)?|\(?\d+[.)] +|\(\d+\)$|:[a-z ]+[^:`]*: +|#\. +")
_DIRECTIVE = re.compile(r"\.\. (?:\|\w+\| )?([\w:-]+)::\s*(.*)")
_CODE_DIRECTIVES = {"code-block", "code", "image", "toctree", "highlight", "math"}
_MEMBER_DIRECTIVES = {"c:member", "c:macro", "py:method"}
_MEMBER = re.compile(r"\b\w+\.\w+\b|__\w+__")
_COMMENT = re.compile(r"(?://+[!/]?|/\*+!?|^\s*\*(?!/)|(?<!\S)# )\s*(.*?)\s*(?:\*/)?$")
_CODE = re.compile(r"[;{}]$|^(?:#(?:ifndef|define|endif|include)\b|[{}]|\.\w+ = )")
_UNDERLINE = re.compile(r"([=\-~'^\"])\1{2,}$")


@dataclass
class Block:
    section: str
    line: int
    text: str


class _Blocks:
    """Collects lines into blocks."""

    def __init__(self) -> None:
        self.done: list[Block] = []
        self._open: Block | None = None

    def add(self, section: str, line: int, text: str) -> None:
        if self._open is None:
            self._open = Block(section, line, text)
        else:
            self._open.text += f" {text}"

    def end(self) -> None:
        if self._open is not None:
            self.done.append(self._open)
        self._open = None


def read_plain(text: str, headings: tuple[str, ...]) -> Iterator[Block]:
    blocks, section, above = _Blocks(), "", ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        trailing = re.match(r"[^/]*[;{}]\s*(// .*)", line)
        if trailing:
            blocks.end()
            line = trailing[1]
        if line in headings or (line.endswith("#") and not line.startswith("#")):
            blocks.end()
            section = _section_name(line.rstrip("#"))
        elif not line or _BULLET.match(line):
            blocks.end()
            if line:
                blocks.add(section, number, line)
        elif line.startswith("//"):
            if not above.startswith("//"):
                blocks.end()
            blocks.add(section, number, line.strip("/ "))
        elif _CODE.search(line):
            blocks.end()
        else:
            if above.startswith("//"):
                blocks.end()
            blocks.add(section, number, line)
        above = line
    blocks.end()
    yield from blocks.done


def _section_name(heading: str) -> str:
    """Of a declaration the member's name, else the heading itself."""
    member = _MEMBER.search(heading)
    return member[0] if member else heading.strip().replace("`", "")


def read_docstring(text: str, name: str) -> Iterator[Block]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            docstring = ast.get_docstring(node, clean=False) or ""
            first, _, rest = docstring.partition("\n")
            lines = f"{first}\n{textwrap.dedent(rest)}"
            yield from read_rst(lines, name, node.body[0].lineno)


def read_rst(text: str, section: str, first_line: int) -> Iterator[Block]:
    blocks, reader = _Blocks(), _Rst(section)
    lines = text.splitlines()
    for index, line in enumerate(lines):
        below = lines[index + 1] if index + 1 < len(lines) else ""
        for text_line in reader.read(line, below, blocks):
            blocks.add(reader.section, index + first_line, text_line)
    blocks.end()
    yield from blocks.done


class _Rst:
    """The kind of each line of reStructuredText."""

    def __init__(self, section: str) -> None:
        self.section = section
        self._top = section
        self._code_above: int | None = None  # the indentation above a code block
        self._indent: int | None = None  # of the open block

    def read(self, raw: str, below: str, blocks: _Blocks) -> list[str]:
        """The text of a line, in a list of one, or nothing."""
        line, indent = raw.strip(), len(raw) - len(raw.lstrip())
        if not line:
            self._end(blocks)
            return []
        if self._code_above is not None and indent > self._code_above:
            return self._code(line, blocks)
        self._code_above = None
        if indent == 0 and _UNDERLINE.match(below.strip()) and not _UNDERLINE.match(line):
            self._end(blocks)
            if not self._top:
                self.section = _section_name(line)
            return []
        if line.startswith(".."):
            self._end(blocks)
            self._directive(line, indent)
            return []
        if re.fullmatch(r"[=+\-~'^\"| ]+", line):
            self._end(blocks)
            return []
        return self._text(line, indent, blocks)

    def _end(self, blocks: _Blocks) -> None:
        blocks.end()
        self._indent = None

    def _code(self, line: str, blocks: _Blocks) -> list[str]:
        comment = _COMMENT.search(line)
        if comment is None or comment.start() > 0:
            blocks.end()
        return [comment[1]] if comment and comment[1] else []

    def _directive(self, line: str, indent: int) -> None:
        match = _DIRECTIVE.match(line)
        if match is None:  # a comment or a target
            self._code_above = indent if not line.startswith(".. _") else None
        elif match[1] in _CODE_DIRECTIVES:
            self._code_above = indent
        elif match[1] in _MEMBER_DIRECTIVES:
            self.section = _section_name(match[2])

    def _text(self, line: str, indent: int, blocks: _Blocks) -> list[str]:
        bullet = _BULLET.match(line)
        if bullet:
            self._end(blocks)
        elif self._indent is None:
            self._indent = indent
        elif indent < self._indent or indent > self._indent + 1:
            hanging = indent > self._indent and line[0].islower()
            if not hanging:
                self._end(blocks)
            self._indent = indent
        if line.startswith("|"):
            self._end(blocks)
        if line.endswith("::"):
            self._code_above = indent
            line = line[:-1]
        return [line]


def read_header(text: str) -> Iterator[Block]:
    """The comments of a C header, each with the declaration below it as its section."""
    pattern = re.compile(r"/\*.*?\*/|(?:^[ \t]*//[^\n]*\n?)+", re.DOTALL | re.MULTILINE)
    for match in pattern.finditer(text):
        section = _declared(text, match.end())
        number = text.count("\n", 0, match.start()) + 1
        blocks, in_code = _Blocks(), False
        for offset, raw in enumerate(match[0].splitlines()):
            line = re.sub(r"^\s*(?:/\*+!?|//+|\*(?!/))?\s*|\s*\*/\s*$", "", raw)
            command = re.match(r"[\\@](\w+)(?:\{[^}]*\})?\s*", line)
            if command:
                in_code = command[1] == "code" or (in_code and command[1] != "endcode")
                line = line[command.end() :]
            if command or not line or _BULLET.match(line):
                blocks.end()
            if line and not in_code:
                blocks.add(section, number + offset, line)
        blocks.end()
        yield from blocks.done


def _declared(text: str, start: int) -> str:
    """The name in the next declaration: `DLTensor.strides`, `DLTensor`, `DLPACK_MAJOR_VERSION`."""
    below = re.sub(r"/\*.*?\*/|//[^\n]*", "", text[start:], flags=re.DOTALL).lstrip()
    macro = re.match(r"#define (\w+)", below)
    if macro:
        return macro[1]
    head = re.match(r"[^;{,]*", re.sub(r"^#.*$", "", below, flags=re.MULTILINE).lstrip())
    line = head[0] if head else ""
    for pattern in (r"\(\*(\w+)\)", r"\b(?:struct|enum) (\w+)\s*$", r"(\w+)(?: *=.*|\[\d+\])?\s*$"):
        match = re.search(pattern, line)
        if match and match[1] not in ("struct", "enum", "int32_t"):
            owner = _enclosing(text, start)
            return f"{owner}.{match[1]}" if owner else match[1]
    closing = re.search(r"^\} *(\w+);", below, re.MULTILINE)
    return closing[1] if closing else ""


def _enclosing(text: str, start: int) -> str:
    """The struct or enum in whose braces a place is, or nothing."""
    above = text[:start].rpartition("\n}")[2]
    opening = re.search(r"^(?:typedef )?(?:struct|enum)\b *(\w*)[^;{}()]*\{", above, re.MULTILINE)
    if opening is None:
        return ""
    closing = re.search(r"^\} *(\w*);", text[start:], re.MULTILINE)
    return opening[1] or (closing[1] if closing else "")
