"""C's spelling of types and declarations."""

from __future__ import annotations

from ...reading.types import Callback, FixedArray, Pointer, Scalar, StructType, Type, Typedef

_SCALARS = {
    "int": "int",
    "char": "char",
    "void": "void",
    "intptr": "intptr_t",
    "uintptr": "uintptr_t",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def type_name(type_: Type) -> str:
    """Returns a C type that needs no declarator: `const char*`, `struct ArrowArray*`."""
    match type_:
        case Scalar(name=name):
            return _SCALARS[name]
        case Typedef(name=name):
            return name
        case StructType(name=name, typedef=typedef):
            return name if typedef else f"struct {name}"
        case Pointer(to=to, const=const):
            return f"{'const ' if const else ''}{type_name(to)}*"
        case Callback(name=str(name)):
            return name
        case Callback(arguments=arguments, returns=returns):
            return f"{type_name(returns)} (*)({', '.join(type_name(a.type) for a in arguments)})"
        case FixedArray():
            raise ValueError(f"{type_} needs a declarator")


def declarator(name: str, type_: Type) -> str:
    """Returns the declaration on one line."""
    match type_:
        case FixedArray(of=of, count=count):
            return f"{type_name(of)} {name}[{count}]"
        case Callback(arguments=arguments, returns=returns, name=None):
            inner = ", ".join(declarator(a.name, a.type) for a in arguments)
            return f"{type_name(returns)} (*{name})({inner})"
        case _:
            return f"{type_name(type_)} {name}"
