"""The CUDA Array Interface: a module for Python, a header for C++ and a page of the reference."""

from __future__ import annotations

from collections.abc import Iterable

from ..dictionaries import Kind, Rule
from ..model import Spec
from ..render import Filters, Output
from .c import literal, wrap_arguments
from .docs import cell

_WIDTH = 100


def outputs(spec: Spec) -> list[Output]:
    interface = spec.cuda_array_interface
    source, context = f"spec/{interface.id}.yaml", {"cai": interface}
    name = "cuda_array_interface"
    return [
        Output(f"bindings/python/src/fletching/{name}.py", f"python/{name}.py", source, context),
    ]


def tuple_of(values: Iterable[object]) -> str:
    """A tuple in Python."""
    texts = [literal(value) if isinstance(value, str) else str(value) for value in values]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def kind_row(kind: Kind) -> str:
    """A kind in Python's table."""
    cells = [
        literal(kind.name),
        literal(kind.counts),
        tuple_of(kind.sizes),
        f"ordered={kind.ordered}",
        f"numeric={kind.numeric}",
        f"has_unit={kind.has_unit}",
        f"no_number={kind.no_number}",
    ]
    return call(f'"{kind.char}": Kind(', cells)


def rule_row(rule: Rule) -> str:
    """A rule in Python's table."""
    cells = [literal(rule.id), literal(rule.key or ""), literal(rule.severity), str(rule.since)]
    cells += [literal(rule.mend), f"_{rule.name}"]
    return call("Rule(", cells)


def call(opening: str, cells: list[str]) -> str:
    """A call within a table, as ruff would break it."""
    line = f"    {opening}{', '.join(cells)}),"
    if len(line) <= _WIDTH:
        return line
    inner = f"        {', '.join(cells)}"
    if len(inner) <= _WIDTH:
        return f"    {opening}\n{inner}\n    ),"
    rows = "".join(f"        {cell_},\n" for cell_ in cells)
    return f"    {opening}\n{rows}    ),"


def capitalized(text: str) -> str:
    """The text with a capital letter at its beginning, the rest as it is."""
    return text[:1].upper() + text[1:]


FILTERS: Filters = {
    "capitalized": capitalized,
    "cell": cell,
    "kind_row": kind_row,
    "literal": literal,
    "rule_row": rule_row,
    "tuple_of": tuple_of,
    "wrap_arguments": wrap_arguments,
}
