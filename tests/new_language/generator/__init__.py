"""Zig: `fletching.zig`, the structs and numbers of the interfaces."""

from __future__ import annotations

from fletching_generator import spelling
from fletching_generator.reading.types import Callback, FixedArray, Pointer, Scalar, Type
from fletching_generator.render import Filters, Output
from fletching_generator.spec.layout import struct_layouts
from fletching_generator.spec.model import Spec

_SCALARS = {"int": "c_int", "char": "u8", "void": "anyopaque"} | {
    f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}
# Words that can be C names, but Zig names only if written as @"name".
_KEYWORDS = """
    addrspace align allowzero and anyframe anytype asm callconv catch comptime defer errdefer error
    export fn inline linksection noalias noinline nosuspend opaque or orelse packed pub resume
    suspend test threadlocal try union unreachable usingnamespace var
"""


def outputs(spec: Spec) -> list[Output]:
    devices = next(typedef for typedef in spec.typedefs if typedef.from_devices)
    context = {
        "spec": spec,
        # Arrow's device types have DLPack's numbers.
        "enumerators": {t.type.name: t.enumerators or devices.enumerators for t in spec.typedefs},
        "layouts": {struct.name: struct_layouts(spec, struct) for struct in spec.structs},
    }
    return [Output("bindings/zig/src/fletching.zig", "fletching.zig", "spec/*.yaml", context)]


def identifier(name: str) -> str:
    return spelling.identifier(name, _KEYWORDS, lambda word: f'@"{word}"')


def type_name(type_: Type, is_argument: bool = False) -> str:
    """A pointer in memory may always be NULL, because a released struct is all zero."""
    match type_:
        case Scalar(name=name):
            return _SCALARS[name]
        case Pointer(to=to):
            optional = "" if is_argument and type_.nullable is False else "?"
            stars = {"many": "[*]", "text": "[*:0]"}.get(str(type_.target), "*")
            return f"{optional}{stars}{'const ' if type_.const else ''}{type_name(to)}"
        case FixedArray(of=of, count=count):
            return f"[{count}]{type_name(of)}"
        case Callback(arguments=arguments, returns=returns):
            inner = ", ".join(f"{identifier(a.name)}: {type_name(a.type, True)}" for a in arguments)
            result = "void" if returns == Scalar("void") else type_name(returns)
            return f"?*const fn ({inner}) callconv(.c) {result}"
        case _:
            return type_.name


FILTERS: Filters = {
    "by_class": spelling.by_class,
    "contract_facts": spelling.contract_facts,
    "field_facts": spelling.field_facts,
    "identifier": identifier,
    "literal": spelling.literal,
    "of_field": spelling.of_field,
    "struct_facts": spelling.struct_facts,
    "type_name": type_name,
}
