"""Wraps Java code exactly like google-java-format."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from ...spelling import wrap

_WIDTH = 100


@dataclass(frozen=True)
class Call:
    """A call, or another expression with a list in parentheses."""

    head: str  # "ArrowArray.setLength"
    arguments: list[Node]


@dataclass(frozen=True)
class Broken:
    """Two parts. If they do not fit on one line, the second goes to the next line."""

    head: str  # "(p, v) ->", "int x ="
    body: Node


Node = str | Call | Broken


def fit(node: Node, indent: int, tail: str = "") -> str:
    """Formats the node on one line, or breaks it at the outermost level and then further inside."""
    flat = _flat(node) + tail
    if indent + len(flat) <= _WIDTH or isinstance(node, str):
        return flat
    inner = "\n" + " " * (indent + 4)
    if isinstance(node, Broken):
        return node.head + inner + fit(node.body, indent + 4, tail)
    joined = ", ".join(_flat(a) for a in node.arguments) + ")" + tail
    if indent + 4 + len(joined) <= _WIDTH:
        return f"{node.head}({inner}{joined}"
    last = len(node.arguments) - 1
    ends = ["," if i < last else ")" + tail for i in range(last + 1)]
    lines = [fit(a, indent + 4, end) for a, end in zip(node.arguments, ends, strict=True)]
    return f"{node.head}({inner}{inner.join(lines)}"


def _flat(node: Node) -> str:
    match node:
        case Call(head=head, arguments=arguments):
            return f"{head}({', '.join(_flat(a) for a in arguments)})"
        case Broken(head=head, body=body):
            return f"{head} {_flat(body)}"
        case _:
            return node


def javadoc(paragraphs: str | list[str], indent: int, tags: Sequence[str] = ()) -> str:
    """Returns a Javadoc comment: plain text as HTML, then block tags such as `@return`."""
    texts = [paragraphs] if isinstance(paragraphs, str) else paragraphs
    single = f"/** {_escaped(texts[0])} */"
    if len(texts) == 1 and not tags and indent + len(single) <= _WIDTH:
        return single
    margin = "\n" + " " * indent + " *"
    blocks = []
    for i, text in enumerate(texts):
        blocks.append(_block(f"<p>{_escaped(text)}" if i else _escaped(text), indent))
    if tags:
        blocks.append("".join(_block(_escaped(tag), indent, "    ") for tag in tags))
    return "/**" + margin.join(blocks) + f"{margin}/"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("*/", "*&#47;")


def _block(text: str, indent: int, rest: str = "") -> str:
    margin = " " * indent + " * "
    return "\n" + wrap(text, _WIDTH, margin, margin + rest)
