"""Rust: the tables of the CUDA Array Interface."""

from __future__ import annotations

from ...cuda_array_interface.dictionaries import Check, Kind
from ...render import Filters, Output
from ...spec.model import Spec
from ...spelling import literal, pascal

_TABLES = "bindings/rust/fletching/src/cuda_array_interface/tables.rs"


def outputs(spec: Spec) -> list[Output]:
    interface = spec.cuda_array_interface
    context = {
        "cai": interface,
        "typed_checks": [check for check in interface.checks if check.typed],
    }
    return [Output(_TABLES, "cuda_array_tables.rs", f"spec/{interface.id}.yaml", context)]


def kind_fields(kind: Kind) -> list[str]:
    """Returns the fields of a kind, wrapped like rustfmt."""
    sizes = ", ".join(map(str, kind.sizes))
    flags = {"is_ordered": kind.ordered, "has_unit": kind.has_unit}
    return [
        f"character: '{kind.char}'",
        f"counts: Counts::{kind.counts.capitalize()}",
        f"sizes: &[{sizes}]",
        *(f"{name}: {str(flag).lower()}" for name, flag in flags.items()),
        f"no_number: {kind.no_number or 0}",
    ]


def check_fields(check: Check) -> list[str]:
    return [
        f"id: {literal(check.id)}",
        f"key: {literal(check.key or '')}",
        f"severity: Severity::{check.severity.capitalize()}",
        f"since: {check.since}",
        f"hint: {literal(check.hint)}",
        f"check: Check::{pascal(check.name)}",
    ]


FILTERS: Filters = {
    "check_fields": check_fields,
    "kind_fields": kind_fields,
}
