"""Sentences of the spec as Markdown: names as code, and links to the published texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from ..rules.rulebook import Text

# Code spans and link targets, which stay unchanged, or a name with an underscore, `*` or `Error`.
_NAME = re.compile(
    r"`[^`]*`|\]\([^)]*\)"
    r"|(?P<name>(?<![\w.:])(?:(?:[\w.]|::)*_(?:(?:[\w.]|::)*\w)?\**|\w+\*+|[A-Z]\w+Error)(?![\w/]))"
)


def prose(text: str) -> str:
    """Marks names with underscores, C pointer types and exceptions as code."""
    return _NAME.sub(lambda match: f"`{match[0]}`" if match["name"] else match[0], text)


def published(document: str, texts: Iterable[Text], section: str = "") -> str:
    """Returns a link to a published text or to its section; the plain name if unknown."""
    name = section or document
    for text in texts:
        if document not in (text.title, PurePosixPath(text.url).name, PurePosixPath(text.url).stem):
            continue
        if not section:
            return f"[{prose(text.title)}]({text.url})"
        links = [text.link(entry) for entry in text.sections if entry.name == section]
        if links:
            return f"[{prose(section)}]({links[0]})"
    return prose(name)
