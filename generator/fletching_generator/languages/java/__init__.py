"""Java: constants, tables and offsets (fletching-abi), and the structs for JNA and for FFM."""

from __future__ import annotations

from collections.abc import Callable

from ...reading.types import Callback, FixedArray, Pointer, StructType, Type
from ...render import Filters, Output
from ...spec import operations
from ...spec.layout import LAYOUT_CLASSES, LayoutClass, struct_layout, struct_layouts
from ...spec.model import Device, Enumerator, Interface, Spec, Struct
from ...spelling import (
    by_class,
    literal,
    of_field,
    pascal,
    struct_facts,
)
from . import docs, fields, runtimes, tensors
from .callbacks import (
    declared,
    dispatch,
    failure,
    ffm_descriptor,
    ffm_invocation,
    ffm_stub,
    jna_invocation,
    jna_stub,
    names,
    reporter,
    returns_text,
    signature,
)
from .names import (
    constant,
    ffm_layout,
    field_type,
    from_memory,
    is_address,
    is_void,
    jna_size,
    jna_suffix,
    singular,
    to_memory,
)
from .text import Broken, Call, Node, fit, javadoc

_FOLDER = "bindings/java/fletching-{0}/src/{1}/java/io/github/fletching/{2}/"


def outputs(spec: Spec) -> list[Output]:
    files = [*_tables(spec), *fields.outputs(spec), *runtimes.outputs(spec), tensors.output(spec)]
    for flavor in ("jna", "ffm"):
        main = _FOLDER.format(flavor, "main", f"{flavor}/abi")
        for interface in spec.interfaces:
            files.extend(_struct(main, flavor, spec, interface, s) for s in interface.structs)
    return files


def _tables(spec: Spec) -> list[Output]:
    folder = _FOLDER.format("abi", "main", "abi")
    sources = {
        "DataTypeCode": "dlpack",
        "DeviceType": "devices",
        "LayoutClass": "*",
        "Offsets": "*",
    }
    layouts = {s.name: struct_layouts(spec, s) for s in spec.structs}
    context = {"spec": spec, "targets": LAYOUT_CLASSES, "layouts": layouts}
    tables = [
        Output(
            f"{folder}{name}.java",
            f"{name}.java",
            f"spec/{source}.yaml",
            context,
        )
        for name, source in sources.items()
    ]
    return [*_constants(spec, folder), _errno(spec, folder), *tables]


def _errno(spec: Spec, folder: str) -> Output:
    classes = spec.errno.of("java")
    names = sorted(name for names in classes.values() for name in names)
    imports = [name for name in names if not name.startswith("java.lang.")]
    context = {"errno": spec.errno, "classes": classes, "imports": imports}
    return Output(f"{folder}Errno.java", "Errno.java", "spec/errno.yaml", context)


def _constants(spec: Spec, folder: str) -> list[Output]:
    """Returns the macros, one class per C header."""
    arrow = "The macros of the Arrow C interfaces: schema flags, statistics keys and device types."
    classes = (
        ("ArrowConstants", "abi.h", arrow, spec.arrow_devices),
        ("DlpackConstants", "dlpack.h", "The DLPack macros: versions and flags.", ()),
    )
    return [
        Output(
            f"{folder}{name}.java",
            "Constants.java",
            "spec/*.yaml",
            {
                "name": name,
                "doc": doc,
                "devices": devices,
                "constants": [
                    c for i in spec.interfaces if i.header == header for c in i.constants
                ],
            },
        )
        for name, header, doc, devices in classes
    ]


def _struct(folder: str, flavor: str, spec: Spec, interface: Interface, struct: Struct) -> Output:
    context = {
        "interface": interface,
        "struct": struct,
        "members": ffm_members(spec, struct),
        "has_array": any(isinstance(field.type, FixedArray) for field in struct.fields),
        "release": operations.release(spec, struct),
        "texts": operations.texts(struct),
        "lists": operations.lists(struct),
        "private_data": operations.private_data(struct),
        "last_call": operations.last_call(spec, struct),
    }
    template = f"{flavor}/Struct.java"
    return Output(f"{folder}{struct.name}.java", template, f"spec/{interface.id}.yaml", context)


# --- java.lang.foreign -------------------------------------------------------------------------


