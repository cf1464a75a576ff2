"""Rust: the crate `fletching-abi`, and the list of fields for the ABI tests."""

from __future__ import annotations

from ...reading.types import Callback, Constant, Scalar, StructType
from ...render import Filters, Output
from ...spec import operations
from ...spec.layout import Leaf, leaves, struct_layouts
from ...spec.model import Device, Field, Interface, Spec, Struct
from ...spelling import (
    by_class,
    contract_facts,
    field_facts,
    literal,
    of_field,
    pascal,
    struct_facts,
)
from . import cuda_array_interface, runtimes
from .derives import derives
from .text import (
    SCALARS,
    WIDTH,
    doc,
    enclose,
    identifier,
    member,
    returned,
    signature,
    type_name,
)

_LIST_WIDTH = 60
_SOURCES = "bindings/rust/fletching-abi/src"

_EVENTS = {
    "none": "`sync_event` is always NULL",
    "address_of_handle": "`sync_event` is a `{type}`, the address of the handle",
    "object": "`sync_event` is a `{type}`, the object itself",
    "producer_defined": "documented by the producer",
}


def outputs(spec: Spec) -> list[Output]:
    context = {
        "spec": spec,
        "device_type": spec.device_typedef.type.name,
        "layouts": {s.name: struct_layouts(spec, s) for s in spec.structs},
        "leaves": {s.name: leaves(spec, s) for s in spec.structs},
        "paths": {s.name: paths(spec, s) for s in spec.structs},
        "derives": {s.name: derives(spec, s) for s in spec.structs},
        "releases": {s.name: operations.release(spec, s) for s in spec.structs},
        "texts": {s.name: operations.texts(s) for s in spec.structs},
        "lists": {s.name: operations.lists(s) for s in spec.structs},
        "calls": {s.name: operations.calls(spec, s) for s in spec.structs},
    }
    return [
        Output(f"{_SOURCES}/types.rs", "types.rs", "spec/*.yaml", context),
        Output(f"{_SOURCES}/operations.rs", "operations.rs", "spec/*.yaml", context),
        Output(
            f"{_SOURCES}/constants.rs",
            "constants.rs",
            "spec/*.yaml",
            context,
        ),
        Output(
            f"{_SOURCES}/devices.rs",
            "devices.rs",
            "spec/devices.yaml",
            context,
        ),
        Output(
            f"{_SOURCES}/data_type_codes.rs",
            "data_type_codes.rs",
            "spec/dlpack.yaml",
            context,
        ),
        Output(f"{_SOURCES}/errno.rs", "errno.rs", "spec/errno.yaml", context),
        Output(f"{_SOURCES}/layout.rs", "layout.rs", "spec/*.yaml", context),
        Output(
            "bindings/rust/testing/src/fields.rs",
            "fields.rs",
            "spec/*.yaml",
            context,
        ),
        *runtimes.outputs(spec),
        *cuda_array_interface.outputs(spec),
    ]


def paths(spec: Spec, struct: Struct, prefix: str = "") -> list[str]:
    """Returns the paths of all fields, including embedded structs: "array", "array.length", ..."""
    found = []
    for field in struct.fields:
        found.append(prefix + identifier(field.name))
        if isinstance(field.type, StructType):
            found += paths(spec, spec.struct(field.type.name), f"{found[-1]}.")
    return found


# --- Declarations ------------------------------------------------------------------------------


def declare(field: Field) -> str:
    """Returns a struct member."""
    name = f"pub {identifier(field.name)}"
    if field.enumerated_by:
        return f"    {name}: {field.enumerated_by},"
    return member(name, field.type, 4)


def call_head(field: Field, own: bool) -> str:
    """Returns the function that calls a callback; `this` is the struct if the callback takes it."""
    callback = field.type
    assert isinstance(callback, Callback)
    lines = ["        this: *mut Self," if own else "        &self,"]
    lines += [member(identifier(a.name), a.type, 8) for a in callback.arguments[int(own) :]]
    tail = f") -> Option<{result_name(callback) or '()'}> {{"
    return enclose(f"pub unsafe fn call_{field.name}", lines, tail, 4)


def result_name(callback: Callback) -> str:
    """Returns the type of the result; empty for void."""
    return "" if callback.returns == Scalar("void") else type_name(callback.returns)


def argument_names(callback: Callback) -> str:
    return ", ".join(identifier(argument.name) for argument in callback.arguments)


def declare_constant(constant: Constant) -> str:
    type_ = "&str" if isinstance(constant.value, str) else SCALARS[constant.type]
    head = f"pub const {constant.name}: {type_} ="
    line = f"{head} {literal(constant.value)};"
    return line if len(line) <= WIDTH else f"{head}\n    {literal(constant.value)};"


def optional(text: str | None) -> str:
    return "None" if text is None else f"Some({literal(text)})"


def device_constant(device: Device) -> str:
    return device.name.upper()


def event_pointer(device: Device) -> str:
    return pascal(device.event.pointer)


def accessible_from(device: Device) -> str:
    """Returns a list, on one line up to rustfmt's width for a list."""
    items = [f"ArrowDeviceType::{name.upper()}" for name in device.accessible_from.devices]
    if len(line := ", ".join(items)) <= _LIST_WIDTH:
        return f"&[{line}]"
    return "&[\n" + "".join(f"            {item},\n" for item in items) + "        ]"


# --- Docs --------------------------------------------------------------------------------------


def struct_doc(struct: Struct, interface: Interface) -> str:
    return f"{doc(struct.doc)}\n///\n{doc(struct_facts(struct, interface))}"


def field_doc(field: Field) -> str:
    lines = [doc(field.doc, 4), "    ///", doc(field_facts(field), 4)]
    if field.contract is not None:
        facts = contract_facts(field.contract, lambda name: f"`{identifier(name)}`")
        lines += ["    ///", *(doc(fact, 4, "- ") for fact in facts)]
    return "\n".join(lines)


def device_doc(device: Device) -> str:
    event = _EVENTS[device.event.pointer].format(type=device.event.type)
    return doc(f"{device.doc} Device id: {device.device_id}. Event: {event}.", 4)


# --- Layout and test list ----------------------------------------------------------------------


def leaf_places(leaf: Leaf) -> list[str]:
    """Returns `reserved[0]`, `reserved[1]`, ... for an array, and the path for any other leaf."""
    path = ".".join(identifier(part) for part in leaf.path.split("."))
    return [path] if leaf.count == 1 else [f"{path}[{index}]" for index in range(leaf.count)]


def callback_entry(field: Field) -> str:
    """Returns the callback's entry in the test list, which always includes the result."""
    assert isinstance(field.type, Callback)
    tail = ";" if returned(field.type) else " -> ();"
    return signature(identifier(field.name), field.type, tail, 12)


FILTERS: Filters = {
    "accessible_from": accessible_from,
    **cuda_array_interface.FILTERS,
    **runtimes.FILTERS,
    "argument_names": argument_names,
    "by_class": by_class,
    "call_head": call_head,
    "callback_entry": callback_entry,
    "declare": declare,
    "declare_constant": declare_constant,
    "device_constant": device_constant,
    "device_doc": device_doc,
    "doc": doc,
    "event_pointer": event_pointer,
    "field_doc": field_doc,
    "identifier": identifier,
    "leaf_places": leaf_places,
    "literal": literal,
    "pascal": pascal,
    "path": lambda path: ".".join(map(identifier, path)),
    "result": result_name,
    "of_field": of_field,
    "optional": optional,
    "struct_doc": struct_doc,
    "takes_self": lambda field, struct: operations.takes_self(struct, field),
    "type_name": type_name,
}
