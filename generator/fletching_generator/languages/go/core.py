"""Go: how package `fletching` names the core, and which runtime of it a device type has."""

from __future__ import annotations

from ...render import Output
from ...spec.model import Spec
from ...spec.runtime_tables import devices_of
from .names import device_constant


def prefix(spec: Spec) -> str:
    """The start of every C name of the module, so that a program can have two versions."""
    return f"fletching_go_v{spec.project.version.replace('.', '_')}_"


def output(spec: Spec) -> Output:
    devices = {
        name: [f"abi.{device_constant(device)}" for device in found]
        for name, found in devices_of(spec).items()
    }
    context = {"spec": spec, "devices": devices, "prefix": prefix(spec)}
    return Output("bindings/go/core.go", "core.go", "spec/*.yaml", context)
