"""Python: `fletching/abi.py`, the structs as ctypes declarations, and the CUDA Array Interface."""

from __future__ import annotations

from collections.abc import Iterable

from ...reading.types import Callback, FixedArray, Pointer, Scalar, StructType, Type, Typedef
from ...render import Filters, Output
from ...spec import operations
from ...spec.layout import struct_layouts
from ...spec.model import Contract, Device, Field, Interface, Spec, Struct
from ...spelling import contract_facts, field_facts, literal, pascal, struct_facts, wrap

_WIDTH = 100


def outputs(spec: Spec) -> list[Output]:
    context = {
        "spec": spec,
        "device_typedef": spec.device_typedef,
        "layouts": {struct.name: layout_rows(spec, struct) for struct in spec.structs},
        "open_fields": open_fields(spec),
        "releases": {struct.name: operations.release(spec, struct) for struct in spec.structs},
    }
    abi = Output("bindings/python/src/fletching/abi.py", "abi.py", "spec/*.yaml", context)
    version = Output(
        "bindings/python/src/fletching/_version.py",
        "_version.py",
        "spec/project.yaml",
        {"version": spec.project.version},
    )
    numbers = Output(
        "bindings/python/src/fletching/_errno.py",
        "_errno.py",
        "spec/errno.yaml",
        {"classes": spec.errno.of("python"), "other": spec.errno.other},
    )
    return [abi, version, numbers]


# --- Types -------------------------------------------------------------------------------------


def ctype(type_: Type) -> str:
    """Returns a type as a ctypes expression: `ctypes.c_int64`, `ctypes.POINTER(ArrowArray)`."""
    match type_:
        case Scalar(name=name):
            return f"ctypes.c_{name}"
        case Typedef(name=name) | StructType(name=name):
            return name
        case Pointer(to=Scalar(name="void" | "char")):
            # c_char_p would follow the pointer on every read; c_void_p returns the address.
            return "ctypes.c_void_p"
        case Pointer(to=to):
            return f"ctypes.POINTER({ctype(to)})"
        case FixedArray(of=of, count=count):
            return f"{ctype(of)} * {count}"
        case Callback(arguments=arguments, returns=returns):
            inner = ", ".join([result(returns), *(ctype(a.type) for a in arguments)])
            return f"ctypes.CFUNCTYPE({inner})"


def field_ctype(field: Field, struct: Struct) -> str:
    return callback_name(field, struct) if field.is_callback else ctype(field.type)


def annotation(field: Field, struct: Struct) -> str:
    """Returns the type of the field's value, for type checkers."""
    match field.type:
        case Scalar() | Typedef():
            return "int"
        case StructType(name=name):
            return name
        case Pointer(to=Scalar(name="void" | "char")):
            return "int | None"
        case Pointer(to=to):
            return f"Pointer[{_pointee(to)}]"
        case FixedArray(of=of):
            return f"ctypes.Array[{ctype(of)}]"
        case Callback():
            return callback_name(field, struct)


def _pointee(type_: Type) -> str:
    if isinstance(type_, Pointer) and ctype(type_) != "ctypes.c_void_p":
        return f"Pointer[{_pointee(type_.to)}]"
    return ctype(type_)


def callback_name(field: Field, struct: Struct) -> str:
    """Returns the name of a callback's type: "ArrowArrayStreamGetNext"."""
    return struct.name + pascal(field.name)


def failure(contract: Contract) -> str:
    return literal(None if contract.failure == "nothing" else contract.failure)


def result(type_: Type) -> str:
    """Returns a result type. A pointer is an address: ctypes callbacks return only simple types."""
    if type_ == Scalar("void"):
        return "None"
    return "ctypes.c_void_p" if isinstance(type_, Pointer) else ctype(type_)


def open_fields(spec: Spec) -> list[tuple[str, str, str]]:
    """Returns the fields with open sets of numbers: the struct, the field and its type."""
    return [
        (struct.name, field.name, ctype(field.type))
        for struct in spec.structs
        for field in struct.fields
        if isinstance(field.type, Typedef) or field.enumerated_by
    ]


# --- Docs --------------------------------------------------------------------------------------


def docstring(paragraphs: Iterable[str], indent: int) -> str:
    """Returns the paragraphs as a docstring, indented by `indent` columns."""
    margin = " " * indent
    blocks = [_escape(paragraph) for paragraph in paragraphs]
    line = f'{margin}"""{blocks[0]}"""'
    if len(blocks) == 1 and len(line) <= _WIDTH:
        return line
    starts = [margin + '"""', *[margin] * (len(blocks) - 1)]
    wrapped = [wrap(b, _WIDTH, start, margin) for b, start in zip(blocks, starts, strict=True)]
    return "\n\n".join(wrapped) + f'\n{margin}"""'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def struct_doc(struct: Struct, interface: Interface) -> list[str]:
    return [struct.doc, struct_facts(struct, interface)]


def field_doc(field: Field) -> list[str]:
    paragraphs = [field.doc, field_facts(field)]
    if field.contract is not None:
        paragraphs.append(" ".join(contract_facts(field.contract)))
    return paragraphs


def device_doc(device: Device) -> list[str]:
    return [device.doc, f"Device id: {device.device_id}."]


# --- Layout ------------------------------------------------------------------------------------


def layout_rows(spec: Spec, struct: Struct) -> tuple[str, list[tuple[str, str]]]:
    """Returns size and alignment per target class, and each field's name, offset and size."""
    layouts = struct_layouts(spec, struct)
    fields = []
    for column, field in enumerate(struct.fields):
        places = [layout.fields[column] for layout in layouts]
        fields.append((field.name, _pairs((place.offset, place.size) for place in places)))
    return _pairs((layout.size, layout.align) for layout in layouts), fields


def _pairs(pairs: Iterable[tuple[int, int]]) -> str:
    return f"({', '.join(str(pair) for pair in pairs)})"


FILTERS: Filters = {
    "annotation": annotation,
    "callback_name": callback_name,
    "ctype": ctype,
    "device_doc": device_doc,
    "docstring": docstring,
    "failure": failure,
    "field_ctype": field_ctype,
    "field_doc": field_doc,
    "literal": literal,
    "result": result,
    "struct_doc": struct_doc,
}
