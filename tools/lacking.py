"""The missing parts of registered languages: each part exists, or has a reason."""

from __future__ import annotations

from collections.abc import Iterator

from languages import FILE, Language


def parts(language: Language) -> dict[str, bool]:
    """Whether the language has each part that the tests need. Columns are "java-ffm: cases"."""
    abi = {name for mutants in language.mutants if mutants.kind == "abi" for name in mutants.runs}
    found = {
        "format": bool(language.format),
        "suite": bool(language.suite),
        "columns": bool(language.columns),
        "targets": bool(language.targets),
        "gpu": bool(language.gpu) or any(column.host for column in language.columns),
        "bench": bool(language.bench),
        "mutation": bool(language.mutation),
        "rules": bool(language.rules),
        "blocks": bool(language.blocks),
    }
    for column in language.columns:
        found |= {
            f"{column.name}: oracle": bool(column.oracle),
            f"{column.name}: cases": bool(column.cases),
            f"{column.name}: corpus": bool(column.corpus),
            f"{column.name}: subject": bool(column.subject),
            f"{column.name}: devices": bool(column.devices),
            f"{column.name}: all directions of devices": not column.device_directions,
            f"{column.name}: mutants": column.name in abi,
            f"{column.name}: probe": column.probe is not None,
        }
    return found


def problems(language: Language) -> Iterator[str]:
    """Parts that are missing without a reason, and reasons for parts that exist."""
    where = f"{language.folder}/{FILE}"
    found = parts(language)
    for part, present in found.items():
        if not present and part not in language.lacks:
            yield f'{where}: no {part}: add it, or the reason to [lacks] as "{part}"'
    for part in language.lacks:
        if part not in found:
            yield f'{where}: lacks."{part}": expected one of {", ".join(found)}'
        elif found[part]:
            yield f'{where}: lacks."{part}": it is there: remove the reason'
