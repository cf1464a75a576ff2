"""Helpers for the tables of the runtimes: their list, devices, types and constants.

A runtime has a table if its events can be waited on with a call. The others need more than that.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..reading.types import Constant, Pointer, StructType, Type, Typedef
from ..runtimes.model import Function, Runtime
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


def used_types(runtime: Runtime, functions: list[Function]) -> set[str]:
    """Returns the vendor's types that the functions need, including nested types, and handles."""
    return {*_names(runtime, functions), *runtime.handles.values()}


def used_constants(runtime: Runtime, used: set[str]) -> list[Constant]:
    """Returns the constants of these types, and all flags, which have a plain integer type."""
    return [c for c in runtime.constants if c.type in used or c.type.startswith("uint")]


def _names(runtime: Runtime, functions: list[Function]) -> Iterator[str]:
    types = {type_.name: type_ for type_ in runtime.types}
    assert runtime.status is not None
    waiting: list[Type] = [runtime.status]
    for function in functions:
        waiting += [function.type.returns, *(each.type for each in function.type.arguments)]
    while waiting:
        type_ = waiting.pop()
        if isinstance(type_, Pointer):
            waiting.append(type_.to)
        elif isinstance(type_, Typedef | StructType):
            yield type_.name
            waiting += [field.type for field in types[type_.name].fields]
