"""Makes dataclasses from TOML tables: no unknown or missing keys, and values of the right types."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any


class TableError(ValueError):
    """The message names the file, the key and the expected value."""


def struct(
    kind: type, table: object, where: str, at: str, more: Mapping[str, str] | None = None
) -> Any:
    """Makes the dataclass `kind` from a table. The table may have only the fields as keys."""
    if not isinstance(table, dict):
        raise TableError(f"{where}: {at}: expected a table, got {table!r}")
    known = {f.name: f for f in fields(kind) if f.name not in (more or {})}
    hints = typing.get_type_hints(kind)
    for key in table:
        if key not in known:
            raise TableError(f"{where}: {at}{key}: unknown key: expected one of {', '.join(known)}")
    required = [
        f.name for f in known.values() if f.default is MISSING and f.default_factory is MISSING
    ]
    for key in required:
        if key not in table:
            raise TableError(f"{where}: {at}{key}: missing key: expected {', '.join(required)}")
    values = {key: _value(hints[key], table[key], where, f"{at}{key}") for key in table}
    return kind(**values, **(more or {}))


def _value(kind: Any, found: object, where: str, at: str) -> Any:
    if isinstance(kind, types.UnionType):  # X | None
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    if is_dataclass(kind):
        return struct(typing.cast(type, kind), found, where, f"{at}.")
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(found, list):
        return tuple(_value(arguments[0], v, where, f"{at}[{i}]") for i, v in enumerate(found))
    if origin is not None and origin is not tuple and isinstance(found, dict):
        return {key: _value(arguments[1], v, where, f"{at}.{key}") for key, v in found.items()}
    if isinstance(kind, type) and type(found) is kind:
        return found
    raise TableError(f"{where}: {at}: expected {_kind_name(kind)}, got {found!r}")


def _kind_name(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if origin is None:
        return {str: "a string", int: "an integer", bool: "true or false"}[kind]
    return "an array" if origin is tuple else "a table"
