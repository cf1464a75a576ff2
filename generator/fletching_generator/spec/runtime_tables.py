"""The common parts of the tables of the runtimes: their list, and the required functions.

A runtime has a table when its events can be waited on by a call: the others need more than that.
"""

from __future__ import annotations

from ..runtimes.model import Runtime
from .model import Device, Spec


def called_runtimes(spec: Spec) -> list[Runtime]:
    """The runtimes whose libraries a safe layer calls itself."""
    return [runtime for runtime in spec.runtimes if runtime.operation("host_wait").by == "call"]


def devices_of(spec: Spec) -> dict[str, list[Device]]:
    """The devices whose events are of a runtime, by the name of the runtime."""
    return {
        runtime.name: [device for device in spec.devices if device.runtime == runtime.name]
        for runtime in spec.runtimes
    }
