"""Go: the core's names in package `fletching`, and the runtime of each device type."""

from __future__ import annotations

from ...render import Output
from ...spec.model import Spec
from ...spec.runtime_tables import devices_of
from .names import device_constant


def prefix(spec: Spec) -> str:
    """Returns the prefix of the module's C names, so that a program can contain two versions."""
    return f"fletching_go_v{spec.project.version.replace('.', '_')}_"


def output(spec: Spec) -> Output:
    devices = {
        name: [f"abi.{device_constant(device)}" for device in found]
        for name, found in devices_of(spec).items()
    }
    context = {"spec": spec, "devices": devices, "prefix": prefix(spec)}
    return Output("bindings/go/core.go", "core.go", "spec/*.yaml", context)
