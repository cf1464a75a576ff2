"""The reference pages under docs/reference/, as Markdown."""

from __future__ import annotations

from ..layout import LAYOUT_CLASSES, StructLayout
from ..model import Access, Buffers, Callback, Erratum, Field, FixedArray, Spec, Struct
from ..render import Filters, Output
from .c import interface_constants, struct_layouts, type_name

_FOLDER = "docs/reference"


def outputs(spec: Spec) -> list[Output]:
    everything = {"spec": spec, "classes": LAYOUT_CLASSES}
    pages = [
        Output(f"{_FOLDER}/README.md", "docs/index.md", "spec/*.yaml", everything),
        Output(f"{_FOLDER}/devices.md", "docs/devices.md", "spec/devices.yaml", everything),
        Output(f"{_FOLDER}/errata.md", "docs/errata.md", "spec/errata.yaml", everything),
    ]
    for interface in spec.interfaces:
        context = {
            **everything,
            "interface": interface,
            "constants": interface_constants(spec, interface),
            "layouts": {s.name: struct_layouts(spec, s) for s in interface.structs},
            "errata": {s.name: struct_errata(spec, s) for s in interface.structs},
        }
        source = f"spec/{interface.id}.yaml"
        path = f"{_FOLDER}/{interface.id}.md"
        pages.append(Output(path, "docs/interface.md", source, context))
    return pages


def declaration(field: Field) -> str:
    """The type of a field in C, on one line."""
    match field.type:
        case FixedArray(of=of, count=count):
            return f"{type_name(of)}[{count}]"
        case Callback(arguments=arguments, returns=returns):
            inner = ", ".join(f"{type_name(a.type)} {a.name}" for a in arguments)
            return f"{type_name(returns)} (*)({inner})"
        case _:
            return type_name(field.type)


def struct_errata(spec: Spec, struct: Struct) -> list[Erratum]:
    """The errata about a struct or one of its fields."""
    return [e for e in spec.errata if e.about.split(".")[0] == struct.name]


def places(layouts: list[StructLayout], field: Field) -> str:
    """The table cells with the offset of a field, one per layout class."""
    return " | ".join(str(layout.offset(field.name)) for layout in layouts)


def sizes(layouts: list[StructLayout]) -> str:
    """The table cells with size and alignment of a struct, one per layout class."""
    return " | ".join(f"{layout.size} / {layout.align}" for layout in layouts)


def cell(text: str) -> str:
    """Text that does not end its table cell."""
    return text.replace("|", "\\|")


_BUFFERS = {
    "host_address": "an address for the host",
    "device_address": "an address for the device",
    "shared_address": "an address for host and device",
    "handle": "a handle",
    "producer_defined": "defined by the producer",
    "unknown": "unknown",
}


def buffers(found: Buffers) -> str:
    """What a buffer is, in a few words."""
    return _BUFFERS[found.are] + (f", `{found.type}`" if found.type else "")


def access(found: Access) -> str:
    """The devices that can access memory, or why they are not known."""
    return ", ".join(f"`{name}`" for name in found.devices) or f"unknown: {found.unknown}"


FILTERS: Filters = {
    "access": access,
    "buffers": buffers,
    "cell": cell,
    "declaration": declaration,
    "places": places,
    "sizes": sizes,
    "type_name": type_name,
}
