"""C: the header `fletching/abi.h`."""

from __future__ import annotations

from ..layout import LAYOUT_CLASSES, StructLayout, struct_layout
from ..model import (
    Callback,
    Constant,
    Field,
    FixedArray,
    Interface,
    Pointer,
    Scalar,
    Spec,
    Struct,
    StructType,
    Type,
    Typedef,
)
from ..render import Filters, Output

_SCALARS = {
    "int": "int",
    "char": "char",
    "void": "void",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def outputs(spec: Spec) -> list[Output]:
    constants = {i.id: interface_constants(spec, i) for i in spec.interfaces}
    context = {
        "spec": spec,
        "constants": constants,
        "layouts": {s.name: struct_layouts(spec, s) for s in spec.structs},
    }
    return [Output("cpp/include/fletching/abi.h", "c/abi.h", "spec/*.yaml", context)]


def interface_constants(spec: Spec, interface: Interface) -> list[Constant]:
    """The macros that stand inside the guard of the interface."""
    devices = spec.arrow_devices if interface.device_macros else ()
    macros = [Constant(device.arrow or "", device.value, device.doc) for device in devices]
    return [*interface.constants, *macros]


def struct_layouts(spec: Spec, struct: Struct) -> list[StructLayout]:
    return [struct_layout(spec, struct, target) for target in LAYOUT_CLASSES]


def type_name(type_: Type) -> str:
    """A type in C, where no declarator is needed: `const char*`, `struct ArrowArray*`."""
    match type_:
        case Scalar(name=name):
            return _SCALARS[name]
        case Typedef(name=name):
            return name
        case StructType(name=name):
            return f"struct {name}"
        case Pointer(to=to, const=const):
            return f"{'const ' if const else ''}{type_name(to)}*"
        case FixedArray() | Callback():
            raise ValueError(f"{type_} needs a declarator")


def declare(field: Field, indent: int = 2, width: int = 100) -> str:
    """The declaration of a struct member, wrapped as clang-format does it."""
    match field.type:
        case FixedArray(of=of, count=count):
            return f"{type_name(of)} {field.name}[{count}]"
        case Callback(arguments=arguments, returns=returns):
            head = f"{type_name(returns)} (*{field.name})("
            parts = [f"{type_name(a.type)} {a.name}" for a in arguments]
            return wrap_arguments(head, parts, ")", indent, width - 1)
        case _:
            return f"{type_name(field.type)} {field.name}"


def wrap_arguments(head: str, arguments: list[str], tail: str, indent: int, width: int) -> str:
    """`head` and the arguments on as few lines as fit, aligned behind the opening bracket."""
    lines = [head]
    for index, argument in enumerate(arguments):
        last = index == len(arguments) - 1
        piece = argument + (tail if last else ",")
        space = "" if index == 0 else " "
        first = len(lines) == 1
        used = len(lines[-1]) + (indent if first else 0)
        if index == 0 or used + len(space) + len(piece) <= width:
            lines[-1] += space + piece
        else:
            lines.append(" " * (indent + len(head)) + piece)
    return "\n".join(lines)


def assert_field(field: Field, struct: Struct, layouts: list[StructLayout]) -> str:
    """The assertion that a field lies where the layouts say, one offset per class of target."""
    offsets = [str(layout.offset(field.name)) for layout in layouts]
    arguments = [struct.name, field.name, size_of(field.type), *offsets]
    return wrap_arguments("FLETCHING_ASSERT_FIELD(", arguments, ");", 0, 100)


def size_of(type_: Type) -> str:
    """The size of a field of this type in C and C++, without asking a copy that may be wrong."""
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


def literal(value: int | str) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


FILTERS: Filters = {
    "assert_field": assert_field,
    "declare": declare,
    "literal": literal,
    "type_name": type_name,
}
