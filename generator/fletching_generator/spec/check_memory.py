"""The semantic checks of the memory facts in devices.yaml: buffers, access and handles."""

from __future__ import annotations

from ..errors import Mistake, SpecError
from ..reading.documents import Document, Report
from .model import Device, Spec

_FOR_THE_HOST = ("host_address", "shared_address")


def check_memory(spec: Spec, document: Document) -> None:
    """Raises SpecError with all mistakes, in the order of the lines."""
    mistakes: list[Mistake] = []
    devices = {device.name: device for device in spec.devices}
    every = devices | {device.name: device for device in spec.unreleased_devices}
    types = {
        runtime.name: {type_.name for type_ in runtime.types}
        for runtime in spec.runtimes
        if runtime.api == "c"
    }
    for index, entry in enumerate(document.content["devices"]):
        report = document.reporter(mistakes, "devices", index)
        device = every[entry["name"]]
        _check_buffers(device, report)
        _check_access(device, devices, report)
        _check_handles(device, types.get(device.runtime or ""), report)
    if mistakes:
        raise SpecError(*sorted(mistakes, key=lambda mistake: mistake.line))


def _check_buffers(device: Device, report: Report) -> None:
    buffers = device.buffers
    if (buffers.are == "handle") != (buffers.type is not None):
        hint = "a handle has a type; an address has none"
        report(["buffers"], f"'{buffers.are}' does not fit type {buffers.type}", hint)


def _check_access(device: Device, devices: dict[str, Device], report: Report) -> None:
    access = device.accessible_from
    keys: list[str | int] = ["accessible_from"]
    if bool(access.devices) == (access.unknown is not None):
        hint = "list devices, or say in 'unknown' why none is known"
        report(keys, "needs either devices or a reason", hint)
    for number, name in enumerate(access.devices):
        here = [*keys, "devices", number]
        if name not in devices:
            report(here, f"device '{name}' is not defined", f"use some of {', '.join(devices)}")
        elif name not in devices[name].accessible_from.devices:
            hint = "name the device that reads, as 'cpu' or 'cuda'"
            report(here, f"'{name}' is memory only: it does not list itself", hint)
        elif name in access.devices[:number]:
            report(here, f"'{name}' is a duplicate", "remove one")
    if access.devices and (device.buffers.are in _FOR_THE_HOST) != ("cpu" in access.devices):
        hint = "the host reads host_address and shared_address, and nothing else"
        report(keys, f"'cpu' and buffers that are '{device.buffers.are}' do not fit", hint)


def _check_handles(device: Device, types: set[str] | None, report: Report) -> None:
    handles = device.handles
    if handles.needed and handles.unknown is not None:
        report(["handles"], "lists handles, and 'unknown' too", "remove one")
    for number, handle in enumerate(handles.needed):
        if types is not None and handle.name not in types:
            hint = f"add it to the types of '{device.runtime}' in spec/runtimes.yaml"
            report(["handles", "needed", number], f"type '{handle.name}' is not declared", hint)
    if types is not None and device.buffers.type and device.buffers.type not in types:
        hint = f"add it to the types of '{device.runtime}' in spec/runtimes.yaml"
        report(["buffers", "type"], f"type '{device.buffers.type}' is not declared", hint)
