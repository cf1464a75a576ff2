"""The common spelling of the languages: names, literals, texts, numbers by class of target."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

from .spec.layout import FieldLayout, StructLayout
from .spec.model import Contract, Field, Interface, Struct

# --- Names and literals ------------------------------------------------------------------------


def pascal(name: str) -> str:
    """`null_count` as `NullCount`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def camel(name: str) -> str:
    """`null_count` as `nullCount`."""
    text = pascal(name)
    return text[:1].lower() + text[1:]


def capitalized(text: str) -> str:
    """The text with a capital letter at its beginning, the rest as it is."""
    return text[:1].upper() + text[1:]


def identifier(name: str, reserved: str, mark: Callable[[str], str]) -> str:
    """The name, or what `mark` makes of it when it is one of the reserved words."""
    return mark(name) if name in reserved.split() else name


def literal(value: int | str | None) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


# --- Texts -------------------------------------------------------------------------------------


def fill(text: str, width: int, first: str, rest: str) -> str:
    """`text` in lines of at most `width` columns: `first` before the first, then `rest`."""
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def struct_facts(struct: Struct, interface: Interface) -> str:
    """Who allocates and fills a struct, and where it is specified."""
    return (
        f"Allocated by the {struct.allocated_by}, filled by the {struct.filled_by}. "
        f"Specified in {interface.document}: {struct.section}."
    )


def field_facts(field: Field) -> str:
    """Who sets a field, who owns its target, and its valid values."""
    owner = "" if field.owned_by == "none" else f", owned by the {field.owned_by}"
    facts = f"{capitalized(field.presence)}, set by the {field.set_by}{owner}."
    return f"{facts} Valid: {field.valid}."


def contract_facts(contract: Contract, spell: Callable[[str], str] = str) -> list[str]:
    """Who calls a callback, and how, a sentence each; `spell` spells the name of an argument."""
    nullable = ", ".join(map(spell, contract.nullable)) or "no argument"
    return [
        f"Called by the {contract.called_by}.",
        f"Thread: {contract.thread}.",
        f"Times: {contract.times}.",
        f"Inside: {contract.inside}.",
        f"May be NULL: {nullable}.",
        f"Returns: {contract.returns}.",
    ]


# --- Layouts -----------------------------------------------------------------------------------


def by_class(rows: Iterable[StructLayout | FieldLayout], what: str) -> str:
    """One number per class of target, such as the offsets of a field: `72, 48, 44`."""
    return ", ".join(str(getattr(row, what)) for row in rows)


def of_field(layouts: Iterable[StructLayout], field: Field) -> list[FieldLayout]:
    """Where a field is on each class of target."""
    return [entry for layout in layouts for entry in layout.fields if entry.name == field.name]
