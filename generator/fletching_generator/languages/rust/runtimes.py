"""Rust: the runtimes, by device type."""

from __future__ import annotations

from ...render import Filters, Output
from ...runtimes.model import Runtime
from ...spec.model import Spec
from ...spec.runtime_tables import devices_of
from ...spelling import pascal

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


FILTERS: Filters = {"variant": variant}
