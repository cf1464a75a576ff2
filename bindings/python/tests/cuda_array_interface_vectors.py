"""The shared dictionaries of tests/cuda_array_interface, as Python values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ATTRIBUTE = "__cuda_array_interface__"
FILE = Path(__file__).parents[3] / "tests" / "cuda_array_interface" / "vectors.json"


class Exposing:
    """An object with the interface."""

    def __init__(self, interface: object) -> None:
        setattr(self, ATTRIBUTE, interface)


@dataclass(frozen=True)
class Vector:
    name: str  # "stream 0"
    interface: object
    breaks: list[str]  # ["stream-zero stream"]
    typed: bool  # can be represented in C++


def load() -> list[Vector]:
    entries = json.loads(FILE.read_text("utf-8"))["vectors"]
    return [
        Vector(e["name"], _interface(e["interface"]), e["breaks"], not e.get("untyped", False))
        for e in entries
    ]


def _interface(value: Any) -> object:
    """Converts a value. At this level a dictionary stays a dictionary; nested dictionaries encode
    other types.
    """
    if not isinstance(value, dict) or list(value) in (["list"], ["bytes"], ["integer"]):
        return _value(value, {})
    interface: dict[str, object] = {}
    interface.update({key: _value(entry, interface) for key, entry in value.items()})
    return interface


def _value(value: Any, around: dict[str, object]) -> object:
    if isinstance(value, list):
        return tuple(_value(element, around) for element in value)
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    match kind:
        case "list":
            return [_value(element, around) for element in content]
        case "object":
            return _object(content, around)
    return int(content) if kind == "integer" else content.encode("utf-8")


def _object(content: Any, around: dict[str, object]) -> object:
    if content is None:
        return object()
    return Exposing(around if content == "self" else _interface(content))
