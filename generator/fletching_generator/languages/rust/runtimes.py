"""Rust: the runtimes, by device type."""

from __future__ import annotations

from collections.abc import Sequence

from ...render import Filters, Output
from ...runtimes.model import Runtime
from ...spec.model import Spec
from ...spec.runtime_tables import devices_of
from ...spelling import pascal
from .text import WIDTH

_VENDORS = "bindings/rust/fletching/src/runtime/vendors.rs"


def outputs(spec: Spec) -> list[Output]:
    context = {"spec": spec, "of_runtime": of_runtime(spec)}
    return [Output(_VENDORS, "vendors.rs", "spec/*.yaml", context)]


def of_runtime(spec: Spec) -> dict[str, list[str]]:
    """Returns each runtime's device type constants."""
    return {
        name: [f"ArrowDeviceType::{device.name.upper()}" for device in devices]
        for name, devices in devices_of(spec).items()
    }


def variant(runtime: Runtime) -> str:
    return pascal(runtime.name)


def arm(patterns: Sequence[str], value: str, indent: int = 8) -> str:
    """Returns a match arm, wrapped like rustfmt."""
    margin = " " * indent
    line = f"{margin}{' | '.join(patterns)} =>"
    if len(f"{line} {value},") <= WIDTH:
        return f"{line} {value},"
    if len(f"{line} {{") <= WIDTH:
        return f"{line} {{\n{margin}    {value}\n{margin}}}"
    joined = f"\n{margin}| ".join(patterns)
    return f"{margin}{joined} => {value},"


FILTERS: Filters = {
    "arm": arm,
    "variant": variant,
}
