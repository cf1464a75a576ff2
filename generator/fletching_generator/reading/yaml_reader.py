"""Reads YAML into plain data with libyaml, and remembers the line of every key.

The subset that the spec needs: one document of mappings with text as keys, lists, text, integers,
booleans and null, as YAML 1.2 spells them. Fractions, anchors, tags and further documents are
refused: a version such as 1.10 is not a number, and a reader should see every value in place.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

# Deeper than any file of the spec, far below what a recursive walk can bear.
_DEEPEST = 50
_LONGEST_NUMBER = 100

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FRACTION = re.compile(
    r"[-+]?(?:\.inf|\.Inf|\.INF|(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?)"
    r"|\.nan|\.NaN|\.NAN"
)

Lines = dict[tuple[str | int, ...], int]  # {("devices", 3, "value"): 12}


class YamlError(Exception):
    """The text is not YAML, or not the subset of it that the spec uses."""

    def __init__(self, line: int, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.hint = line, problem, hint


@dataclass
class _Open:
    """A mapping or a list that has not ended yet."""

    content: dict[str, Any] | list[Any]
    path: tuple[str | int, ...]
    keys: list[str] = field(default_factory=list)  # of a mapping: the key that has no value yet


def read_yaml(text: str) -> tuple[Any, Lines]:
    """The content, and the line of each key. Raises YamlError."""
    reader = _Reader()
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        hint = "fix the syntax; a value with ': ' or '#' in it needs quotes"
        raise YamlError(mark.line + 1 if mark else 1, f"not YAML: {problem}", hint) from None
    except yaml.YAMLError as error:
        problem = f"not YAML: {str(error).splitlines()[0]}"
        raise YamlError(1, problem, "remove the character") from None
    return reader.content, reader.lines


class _Reader:
    """Builds the content from the events of the parser, without recursion."""

    def __init__(self) -> None:
        self.content: Any = None
        self.lines: Lines = {}
        self._open: list[_Open] = []
        self._documents = 0

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise YamlError(line, "a second document begins", "remove the '---'")
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open.pop()
            case yaml.AliasEvent():
                raise YamlError(line, f"'*{event.anchor}' is an alias", "write the value out")
            case yaml.NodeEvent():
                self._node(event, line)

    def _node(self, event: Any, line: int) -> None:
        if event.anchor:
            raise YamlError(line, f"'&{event.anchor}' is an anchor", "remove it")
        if event.tag:
            raise YamlError(line, f"'{event.tag}' is a tag", "remove it")
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event.value, line) if event.implicit[0] else event.value
            if self._expects_key():
                self._key(value, line)
            else:
                self._add(value, line)
        elif self._expects_key():
            raise YamlError(line, "a key is a mapping or a list", "use text as the key")
        elif len(self._open) == _DEEPEST:
            raise YamlError(line, f"more than {_DEEPEST} levels", "nest less deeply")
        else:
            content: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._open.append(_Open(content, self._add(content, line)))

    def _expects_key(self) -> bool:
        last = self._open[-1] if self._open else None
        return last is not None and isinstance(last.content, dict) and not last.keys

    def _key(self, key: Any, line: int) -> None:
        last = self._open[-1]
        if not isinstance(key, str):
            problem = f"a key is {json.dumps(key)}: expected text"
            raise YamlError(line, problem, "name the key, or put it in quotes")
        if key in last.content:
            raise YamlError(line, f"key '{key}' is a duplicate", "rename or remove one")
        last.keys.append(key)
        self.lines[(*last.path, key)] = line

    def _add(self, value: Any, line: int) -> tuple[str | int, ...]:
        """Puts a value where it belongs; returns its path."""
        if not self._open:
            self.content = value
            return ()
        last = self._open[-1]
        if isinstance(last.content, dict):
            key = last.keys.pop()
            last.content[key] = value
            return (*last.path, key)
        last.content.append(value)
        path = (*last.path, len(last.content) - 1)
        self.lines[path] = line
        return path


def _scalar(text: str, line: int) -> Any:
    """The value of a plain scalar in YAML 1.2's core schema."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _FRACTION.fullmatch(text):
        raise YamlError(line, f"{text[:20]} is a fraction", "put it in quotes")
    if not _INT.fullmatch(text):
        return text
    if len(text) > _LONGEST_NUMBER:
        raise YamlError(line, f"a number has {len(text)} digits", "write a smaller one")
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