def ffm_members(spec: Spec, struct: Struct) -> Call:
    """Returns the layout with explicit padding, for targets with 64-bit pointers."""
    layout = struct_layout(spec, struct, LAYOUT_CLASSES[0])
    members: list[Node] = [f"Offsets.{constant(struct.name)}"]
    for field in struct.fields:
        if gap := layout.gap_before(field.name):
            members.append(f"MemoryLayout.paddingLayout({gap})")
        members.append(f'{ffm_layout(field.type)}.withName("{field.name}")')
    if layout.tail_padding:
        members.append(f"MemoryLayout.paddingLayout({layout.tail_padding})")
    return Call("Abi.layout", members)


def ffm_imports(struct: Struct) -> list[str]:
    """Returns the layouts of java.lang.foreign used in the file of the struct."""
    types = [f.type.of if isinstance(f.type, FixedArray) else f.type for f in struct.fields]
    for callback in (t for t in tuple(types) if isinstance(t, Callback)):
        types += [callback.returns, *(a.type for a in callback.arguments)]
    types += [entry.type for entry in operations.lists(struct)]
    return sorted(
        {ffm_layout(t) for t in types if not isinstance(t, StructType) and not is_void(t)}
    )


def struct_doc(struct: Struct, interface: Interface) -> list[str]:
    return [struct.doc, struct_facts(struct, interface)]


def device_row(device: Device) -> Broken:
    texts = [f'"{text}"' if text else "null" for text in (device.arrow, device.dlpack)]
    event = f'"{device.event.type}"' if device.event.type else "null"
    pointer = f"EventPointer.{device.event.pointer.upper()}"
    row: list[Node] = [str(device.value), f'"{device.name}"', *texts, pointer, event]
    name = device.name.upper()
    return Broken(f"public static final DeviceType {name} =", Call("new DeviceType", row))


def device_access(device: Device) -> Call:
    """Returns the devices that can access the memory of this device."""
    return Call("return List.of", [name.upper() for name in device.accessible_from.devices])


def code_row(code: Enumerator) -> Broken:
    row: list[Node] = [str(code.value), f'"{code.label}"', f'"{code.name}"']
    name = code.label.upper()
    return Broken(f"public static final DataTypeCode {name} =", Call("new DataTypeCode", row))


def layout_row(target: LayoutClass) -> str:
    name = target.name.upper().replace("-", "_")  # "64bit" is not a valid Java name
    return f'TARGET_{name}("{target.name}", {target.pointer_size}, {target.int64_align})'


def assign(head: str, value: Node) -> Broken:
    return Broken(f"{head} =", value)


def call(head: str, *arguments: Node) -> Call:
    return Call(head, list(arguments))


def points_to_struct(type_: Type) -> bool:
    return isinstance(type_, Pointer) and isinstance(type_.to, StructType)


def _is(kind: type) -> Callable[[Type], bool]:
    return lambda type_: isinstance(type_, kind)


FILTERS: Filters = {
    "assign": assign,
    "by_class": by_class,
    "call": call,
    "code_row": code_row,
    "constant": constant,
    "declared": declared,
    "device_access": device_access,
    "device_row": device_row,
    "dispatch": dispatch,
    "failure": failure,
    "ffm_descriptor": ffm_descriptor,
    "ffm_imports": ffm_imports,
    "ffm_invocation": ffm_invocation,
    "ffm_layout": ffm_layout,
    "ffm_stub": ffm_stub,
    "field_type": field_type,
    "fit": fit,
    "from_memory": from_memory,
    "is_address": is_address,
    "is_array": _is(FixedArray),
    "is_struct": _is(StructType),
    "javadoc": javadoc,
    "jna_invocation": jna_invocation,
    "jna_size": jna_size,
    "jna_stub": jna_stub,
    "jna_suffix": jna_suffix,
    "layout_row": layout_row,
    "literal": literal,
    "names": names,
    "of_field": of_field,
    "pascal": pascal,
    "points_to_struct": points_to_struct,
    "reporter": reporter,
    "returns_text": returns_text,
    "signature": signature,
    "singular": singular,
    "struct_doc": struct_doc,
    "to_memory": to_memory,
    **docs.FILTERS,
    **fields.FILTERS,
    **runtimes.FILTERS,
    **tensors.FILTERS,
}
