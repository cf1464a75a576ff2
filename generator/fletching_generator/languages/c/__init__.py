"""C: the headers `fletching/abi.h`, `dlpack.h` and `version.h`, and the tables of the core."""

from __future__ import annotations

from ...headers.dlpack_version import parse_version
from ...reading.types import (
    Argument,
    Callback,
    Constant,
    FixedArray,
    Pointer,
    StructType,
    Type,
    Typedef,
)
from ...render import Filters, Output
from ...spec.layout import StructLayout, struct_layouts
from ...spec.model import Enumerator, Field, Interface, Spec, Struct
from ...spelling import literal
from . import core
from .names import declarator, type_name
from .wrapping import wrap_arguments

# An earlier dlpack.h lacks structs and cannot be checked.
DLPACK_MINIMUM = (1, 2)


# The Go tests need copies, because a published module contains no file from outside its folder.
_FOLDERS = ("cpp/include/fletching", "bindings/go/internal/headers/fletching")


def outputs(spec: Spec) -> list[Output]:
    return [
        *(_header(spec, "abi.h", "spec/*.yaml", folder) for folder in _FOLDERS),
        *(_header(spec, "dlpack.h", "spec/dlpack.yaml", folder) for folder in _FOLDERS),
        Output(
            "cpp/include/fletching/version.h",
            "version.h",
            "spec/project.yaml",
            {"project": spec.project},
        ),
        *core.outputs(spec),
    ]


def _header(spec: Spec, name: str, source: str, folder: str) -> Output:
    interfaces = [interface for interface in spec.interfaces if interface.header == name]
    structs = [struct for interface in interfaces for struct in interface.structs]
    context = {
        "interfaces": interfaces,
        "structs": structs,
        "constants": {i.id: spec.interface_constants(i) for i in interfaces},
        "layouts": {s.name: struct_layouts(spec, s) for s in structs},
        "functions_before": {s.name: _first_used(interfaces, s) for s in structs},
        "keyword": "" if structs[0].typedef else "struct ",
        "enumerators": _by_minor_version(interfaces),
    }
    return Output(f"{folder}/{name}", name, source, context)


def _first_used(interfaces: list[Interface], struct: Struct) -> tuple[Callback, ...]:
    """Returns the named functions of an interface for the first struct that uses any, or none."""
    for interface in interfaces:
        named = interface.functions
        users = [s for s in interface.structs if any(f.type in named for f in s.fields)]
        if users and users[0] is struct:
            return named
    return ()


def _by_minor_version(interfaces: list[Interface]) -> dict[int, list[Enumerator]]:
    """Groups the enumerators by the minor version of DLPack 1 that introduced them."""
    found: dict[int, list[Enumerator]] = {}
    for typedef in (t for i in interfaces for t in i.typedefs):
        for enumerator in typedef.enumerators:
            since = parse_version(enumerator.since or "")
            found.setdefault(since[1] if since > DLPACK_MINIMUM else 0, []).append(enumerator)
    return dict(sorted(found.items()))


def declare(field: Field, struct: Struct) -> str:
    """Declares a member of `struct`."""
    type_ = _before_typedef(field.type, struct.name) if struct.typedef else field.type
    if isinstance(type_, Callback) and type_.name is None:
        return declare_function(f"(*{field.name})", type_, 2)
    return f"{declarator(field.name, type_)};"


def _before_typedef(type_: Type, name: str) -> Type:
    """Returns the type inside the definition of the struct `name`, before its typedef exists."""
    match type_:
        case StructType(name=own) if own == name:
            return StructType(name)
        case Pointer(to=to, const=const):
            return Pointer(_before_typedef(to, name), const)
        case Callback(arguments=arguments, returns=returns, name=None):
            opened = (Argument(a.name, _before_typedef(a.type, name)) for a in arguments)
            return Callback(tuple(opened), returns)
        case _:
            return type_


def declare_function(head: str, callback: Callback, indent: int) -> str:
    """Returns `int (*name)(arguments);`, wrapped like clang-format."""
    parts = [declarator(a.name, a.type) for a in callback.arguments]
    head = f"{type_name(callback.returns)} {head}("
    return wrap_arguments(head, parts, ");", indent)


def assert_field(field: Field, struct: Struct, layouts: list[StructLayout]) -> str:
    """Asserts that a field has the offsets of the layouts, one per target class."""
    offsets = [str(layout.offset(field.name)) for layout in layouts]
    arguments = [struct.name, field.name, size_of(field.type), *offsets]
    return wrap_arguments("FLETCHING_ASSERT_FIELD(", arguments, ");")


def size_of(type_: Type) -> str:
    """Returns the size of a field of this type in C and C++, without relying on a copied struct."""
    match type_:
        case Typedef(scalar=scalar):
            return size_of(scalar)
        case FixedArray(of=of, count=count):
            return f"{count} * {size_of(of)}"
        case Callback():
            return "sizeof(void (*)(void))"
        case Pointer():
            return "sizeof(void*)"
        case _:
            return f"sizeof({type_name(type_)})"


def macro_value(constant: Constant) -> str:
    suffix = "UL" if constant.type == "uint64" else ""
    return literal(constant.value) + suffix


FILTERS: Filters = {
    "assert_field": assert_field,
    "declare": declare,
    "declare_function": declare_function,
    "literal": literal,
    "macro_value": macro_value,
    "type_name": type_name,
    **core.FILTERS,
}
