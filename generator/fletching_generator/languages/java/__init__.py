"""Java: constants, tables and offsets (fletching-abi), and the structs for JNA and for FFM."""

from __future__ import annotations

from collections.abc import Callable

from ...render import Filters, Output
from ...spec.layout import LAYOUT_CLASSES, LayoutClass, struct_layout, struct_layouts
from ...spec.model import Device, Enumerator, Field, Interface, Spec, Struct
from ...spec.types import Callback, FixedArray, StructType, Type
from ...spelling import (
    by_class,
    contract_facts,
    field_facts,
    literal,
    of_field,
    pascal,
    struct_facts,
)
from .lists import list_callback, list_field, list_leaf, listed_leaves
from .names import (
    camel,
    constant,
    ffm_layout,
    is_address,
    is_void,
    java_type,
    jna_size,
    jna_suffix,
)
from .text import Broken, Call, Node, fit, javadoc

_FOLDER = "bindings/java/fletching-{0}/src/{1}/java/io/github/fletching/{2}/"


def outputs(spec: Spec) -> list[Output]:
    files = _tables(spec)
    lists = {"spec": spec, "leaves": {s.name: listed_leaves(spec, s) for s in spec.structs}}
    for flavor in ("jna", "ffm"):
        main = _FOLDER.format(flavor, "main", f"{flavor}/abi")
        for interface in spec.interfaces:
            files.extend(_struct(main, flavor, spec, interface, s) for s in interface.structs)
        tests = _FOLDER.format(flavor, "test", f"{flavor}/abi")
        template = f"{flavor}/AbiStructs.java"
        files.append(Output(f"{tests}AbiStructs.java", template, "spec/*.yaml", lists))
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
    return [*_constants(spec, folder), *tables]


def _constants(spec: Spec, folder: str) -> list[Output]:
    """The macros, one class per header of C."""
    arrow = "The macros of the Arrow C interfaces: schema flags, statistics keys and device types."
    classes = (
        ("ArrowConstants", "abi.h", arrow, spec.arrow_devices),
        ("DlpackConstants", "dlpack.h", "The macros of DLPack: versions and flags.", ()),
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
        "needs_native": any(
            isinstance(field.type, FixedArray) and is_address(field.type.of)
            for field in struct.fields
        ),
    }
    template = f"{flavor}/Struct.java"
    return Output(f"{folder}{struct.name}.java", template, f"spec/{interface.id}.yaml", context)


# --- JNA ---------------------------------------------------------------------------------------


def jna_field_order(struct: Struct) -> str:
    names = [f'"{camel(field.name)}"' for field in struct.fields]
    flat = f"@FieldOrder({{{', '.join(names)}}})"
    return flat if len(flat) <= 100 else "@FieldOrder({\n  " + ",\n  ".join(names) + "\n})"


def jna_initializer(type_: Type) -> str:
    """An array needs its length; everything else starts as zero."""
    match type_:
        case FixedArray(of=of, count=count):
            return f" = new {java_type(of, 'jna')}[{count}]"
        case _:
            return ""


def jna_invocation(field: Field, struct: Struct) -> Node:
    callback = _callback(field)
    java = java_type(callback.returns, "jna")
    values: list[Node] = [f"{java}.class", "function", f'"{struct.name}.{field.name}"']
    values += [camel(argument.name) for argument in callback.arguments]
    return _returned(callback, "jna", Call("call", values))


# --- java.lang.foreign -------------------------------------------------------------------------


def ffm_members(spec: Spec, struct: Struct) -> Call:
    """The layout with explicit padding, for targets with 64-bit pointers."""
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
    """The layouts of java.lang.foreign that the file of the struct names."""
    types = [f.type.of if isinstance(f.type, FixedArray) else f.type for f in struct.fields]
    for callback in (t for t in tuple(types) if isinstance(t, Callback)):
        types += [callback.returns, *(a.type for a in callback.arguments)]
    return sorted(
        {ffm_layout(t) for t in types if not isinstance(t, StructType) and not is_void(t)}
    )


