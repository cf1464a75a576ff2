"""Handles copies of the structs in a C++ namespace as if they were global."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .facts import HeaderRecord, Run


def without_namespaces(run: Run, names: Collection[str]) -> tuple[Run, dict[str, str]]:
    """Returns the run with the named records moved out of namespaces, and the namespace of each
    moved record: `{"ArrowArray": "their::abi"}`."""
    spaces: dict[str, str] = {}
    for record in run.records:
        space, _, name = record.rpartition("::")
        if space and name in names and name not in run.records:
            spaces.setdefault(name, space)
    if not spaces:
        return run, spaces
    prefixes = [f"{space}::" for space in set(spaces.values())]

    def bare(text: str) -> str:
        for prefix in prefixes:
            text = text.replace(prefix, "")
        return text

    def moved(record: HeaderRecord) -> HeaderRecord:
        fields = tuple(replace(field, type=bare(field.type)) for field in record.fields)
        return replace(record, name=bare(record.name), fields=fields)

    flat = replace(
        run,
        records={bare(name): moved(record) for name, record in run.records.items()},
        typedefs={bare(name): replace(t, name=bare(name)) for name, t in run.typedefs.items()},
        enums=tuple(replace(enum, name=bare(enum.name)) for enum in run.enums),
    )
    return flat, spaces
