"""C++: the headers `cpp/producer/runtimes/*.hpp`: each has a vendor's types and functions.

Also the names of the functions that an interposer of tests/faults exports.
"""

from __future__ import annotations

from ...reading.types import (
    Argument,
    Callback,
    Constant,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...render import Filters, Output
from ...runtimes.model import Function, Runtime, VendorType
from ...runtimes.names import BUILT_IN, snake, statuses
from ...spec.model import Spec
from ..c.wrapping import return_name, wrap_arguments

_INTERPOSED = ("opencl",)  # exported without the vendor's header


def outputs(spec: Spec) -> list[Output]:
    headers = [
        Output(
            f"cpp/producer/runtimes/{runtime.name}.hpp",
            "runtime.hpp",
            "spec/runtimes.yaml",
            {"runtime": runtime, "statuses": statuses(runtime), "built_in": BUILT_IN},
        )
        for runtime in spec.runtimes
        if runtime.api == "c"
    ]
    interposed = [
        Output(
            f"tests/faults/{runtime.name}_functions.inc",
            "functions.inc",
            "spec/runtimes.yaml",
            {"runtime": runtime},
        )
        for runtime in spec.runtimes
        if runtime.name in _INTERPOSED
    ]
    return headers + interposed


def constant_name(name: str) -> str:
    """Returns kCudaErrorNotReady for CUDA_ERROR_NOT_READY: the vendors' names are macros."""
    if name.isupper():
        return "k" + "".join(word.capitalize() for word in name.split("_"))
    return f"k{name[0].upper()}{name[1:]}"


def type_name(type_: Type) -> str:
    """Returns a C++ type that needs no declarator."""
    match type_:
        case Scalar(name=("char" | "void") as name):
            return name
        case Scalar(name=name) | Typedef(name=name) if name in BUILT_IN:
            return f"std::{name}"
        case Scalar(name=name):
            return f"std::{name}_t"
        case Pointer(to=to, const=const):
            return f"{'const ' if const else ''}{type_name(to)}*"
        case Typedef(name=name) | StructType(name=name):
            return name
    raise ValueError(f"{type_} is not a type of a vendor's function")


def constant_type(constant: Constant, runtime: Runtime) -> str:
    """Returns a constant's type: a number for a handle, whose cast to a pointer is not constant."""
    types = {type_.name: type_ for type_ in runtime.types}
    if constant.type not in types:
        return f"std::{constant.type}_t"
    return "std::uintptr_t" if types[constant.type].kind == "handle" else constant.type


def constant_value(value: int) -> str:
    return hex(value) if value > 0xFF else str(value)


def alias(type_: VendorType, runtime: Runtime) -> str:
    """Returns the definition of a vendor's type."""
    name = type_.name
    match type_.kind:
        case "handle":
            return f"using {name} = struct {name}Opaque*;"
        case "handle64":
            return f"using {name} = Handle64<struct {name}Opaque>;"
        case "struct":
            fields = "".join(f"  {parameter(field)};\n" for field in type_.fields)
            return f"struct {name} {{\n{fields}}};" if fields else f"struct {name};"
        case "callback":
            assert type_.callback is not None
            head, arguments = pointer(type_.callback, runtime)
            line = wrap_arguments(f"using {name} = {head}", arguments, ")>;")
            below = wrap_arguments(head, arguments, ")>;", 4)
            return f"using {name} =\n    {below}" if "\n" in line else line
        case _:
            return f"using {name} = std::{type_.scalar.name}_t;"


def parameter(argument: Argument) -> str:
    return f"{type_name(argument.type)} {argument.name}"


def pointer_member(function: Function, runtime: Runtime) -> str:
    """Returns the declaration of the function's pointer in struct `Functions`."""
    name = snake(function.name)
    head, arguments = pointer(function.type, runtime)
    line = wrap_arguments(head, arguments, f")> {name};", 2)
    return f"{wrap_arguments(head, arguments, ')>', 2)}\n      {name};" if "\n" in line else line


def pointer(callback: Callback, runtime: Runtime) -> tuple[str, list[str]]:
    """Returns a pointer to the callback: the text before its parameters, and the parameters."""
    kind = "StdcallFunction" if runtime.convention else "CFunction"
    head = f"{kind}<{type_name(callback.returns)}("
    return head, [parameter(argument) for argument in callback.arguments]


def function_row(function: Function) -> str:
    """Returns one row of the table of functions."""
    per_thread, optional = (
        f'"{text}"' if text else "nullptr" for text in (function.per_thread, function.optional)
    )
    cells = [
        f'"{function.name}"',
        f'"{function.symbol}"',
        per_thread,
        optional,
        f"offsetof(Functions, {snake(function.name)})",
    ]
    return wrap_arguments("{", cells, "},", 4)


def names_list(names: tuple[str, ...]) -> str:
    """Returns the definition of the library names on one system."""
    quoted = [f'"{name}"' for name in names]
    head = f"inline constexpr std::array<const char*, {len(names)}> kLibraries{{"
    return wrap_arguments(head, quoted, "};")


FILTERS: Filters = {
    "alias": alias,
    "constant_name": constant_name,
    "constant_type": constant_type,
    "constant_value": constant_value,
    "function_row": function_row,
    "member_name": snake,
    "names_list": names_list,
    "pointer_member": pointer_member,
    "return_name": return_name,
}
