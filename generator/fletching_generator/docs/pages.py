"""The reference pages in docs/reference/, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..languages.c.names import declarator, type_name
from ..reading.types import Callback, FixedArray, Pointer, StructType
from ..render import Filters, Output
from ..rules.rulebook import Rulebook
from ..spec.errno import ErrorClass
from ..spec.layout import LAYOUT_CLASSES, StructLayout, struct_layouts
from ..spec.model import Access, Buffers, Device, Erratum, Field, Spec, Struct, Unassigned
from ..spec.pointers import in_words
from ..spec.tensor_types import TensorType
from .maps import map_name
from .prose import prose, published

_FOLDER = "docs/reference"
_ARRAY = "ArrowDeviceArray"
_ABOUT_DEVICES = (
    "ArrowDeviceType",
    *(f"{_ARRAY}.{n}" for n in ("array", "device_id", "sync_event")),
)
_POINTERS = {
    "address_of_handle": "the address of a handle",
    "object": "the address of the event object",
    "producer_defined": "defined by the producer",
    "none": "always NULL",
}


def outputs(spec: Spec, book: Rulebook | None = None) -> list[Output]:
    """Returns the pages. Without `book`, they do not link the published texts."""
    texts = book.texts if book else ()
    everything = {
        "spec": spec,
        "classes": LAYOUT_CLASSES,
        "homes": homes(spec),
        "texts": texts,
    }
    pages = [
        Output(f"{_FOLDER}/README.md", "index.md", "spec/*.yaml", everything),
        *_device_pages(spec, everything),
        _dictionary_page(spec, everything),
        _errno_page(spec),
        _tensor_types_page(spec),
    ]
    for interface in spec.interfaces:
        context = {
            **everything,
            "interface": interface,
            "titles": {other.id: other.title for other in spec.interfaces},
            "constants": spec.interface_constants(interface),
            "layouts": {s.name: struct_layouts(spec, s) for s in interface.structs},
            "errata": {s.name: struct_errata(spec, s) for s in interface.structs},
        }
        source = f"spec/{interface.id}.yaml"
        path = f"{_FOLDER}/{interface.id}.md"
        pages.append(Output(path, "interface.md", source, context))
    return pages


def _dictionary_page(spec: Spec, everything: dict[str, Any]) -> Output:
    interface = spec.cuda_array_interface
    context = {
        **everything,
        "cai": interface,
        "rules_page": f"rules/{interface.id}.md",
        "errata": [e for e in spec.errata if owner(e.about) == interface.attribute],
    }
    path, source = f"{_FOLDER}/{interface.id}.md", f"spec/{interface.id}.yaml"
    return Output(path, "cuda_array_interface.md", source, context)


def _errno_page(spec: Spec) -> Output:
    names = sorted(spec.errno.classes[0].exceptions)
    titles = {name: "C++" if name == "cpp" else name.capitalize() for name in names}
    context = {"errno": spec.errno, "languages": titles}
    return Output(f"{_FOLDER}/errno.md", "errno.md", "spec/errno.yaml", context)


def _tensor_types_page(spec: Spec) -> Output:
    context = {"types": spec.tensor_types}
    return Output(
        f"{_FOLDER}/tensor-types.md", "tensor_types.md", "spec/tensor-types.yaml", context
    )


def _device_pages(spec: Spec, everything: dict[str, Any]) -> list[Output]:
    """Returns the table of all numbers, and a page for each device."""
    source = "spec/devices.yaml"
    numbers: list[Device | Unassigned] = [
        *spec.devices,
        *spec.unreleased_devices,
        *spec.unassigned,
    ]
    table = {
        **everything,
        "numbers": sorted(numbers, key=lambda entry: entry.value),
        "pointers": {
            words: [device.name for device in spec.devices if device.event.pointer == pointer]
            for pointer, words in _POINTERS.items()
        },
        "errata": [e for e in spec.errata if e.about in _ABOUT_DEVICES],
    }
    page = {
        **everything,
        "notes": {note.id: note.text for note in spec.notes},
        "home": homes(spec)[_ARRAY],
        "runtimes": {runtime.name: runtime for runtime in spec.runtimes},
        "document": next(i.document for i in spec.interfaces if i.device_macros),
    }
    return [
        Output(f"{_FOLDER}/devices.md", "devices.md", source, table),
        *(
            Output(
                f"{_FOLDER}/devices/{device.name}.md",
                "device.md",
                source,
                {**page, "device": device},
            )
            for device in spec.devices
        ),
    ]


def homes(spec: Spec) -> dict[str, str]:
    """Returns the location of each struct, typedef and dictionary: `c-data.md#arrowarray`."""
    dictionary = spec.cuda_array_interface
    return {dictionary.attribute: f"{dictionary.id}.md#keys"} | {
        name: f"{interface.id}.md#{name.lower()}"
        for interface in spec.interfaces
        for name in (
            *(typedef.type.name for typedef in interface.typedefs),
            *(struct.name for struct in interface.structs),
        )
    }


def declaration(field: Field) -> str:
    """Returns the C type of a field on one line."""
    match field.type:
        case FixedArray(of=of, count=count):
            return f"{type_name(of)}[{count}]"
        case Callback():
            return declarator("", replace(field.type, name=None))
        case _:
            return type_name(field.type)


def struct_errata(spec: Spec, struct: Struct) -> list[Erratum]:
    """Returns the errata about a struct or one of its fields."""
    return [e for e in spec.errata if owner(e.about) == struct.name]


def owner(about: str) -> str:
    """Returns the struct of `ArrowAsyncProducer.request`, and other names unchanged."""
    return about.split(".", maxsplit=1)[0]


def places(layouts: list[StructLayout], field: Field) -> str:
    """Returns the table cells with the offset of a field, one per layout class."""
    return " | ".join(str(layout.offset(field.name)) for layout in layouts)


def sizes(layouts: list[StructLayout]) -> str:
    """Returns the table cells with size and alignment of a struct, one per layout class."""
    return " | ".join(f"{layout.size} / {layout.align}" for layout in layouts)


def cell(text: str) -> str:
    """Escapes text for a table cell."""
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
    """Returns a short description of a buffer."""
    return _BUFFERS[found.are] + (f", `{found.type}`" if found.type else "")


def access(found: Access) -> str:
    """Returns the devices that can access memory, or why they are unknown."""
    return ", ".join(f"`{name}`" for name in found.devices) or f"unknown: {found.unknown}"


def exceptions(entry: ErrorClass, languages: Iterable[str]) -> str:
    """Returns the table cells with the exceptions of each language."""
    cells = (", ".join(f"`{name}`" for name in entry.exceptions[key]) for key in languages)
    return " | ".join(cells)


def element(row: TensorType) -> str:
    """Describes a DLPack type: `kDLFloat4_e2m1fn`, 4 bits, padded."""
    words = [f"`{row.code}`", f"{row.bits} bits"]
    words += [f"{row.lanes} lanes"] * (row.lanes > 1) + ["padded"] * row.padded
    return ", ".join(words)


def storage(row: TensorType) -> str:
    """Returns the format strings of the storage type."""
    return f"`+w:{row.parts}` of `{row.format}`" if row.parts > 1 else f"`{row.format}`"


def embedded(field: Field) -> str | None:
    """Returns the struct that the field contains."""
    return field.type.name if isinstance(field.type, StructType) else None


def target(field: Field) -> str:
    """Describes the target of a pointer; empty for opaque data, which says nothing."""
    opaque = isinstance(field.type, Pointer) and field.type.target == "opaque"
    return "" if opaque else in_words(field.type)


def clause(sentence: str) -> str:
    """Returns a sentence without its full stop, for use in another sentence."""
    return sentence.removesuffix(".")


FILTERS: Filters = {
    "access": access,
    "buffers": buffers,
    "cell": cell,
    "clause": clause,
    "declaration": declaration,
    "element": element,
    "embedded": embedded,
    "exceptions": exceptions,
    "map_name": map_name,
    "owner": owner,
    "places": places,
    "points_to": target,
    "prose": prose,
    "published": published,
    "sizes": sizes,
    "storage": storage,
    "type_name": type_name,
}
