"""Wraps declarations like clang-format."""

from __future__ import annotations

_WIDTH = 100


def wrap_arguments(head: str, arguments: list[str], tail: str, indent: int = 0) -> str:
    """Puts `head` and the arguments on as few lines as possible, aligned after the parenthesis.

    An argument that is too long there moves all arguments to the line after the parenthesis.
    """
    lines = [head]
    for index, argument in enumerate(arguments or [""]):
        piece = argument + (tail if index >= len(arguments) - 1 else ",")
        space = "" if index == 0 else " "
        used = len(lines[-1]) + (indent if len(lines) == 1 else 0)
        if index == 0 or used + len(space) + len(piece) <= _WIDTH:
            lines[-1] += space + piece
        else:
            lines.append(_continue(piece, indent + len(head)))
    text = "\n".join(lines)
    if head and max(map(len, f"{' ' * indent}{text}".splitlines())) > _WIDTH:
        margin = " " * (indent + 4)
        return f"{head}\n{margin}{wrap_arguments('', arguments, tail, indent + 4)}"
    return text


def _continue(piece: str, column: int) -> str:
    """Returns an argument on its line; a function may need more lines."""
    head, bracket, rest = piece.rpartition(")(")
    if column + len(piece) <= _WIDTH or not bracket:
        return " " * column + piece
    arguments, end, tail = rest.rpartition(")")
    return " " * column + wrap_arguments(head + bracket, arguments.split(", "), end + tail, column)


def return_name(status: str, name: str) -> str:
    """Returns the statement that maps a status number to its name, in a function."""
    condition, answer = f"if (status == {status})", f'return "{name}";'
    fits = len(f"  {condition} {answer}") <= _WIDTH
    return f"{condition} {answer}" if fits else f"{condition}\n    {answer}"
