"""The target of each pointer in the spec (one value, several, or a string), and its nullability.

The spec lists the targets separately from the type, outermost pointer first: `many? of one` is a
pointer to an array of pointers to one struct each, of which only the outermost may be NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import SpecError
from ..reading.documents import Document, KeyPath
from ..reading.types import Argument, Callback, FixedArray, Pointer, Scalar, Target, Type, depth

RETURNED = "return"  # the returned pointer; no C argument has this name
_LEVEL = re.compile(r"(?P<target>one|many|text|opaque)(?P<nullable>\?)?")
_WORDS = {
    "one": "one value",
    "many": "an array",
    "text": "a NUL-terminated string",
    "opaque": "opaque data",
}


class PointersError(ValueError):
    """The facts do not match the type; the message says why, `hint` how to fix it."""

    def __init__(self, key: str | None, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.key, self.hint = key, hint


def describe(document: Document, keys: KeyPath, entry: Mapping[str, Any], type_: Type) -> Type:
    """Returns a field's type with the pointer facts of its entry. Raises SpecError."""
    contract = entry.get("contract")
    place: list[str | int] = list(keys)
    try:
        if not isinstance(type_, Callback):
            if contract is not None:
                return type_  # the semantic checks reject it
            return _describe_data(entry.get("points_to"), type_)
        if "points_to" in entry:
            raise PointersError(
                "points_to", "a callback is not a pointer to data", "write it in the contract"
            )
        if contract is None:
            return type_  # the semantic checks require a contract
        place.append("contract")
        _check_failure(contract["failure"], type_.returns)
        return _describe_callback(contract["points_to"], type_)
    except PointersError as error:
        at = [*place, *(error.key.split("/") if error.key else ())]
        raise SpecError(document.mistake(at, str(error), error.hint)) from None


def in_words(type_: Type) -> str:
    """Describes the target of a pointer; empty for other types."""
    if isinstance(type_, FixedArray):
        return in_words(type_.of)
    if not isinstance(type_, Pointer):
        return ""
    inner = in_words(type_.to)
    null = "may be NULL" if type_.nullable else "never NULL"
    return f"{_WORDS[str(type_.target)]} ({null})" + (f" of: {inner}" if inner else "")


def nullable(points_to: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the arguments that may be NULL."""
    named = {name: text for name, text in points_to.items() if name != RETURNED and "." not in name}
    return tuple(name for name, text in named.items() if text.split(" of ")[0].endswith("?"))


def _describe_data(text: str | None, type_: Type) -> Type:
    if depth(type_) == 0:
        if text is not None:
            raise PointersError("points_to", "not a pointer: expected none", "remove it")
        return type_
    if text is None:
        raise PointersError(None, "a pointer without 'points_to'", "add 'points_to: ...'")
    return _apply(text, type_, "points_to")


def _describe_callback(points_to: Mapping[str, str], callback: Callback) -> Callback:
    paths = list(_pointers(callback))
    for path in points_to:
        if path not in paths:
            known = f"use one of {', '.join(paths)}" if paths else "remove it"
            raise PointersError(f"points_to/{path}", f"unknown pointer '{path}'", known)
    surrounding = callback.arguments[0].name if callback.arguments else None
    for path in paths:
        if path not in points_to and path != surrounding:
            raise PointersError("points_to", f"the pointer '{path}' is missing", f"add '{path}:'")
    return _apply_all(points_to, callback, "")


def _pointers(callback: Callback, prefix: str = "") -> Iterator[str]:
    """Yields the names of all pointers among the arguments and the result, and of pointers inside
    an argument."""
    for argument in callback.arguments:
        if isinstance(argument.type, Callback):
            yield from _pointers(argument.type, f"{prefix}{argument.name}.")
        elif depth(argument.type):
            yield prefix + argument.name
    if depth(callback.returns):
        yield prefix + RETURNED


def _apply_all(points_to: Mapping[str, str], callback: Callback, prefix: str) -> Callback:
    def apply(name: str, type_: Type) -> Type:
        path = prefix + name
        if isinstance(type_, Callback):
            return _apply_all(points_to, type_, f"{path}.")
        # The struct that contains the callback is never NULL.
        text = points_to.get(path, "one")
        return _apply(text, type_, f"points_to/{path}") if depth(type_) else type_

    arguments = tuple(Argument(a.name, apply(a.name, a.type)) for a in callback.arguments)
    return replace(callback, arguments=arguments, returns=apply(RETURNED, callback.returns))


def _apply(text: str, type_: Type, key: str) -> Type:
    if isinstance(type_, FixedArray):
        return replace(type_, of=_apply(text, type_.of, key))
    levels = text.split(" of ")
    if len(levels) != depth(type_):
        problem = f"'{text}' has {len(levels)} levels, the type has {depth(type_)}"
        raise PointersError(key, problem, "name one, many, text or opaque for each '*'")
    return _apply_levels(levels, type_, key)


def _apply_levels(levels: list[str], type_: Type, key: str) -> Type:
    if not isinstance(type_, Pointer):
        return type_
    match = _LEVEL.fullmatch(levels[0])
    if match is None:
        hint = "write one, many, text or opaque, with '?' where it may be NULL"
        raise PointersError(key, f"'{levels[0]}' is not for a pointer", hint)
    target: Target = match["target"]  # type: ignore[assignment]
    void, char = type_.to == Scalar("void"), type_.to == Scalar("char")
    if (target == "opaque") != void or (target == "text" and not char):
        hint = "void is opaque, a text is of char, everything else is one or many"
        raise PointersError(key, f"'{target}' does not fit the type", hint)
    inner = _apply_levels(levels[1:], type_.to, key)
    return replace(type_, to=inner, target=target, nullable=match["nullable"] is not None)


def _check_failure(failure: str | int, returns: Type) -> None:
    allowed: tuple[str | int, ...] = ("errno", -1)
    if isinstance(returns, Pointer):
        allowed = ("NULL",)
    elif returns == Scalar("void"):
        allowed = ("nothing",)
    if failure not in allowed:
        problem = f"'{failure}' does not fit the callback's return type"
        raise PointersError("failure", problem, f"write {' or '.join(map(str, allowed))}")
