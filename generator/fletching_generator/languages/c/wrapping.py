"""Wraps declarations like clang-format."""

from __future__ import annotations


def wrap_arguments(head: str, arguments: list[str], tail: str, indent: int, width: int) -> str:
    """Puts `head` and the arguments on as few lines as possible, aligned after the parenthesis."""
    lines = [head]
    for index, argument in enumerate(arguments):
        last = index == len(arguments) - 1
        piece = argument + (tail if last else ",")
        space = "" if index == 0 else " "
        first = len(lines) == 1
        used = len(lines[-1]) + (indent if first else 0)
        if index == 0 or used + len(space) + len(piece) <= width:
            lines[-1] += space + piece
        else:
            lines.append(_continue(piece, indent + len(head), width))
    return "\n".join(lines)


def _continue(piece: str, column: int, width: int) -> str:
    """Returns an argument on its line; a function may need more lines."""
    head, bracket, rest = piece.rpartition(")(")
    if column + len(piece) <= width or not bracket:
        return " " * column + piece
    arguments, end, tail = rest.rpartition(")")
    inner = wrap_arguments(head + bracket, arguments.split(", "), end + tail, column, width)
    return " " * column + inner
