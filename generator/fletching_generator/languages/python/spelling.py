"""Wraps Python code like ruff."""

from __future__ import annotations

WIDTH = 100


def call(head: str, arguments: list[str], indent: int = 0, tail: str = "") -> str:
    """Formats `head(arguments)` like ruff: on one line, on three, or one argument per line."""
    margin = " " * indent
    line = f"{margin}{head}({', '.join(arguments)}){tail}"
    if len(line) <= WIDTH:
        return line
    inner = f"{margin}    {', '.join(arguments)}"
    if len(inner) > WIDTH:
        inner = "\n".join(f"{margin}    {argument}," for argument in arguments)
    return f"{margin}{head}(\n{inner}\n{margin}){tail}"


def items(head: str, values: list[str], indent: int) -> str:
    """Formats `head` and a tuple of the values like ruff: on one line, or one value per line."""
    margin = " " * indent
    line = f"{margin}{head}({', '.join(values)}{',' if len(values) == 1 else ''})"
    if len(line) <= WIDTH:
        return line
    rows = "".join(f"{margin}    {value},\n" for value in values)
    return f"{margin}{head}(\n{rows}{margin})"
