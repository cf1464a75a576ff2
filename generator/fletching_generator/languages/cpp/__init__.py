"""C++: tables, the vendors' runtimes, the CUDA Array Interface, and the lists of the ABI tests."""

from __future__ import annotations

from ...render import Filters, Output
from ...spec.layout import leaves
from ...spec.model import Device, Field, Spec, Struct
from ...spelling import literal, pascal
from ..c.wrapping import wrap_arguments
from . import cuda_array_interface, runtimes


def outputs(spec: Spec) -> list[Output]:
    tables = Output(
        "cpp/include/fletching/tables.hpp",
        "tables.hpp",
        "spec/devices.yaml",
        {"spec": spec, "accesses": accesses(spec)},
    )
    fields = Output(
        "cpp/tests/abi_fields.hpp",
        "abi_fields.hpp",
        "spec/*.yaml",
        {"spec": spec, "leaves": {s.name: leaves(spec, s) for s in spec.structs}},
    )
    return [tables, fields, *runtimes.outputs(spec), *cuda_array_interface.outputs(spec)]


def accesses(spec: Spec) -> list[tuple[Device, Device]]:
    """Returns pairs of devices: the second can access the memory of the first."""
    devices = {device.name: device for device in spec.devices}
    return [
        (memory, devices[name])
        for memory in spec.devices
        for name in memory.accessible_from.devices
    ]


def device_row(device: Device) -> str:
    """Returns one row of the device table."""
    cells = [
        str(device.value),
        literal(device.name),
        literal(device.arrow or ""),
        literal(device.dlpack),
        f"EventPointer::k{pascal(device.event.pointer)}",
        literal(device.event.type or ""),
        f"Runtime::k{(device.runtime or 'none').capitalize()}",
        f"Buffers::k{pascal(device.buffers.are)}",
    ]
    return wrap_arguments("{", cells, "},", 4)


def struct_list(structs: tuple[Struct, ...]) -> str:
    """Returns the structs as a list of types for typed tests."""
    names = [struct.name for struct in structs]
    return wrap_arguments("using Structs = ::testing::Types<", names, ">;")


def visit_callback(field: Field, struct: Struct) -> str:
    head = f"visit.template operator()<&{struct.name}::{field.name}>("
    return wrap_arguments(head, [literal(field.name)], ");", 4)


FILTERS: Filters = {
    **cuda_array_interface.FILTERS,
    **runtimes.FILTERS,
    "device_row": device_row,
    "struct_list": struct_list,
    "visit_callback": visit_callback,
}
