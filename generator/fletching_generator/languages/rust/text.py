"""Rust's spelling of names, types and strings."""

from __future__ import annotations

import re

from ... import spelling
from ...reading.types import (
    Argument,
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...spelling import fill

WIDTH = 100

FUNCTION = 'unsafe extern "C" fn'
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
            return f"Option<{signature(FUNCTION, type_)}>"


def signature(head: str, callback: Callback, indent: int = 0) -> str:
    """Returns `head(arguments) -> result`, with one argument per line if it is too long."""
    void = callback.returns == Scalar("void")
    tail = ")" if void else f") -> {type_name(callback.returns)}"
    arguments = [f"{identifier(a.name)}: {type_name(a.type)}" for a in callback.arguments]
    line = f"{head}({', '.join(arguments)}{tail}"
    if len(line) < WIDTH:
        return line
    inner = "".join(f"{argument_line(a, indent + 4)},\n" for a in callback.arguments)
    return f"{head}(\n{inner}{' ' * indent}{tail}"


def argument_line(argument: Argument, indent: int) -> str:
    """Returns an argument on its line; a function may need more lines."""
    margin = " " * indent
    line = f"{margin}{identifier(argument.name)}: {type_name(argument.type)}"
    if len(line) < WIDTH or not isinstance(argument.type, Callback):
        return line
    function = signature(f"{margin}    {FUNCTION}", argument.type, indent + 4)
    return f"{margin}{identifier(argument.name)}: Option<\n{function},\n{margin}>"


def doc(text: str, indent: int = 0, bullet: str = "") -> str:
    """Returns the lines of a doc comment, with brackets escaped so that they are not links."""
    start = f"{' ' * indent}/// "
    text = re.sub(r"([\[\]<])", r"\\\1", text)
    return fill(text, WIDTH, start + bullet, start + " " * len(bullet))
