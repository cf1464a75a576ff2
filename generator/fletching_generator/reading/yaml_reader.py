"""Reads YAML into plain data, and remembers the line of every key.

The spec uses a subset of YAML 1.2: one document of mappings with text as keys, lists, text,
integers, booleans and null. Fractions, anchors and tags are rejected: a version such as 1.10 is not
a number, and a reader should see every value in place.
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_LONGEST_NUMBER = 100  # characters; Python does not convert much longer ones

Path = tuple[str | int, ...]
Lines = dict[Path, int]  # {("devices", 3, "value"): 12}


class YamlError(Exception):
    """The text is not YAML, or not the subset of it that the spec uses."""

    def __init__(self, line: int, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.hint = line, problem, hint


class _Composer(Composer):
    """Refuses anchors, aliases and tags, which the nodes do not show."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent):
            raise YamlError(line, f"'*{event.anchor}' is an alias", "write the value out")
        if event.anchor:
            raise YamlError(line, f"'&{event.anchor}' is an anchor", "remove it")
        if event.ctag:
            raise YamlError(line, f"'{event.ctag}' is a tag", "remove it")
        return super().compose_node(parent, index)


def read_yaml(text: str) -> tuple[Any, Lines]:
    """The content, and the line of each key. Raises YamlError."""
    parser = YAML(typ="safe", pure=True)
    parser.Composer = _Composer
    lines: Lines = {}
    try:
        root = parser.compose(text)
        return None if root is None else _value(root, (), lines), lines
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        hint = "fix the syntax; a value with ': ' or '#' in it needs quotes"
        raise YamlError(mark.line + 1 if mark else 1, f"not YAML: {problem}", hint) from None
    except YAMLError as error:
        problem = f"not YAML: {str(error).splitlines()[0]}"
        raise YamlError(1, problem, "remove the character") from None
    except RecursionError:
        raise YamlError(1, "too many levels", "nest less deeply") from None


def _value(node: Node, path: Path, lines: Lines) -> Any:
    if isinstance(node, MappingNode):
        return _mapping(node, path, lines)
    if isinstance(node, SequenceNode):
        values = []
        for index, item in enumerate(node.value):
            lines[(*path, index)] = _line(item)
            values.append(_value(item, (*path, index), lines))
        return values
    return _scalar(node)


def _mapping(node: MappingNode, path: Path, lines: Lines) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value in node.value:
        key = key_node.value
        if not str(key_node.tag).endswith((":str", ":timestamp")):
            shown = (key or "null") if isinstance(key_node, ScalarNode) else "a mapping or a list"
            problem = f"a key is {shown}: expected text"
            raise YamlError(_line(key_node), problem, "name the key, or put it in quotes")
        if key in content:
            raise YamlError(_line(key_node), f"key '{key}' is a duplicate", "rename or remove one")
        lines[(*path, key)] = _line(key_node)
        content[key] = _value(value, (*path, key), lines)
    return content


def _scalar(node: Node) -> Any:
    text: str = node.value
    match str(node.tag).rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "float":
            raise YamlError(_line(node), f"{text[:20]} is a fraction", "put it in quotes")
        case "int" if len(text) > _LONGEST_NUMBER:
            problem = f"a number has {len(text)} digits"
            raise YamlError(_line(node), problem, "write a smaller one")
        case "int":
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        case _:
            return text


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
