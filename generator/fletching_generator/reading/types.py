"""Parses type expressions of the spec, such as `const void**` or `callback(self: T*) -> int`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

# --- Types -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scalar:
    """A C integer, `char`, or `void`."""

    name: str  # "int64", "int32", "int", "char", "void"


@dataclass(frozen=True)
class Typedef:
    """A named integer type."""

    name: str  # "ArrowDeviceType"
    scalar: Scalar  # Scalar("int32")


@dataclass(frozen=True)
class StructType:
    """A struct of the spec, by name; embedded unless it is behind a pointer."""

    name: str  # "ArrowArray"
    typedef: bool = field(default=False, compare=False)  # True: "DLTensor" in C, without "struct"


Target: TypeAlias = Literal["one", "many", "text", "opaque"]


@dataclass(frozen=True)
class Pointer:
    """A data pointer; `const` says that the pointee is const."""

    to: Type  # Scalar("char")
    const: bool  # True for const char*
    # The target: one value, an array, a NUL-terminated string, or opaque memory. Set for the
    # pointers of a field and of its callback; not part of the C type.
    target: Target | None = field(default=None, compare=False)  # "text"
    nullable: bool | None = field(default=None, compare=False)  # True: it may be NULL


@dataclass(frozen=True)
class FixedArray:
    """An array inside a struct."""

    of: Type  # Scalar("int64")
    count: int  # 3


@dataclass(frozen=True)
class Argument:
    name: str  # "out"
    type: Type  # Pointer(StructType("ArrowSchema"), const=False)


@dataclass(frozen=True)
class Callback:
    """A function pointer; outside of function tables, the first argument is its struct."""

    arguments: tuple[Argument, ...]  # (self, out)
    returns: Type  # Scalar("int"): 0 or an errno value
    name: str | None = None  # "DLPackCurrentWorkStream": the C typedef, if there is one


Type: TypeAlias = Scalar | Typedef | StructType | Pointer | FixedArray | Callback


@dataclass(frozen=True)
class Constant:
    name: str  # "ARROW_FLAG_NULLABLE"
    value: int | str  # 2
    doc: str  # "The field may hold nulls."
    type: str = "int64"  # "uint64": the integer type, for languages that need it


# --- Expressions ----------------------------------------------------------------------------------

SCALAR_SIZES = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "int": 4,
    "char": 1,
}
SCALARS = (*SCALAR_SIZES, "void")

_CALLBACK = re.compile(r"callback\((?P<arguments>.*)\)\s*->\s*(?P<returns>.+)")
_ARGUMENT = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)\s*:\s*(?P<type>.+)")
_DATA = re.compile(r"(?P<const>const\s+)?(?P<name>\w+)(?P<stars>\**)(\[(?P<count>\d+)\])?")


class TypeExpressionError(ValueError):
    """The expression is not a type; the message says why, `hint` how to fix it."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


Names = Mapping[str, Typedef | StructType | Callback]


def parse_type(text: str, names: Names) -> Type:
    """Parses one expression; `names` are the named types of the spec."""
    callback = _CALLBACK.fullmatch(text.strip())
    if callback is None:
        return _parse_data(text, names)
    arguments = tuple(
        _parse_argument(part, names)
        for part in split_arguments(callback["arguments"])
        if part.strip()
    )
    return Callback(arguments, _parse_data(callback["returns"], names))


def split_arguments(text: str) -> Iterator[str]:
    """Splits at the commas outside of brackets."""
    start = depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _parse_argument(text: str, names: Names) -> Argument:
    match = _ARGUMENT.fullmatch(text.strip())
    if match is None:
        raise TypeExpressionError(
            f"'{text.strip()}' is not an argument", "write it as 'name: type'"
        )
    return Argument(match["name"], parse_type(match["type"], names))


def _parse_data(text: str, names: Names) -> Type:
    match = _DATA.fullmatch(text.strip())
    if match is None:
        raise TypeExpressionError(
            f"'{text.strip()}' is not a type",
            "write a scalar, a struct, T*, const T*, T[n] or callback(name: T, ...) -> T",
        )
    base = _named(match["name"], names)
    if match["const"] and not match["stars"]:
        raise TypeExpressionError(f"'{text.strip()}' is const without a pointer", "remove 'const'")
    parsed: Type = base
    for level in range(len(match["stars"])):
        parsed = Pointer(parsed, const=bool(match["const"]) and level == 0)
    if match["count"]:
        if int(match["count"]) == 0:
            raise TypeExpressionError(f"'{text.strip()}' has no elements", "write a count above 0")
        parsed = FixedArray(parsed, int(match["count"]))
    return parsed


def _named(name: str, names: Names) -> Type:
    if name in SCALARS:
        return Scalar(name)
    if name in names:
        return names[name]
    raise TypeExpressionError(
        f"type '{name}' is not defined",
        "define it as a typedef, struct or function, or use one of " + ", ".join(SCALARS),
    )


def depth(type_: Type) -> int:
    """Returns the number of pointers before a value, including the pointers of an array's
    elements."""
    match type_:
        case Pointer(to=to):
            return 1 + depth(to)
        case FixedArray(of=of):
            return depth(of)
        case _:
            return 0


def spell(type_: Type) -> str:
    """Returns the type in the spelling of the spec; the inverse of `parse_type`."""
    match type_:
        case Scalar(name=name) | Typedef(name=name) | StructType(name=name):
            return name
        case Pointer(to=to, const=const):
            return ("const " if const else "") + spell(to) + "*"
        case FixedArray(of=of, count=count):
            return f"{spell(of)}[{count}]"
        case Callback(arguments=arguments, returns=returns):
            inner = ", ".join(f"{a.name}: {spell(a.type)}" for a in arguments)
            return f"callback({inner}) -> {spell(returns)}"
