"""Helpers for the tables of the runtimes: their list, and their devices.

A runtime has a table if its events can be waited on with a call. The others need more than that.
"""

from __future__ import annotations

from ..runtimes.model import Runtime
from .model import Device, Spec


def called_runtimes(spec: Spec) -> list[Runtime]:
    """Returns the runtimes whose libraries a safe layer calls."""
    return [runtime for runtime in spec.runtimes if runtime.operation("host_wait").by == "call"]


def devices_of(spec: Spec) -> dict[str, list[Device]]:
    """Returns the devices whose events belong to each runtime, by runtime name."""
    return {
        runtime.name: [device for device in spec.devices if device.runtime == runtime.name]
        for runtime in spec.runtimes
    }
