"""Cuts a published text into sections and hashes each one.

- `rst`: a section begins at a heading or at a directive that describes a member.
- `python`: a section is the docstring of a function that `functions` names.
- `c-header`: a section is a struct, an enum or a function type, together with the comment above it.
  The text between sections is the section "".
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNDERLINE = re.compile(r"([=\-~'^\"*])\1{2,}$")
_DIRECTIVE = re.compile(r"\s*\.\. (?:c:member|c:macro|py:method):: (.*)")
_MEMBER = re.compile(r"\b\w+\.\w+\b|\w+(?=\()")
_COMMENT_ABOVE = r"(?:^[ \t]*(?://|/?\*)[^\n]*\n)*"
_DECLARATION = re.compile(
    rf"{_COMMENT_ABOVE}"
    r"(?:^(?:typedef )?(?:struct|enum)\b[^;{}()]*\{.*?^\}[^;\n]*;|^typedef [^;{}]*\(\*\w+\)[^;]*;)",
    re.DOTALL | re.MULTILINE,
)
_DECLARED = re.compile(r"^\} *(\w+);|^(?:typedef )?(?:struct|enum) (\w+)|\(\*(\w+)\)", re.MULTILINE)

Part = tuple[str, int, str]  # name of the section, line, text


@dataclass(frozen=True)
class Section:
    name: str  # "ArrowDeviceArray.reserved": the heading or the member
    line: int  # 318
    hash: str  # "4c2bcc5bb5ab2f0f": independent of line breaks and indentation


def read_sections(text: str, form: str, functions: tuple[str, ...] = ()) -> list[Section]:
    """The sections in their order; sections with the same name count as one.

    Raises SyntaxError if `text` should be Python and is not.
    """
    match form:
        case "rst":
            parts = _read_rst(text)
        case "python":
            parts = _read_docstrings(text, functions)
        case _:
            parts = _read_header(text)
    lines: dict[str, int] = {}
    words: dict[str, list[str]] = {}
    for name, line, content in parts:
        if content.split():
            lines.setdefault(name, line)
            words.setdefault(name, []).extend(content.split())
    return [Section(name, line, _hash(words[name])) for name, line in lines.items()]


def _hash(words: list[str]) -> str:
    return hashlib.sha256(" ".join(words).encode("utf-8")).hexdigest()[:16]


def _read_rst(text: str) -> Iterator[Part]:
    lines = text.splitlines()
    name, first = "", 1  # the lines above the first heading are no section
    for number, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=True), 1):
        directive = _DIRECTIVE.match(line)
        heading = line[:1].strip() and _UNDERLINE.match(below) and not _UNDERLINE.match(line)
        if directive or heading:
            if name:
                yield name, first, "\n".join(lines[first - 1 : number - 1])
            member = _MEMBER.search(line) if directive else None
            name = member[0] if member else (directive[1] if directive else line).replace("`", "")
            first = number
    yield name, first, "\n".join(lines[first - 1 :])


def _read_docstrings(text: str, functions: tuple[str, ...]) -> Iterator[Part]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            yield node.name, node.lineno, ast.get_docstring(node, clean=False) or ""


def _read_header(text: str) -> Iterator[Part]:
    end = 0
    for match in _DECLARATION.finditer(text):
        yield "", text.count("\n", 0, end) + 1, text[end : match.start()]
        names = _DECLARED.search(re.sub(r"//[^\n]*|/\*.*?\*/", "", match[0], flags=re.DOTALL))
        name = next((n for n in names.groups() if n), "") if names else ""
        yield name, text.count("\n", 0, match.start()) + 1, match[0]
        end = match.end()
    yield "", text.count("\n", 0, end) + 1, text[end:]
