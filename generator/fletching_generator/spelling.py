"""Spelling shared by the languages: names, literals, strings, and numbers per target class."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

from .spec.layout import FieldLayout, StructLayout
from .spec.model import Contract, Field, Interface, Struct

# --- Names and literals ------------------------------------------------------------------------


def pascal(name: str) -> str:
    """Returns `NullCount` for `null_count`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def camel(name: str) -> str:
    """Returns `nullCount` for `null_count`."""
    text = pascal(name)
    return text[:1].lower() + text[1:]


def capitalized(text: str) -> str:
    """Returns the text with its first letter capitalized."""
    return text[:1].upper() + text[1:]


def identifier(name: str, reserved: str, mark: Callable[[str], str]) -> str:
    """Returns the name, changed by `mark` if it is a reserved word."""
    return mark(name) if name in reserved.split() else name


def literal(value: int | str | None) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


# --- Texts -------------------------------------------------------------------------------------


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> str:
    """Wraps `text` to `width` columns, prefixing `first` to the first line and `rest` to others."""
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def struct_facts(struct: Struct, interface: Interface) -> str:
    """States who allocates and fills a struct, and where it is specified."""
    return (
        f"Allocated by the {struct.allocated_by}, filled by the {struct.filled_by}. "
        f"Specified in {interface.document}: {struct.section}."
    )


def field_facts(field: Field) -> str:
    """States who sets a field, who owns its target, and its valid values."""
    owner = "" if field.owned_by == "none" else f", owned by the {field.owned_by}"
    facts = f"{capitalized(field.presence)}, set by the {field.set_by}{owner}."
    return f"{facts} Valid: {field.valid}."


def contract_facts(contract: Contract, spell: Callable[[str], str] = str) -> list[str]:
    """States who calls a callback, and how, one sentence each; `spell` spells argument names."""
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
    """Returns one number per target class, such as the offsets of a field: `72, 48, 44`."""
    return ", ".join(str(getattr(row, what)) for row in rows)


def of_field(layouts: Iterable[StructLayout], field: Field) -> list[FieldLayout]:
    """Returns the layout of a field for each target class."""
    return [entry for layout in layouts for entry in layout.fields if entry.name == field.name]
