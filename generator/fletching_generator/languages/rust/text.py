"""Rust's spelling of names, types and strings."""

from __future__ import annotations

import re

from ... import spelling
from ...reading.types import (
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...spelling import wrap

WIDTH = 100

_FUNCTION = 'unsafe extern "C" fn'
SCALARS = {
    "int": "c_int",
    "char": "c_char",
    "void": "c_void",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "intptr": "isize",
    "uintptr": "usize",
}
_BUILT_IN = {"size_t": "usize"}  # Rust types of C types
# Words that are valid C names and Rust keywords, which need the form r#name.
_KEYWORDS = """
    abstract as async await become box crate dyn final fn gen impl in let loop macro match mod move
    mut override priv pub ref self trait type unsafe unsized use where yield
"""


def identifier(name: str) -> str:
    """Returns a valid name. `self` becomes `this`, because r# does not work for it."""
    return spelling.identifier(name, _KEYWORDS, lambda n: "this" if n == "self" else f"r#{n}")


def type_name(type_: Type) -> str:
    match type_:
        case Scalar(name=name):
            return SCALARS[name]
        case Typedef(name=name) | StructType(name=name):
            return _BUILT_IN.get(name, name)
        case Pointer(to=to, const=const):
            return f"*{'const' if const else 'mut'} {type_name(to)}"
        case FixedArray(of=of, count=count):
            return f"[{type_name(of)}; {count}]"
        case Callback():
            arguments = (f"{identifier(a.name)}: {type_name(a.type)}" for a in type_.arguments)
            return f"Option<{_FUNCTION}({', '.join(arguments)}){returned(type_)}>"


def returned(callback: Callback) -> str:
    return "" if callback.returns == Scalar("void") else f" -> {type_name(callback.returns)}"


def signature(head: str, callback: Callback, tail: str, indent: int) -> str:
    """Returns `head(arguments) -> result tail`, wrapped like rustfmt."""
    lines = [member(identifier(a.name), a.type, indent + 4) for a in callback.arguments]
    return enclose(head, lines, f"){returned(callback)}{tail}", indent)


def enclose(head: str, lines: list[str], tail: str, indent: int) -> str:
    """Returns head, arguments and tail on one line, or the lines of the arguments unchanged."""
    margin = " " * indent
    line = f"{margin}{head}({' '.join(map(str.strip, lines)).removesuffix(',')}{tail}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return "\n".join([f"{margin}{head}(", *lines, f"{margin}{tail}"])


def member(name: str, type_: Type, indent: int) -> str:
    """Returns `name: type,`, wrapped like rustfmt."""
    margin, type_text = " " * indent, f"{type_name(type_)},"
    line = f"{margin}{name}: {type_text}"
    if len(line) <= WIDTH or not isinstance(type_, Callback):
        return line
    if indent + 4 + len(type_text) <= WIDTH:
        return f"{margin}{name}:\n{margin}    {type_text}"
    return f"{margin}{name}: Option<\n{signature(_FUNCTION, type_, ',', indent + 4)}\n{margin}>,"


def doc(text: str, indent: int = 0, bullet: str = "") -> str:
    """Returns the lines of a doc comment, with brackets escaped so that they are not links."""
    start = f"{' ' * indent}/// "
    text = re.sub(r"([\[\]<])", r"\\\1", text)
    return wrap(text, WIDTH, start + bullet, start + " " * len(bullet))