def ffm_descriptor(callback: Callback) -> Call:
    arguments: list[Node] = [ffm_layout(a.type) for a in callback.arguments]
    if is_void(callback.returns):
        return Call("FunctionDescriptor.ofVoid", arguments)
    return Call("FunctionDescriptor.of", [ffm_layout(callback.returns), *arguments])


def ffm_invocation(field: Field) -> Node:
    callback = _callback(field)
    values: list[Node] = ["function", *(camel(a.name) for a in callback.arguments)]
    return _returned(callback, "ffm", Call(f"CALL_{constant(field.name)}.invokeExact", values))


# --- Both --------------------------------------------------------------------------------------


def signature(callback: Callback, flavor: str, head: str, first: str = "") -> Call:
    """A method with the arguments of the callback; `head` names it, with {} for the result."""
    arguments: list[Node] = [first] if first else []
    arguments += [f"{java_type(a.type, flavor)} {camel(a.name)}" for a in callback.arguments]
    return Call(head.format(java_type(callback.returns, flavor)), arguments)


def _returned(callback: Callback, flavor: str, call: Call) -> Node:
    java = java_type(callback.returns, flavor)
    return call if java == "void" else Broken(f"return ({java})", call)


def struct_doc(struct: Struct, interface: Interface) -> list[str]:
    return [struct.doc, struct_facts(struct, interface)]


def field_doc(field: Field) -> list[str]:
    return [field.doc, field_facts(field)]


def callback_doc(field: Field) -> list[str]:
    assert field.contract is not None  # the meaning check sees to it
    return [field.doc, " ".join(contract_facts(field.contract))]


def device_row(device: Device) -> Broken:
    texts = [f'"{text}"' if text else "null" for text in (device.arrow, device.dlpack)]
    event = f'"{device.event.type}"' if device.event.type else "null"
    pointer = f"EventPointer.{device.event.pointer.upper()}"
    row: list[Node] = [str(device.value), f'"{device.name}"', *texts, pointer, event]
    name = device.name.upper()
    return Broken(f"public static final DeviceType {name} =", Call("new DeviceType", row))


def code_row(code: Enumerator) -> Broken:
    row: list[Node] = [str(code.value), f'"{code.label}"', f'"{code.name}"']
    name = code.label.upper()
    return Broken(f"public static final DataTypeCode {name} =", Call("new DataTypeCode", row))


def layout_row(target: LayoutClass) -> str:
    name = target.name.upper().replace("-", "_")  # "64bit" is not a name in Java
    return f'TARGET_{name}("{target.name}", {target.pointer_size}, {target.int64_align})'


def assign(head: str, value: Node) -> Broken:
    return Broken(f"{head} =", value)


def _callback(field: Field) -> Callback:
    assert isinstance(field.type, Callback)
    return field.type


def _is(kind: type) -> Callable[[Type], bool]:
    return lambda type_: isinstance(type_, kind)


FILTERS: Filters = {
    "assign": assign,
    "callback_doc": callback_doc,
    "camel": camel,
    "code_row": code_row,
    "constant": constant,
    "device_row": device_row,
    "ffm_descriptor": ffm_descriptor,
    "ffm_imports": ffm_imports,
    "ffm_invocation": ffm_invocation,
    "ffm_layout": ffm_layout,
    "field_doc": field_doc,
    "fit": fit,
    "is_array": _is(FixedArray),
    "is_struct": _is(StructType),
    "java_type": java_type,
    "javadoc": javadoc,
    "jna_field_order": jna_field_order,
    "jna_initializer": jna_initializer,
    "jna_invocation": jna_invocation,
    "jna_size": jna_size,
    "jna_suffix": jna_suffix,
    "layout_row": layout_row,
    "list_callback": list_callback,
    "list_field": list_field,
    "list_leaf": list_leaf,
    "literal": literal,
    "by_class": by_class,
    "of_field": of_field,
    "pascal": pascal,
    "signature": signature,
    "struct_doc": struct_doc,
}
