"""Go: the tables of the runtimes that package `fletching` calls.

The types and functions are a header for its C code, the names of libraries and symbols are in Go.
"""

from __future__ import annotations

from ...render import Filters, Output
from ...runtimes.model import Function, Runtime, VendorType
from ...runtimes.names import BUILT_IN, statuses
from ...runtimes.tables import called_runtimes, devices_of, is_required
from ...spec.model import Spec
from ...spec.types import Argument, Callback, Constant, Pointer, Scalar, Type, Typedef
from ...spelling import literal
from .. import c
from ..c.wrapping import wrap_arguments
from .names import device_constant

_FOLDER = "bindings/go"
_WIDTH = 100
_SYSTEMS = (("linux", "linux"), ("windows", "windows"), ("macos", "darwin"))  # ours, GOOS


def outputs(spec: Spec) -> list[Output]:
    called = called_runtimes(spec)
    devices = {
        name: [f"abi.{device_constant(device)}" for device in found]
        for name, found in devices_of(spec).items()
    }
    context = {"spec": spec, "called": called, "devices": devices}
    tables = Output(f"{_FOLDER}/runtime_tables.go", "runtimes.go", "spec/*.yaml", context)
    return [tables, *(_header(runtime) for runtime in called)]


def _header(runtime: Runtime) -> Output:
    context = {
        "runtime": runtime,
        "types": [type_ for type_ in runtime.types if type_.name not in BUILT_IN],
        "statuses": statuses(runtime),
    }
    return Output(f"{_FOLDER}/runtime_{runtime.name}.h", "runtime.h", "spec/runtimes.yaml", context)


def type_name(type_: Type) -> str:
    """A type in C: an integer of <stdint.h>, or the vendor's name."""
    match type_:
        case Pointer(to=to, const=const):
            return f"{'const ' if const else ''}{type_name(to)}*"
        case Typedef(name=name):
            return name
        case Scalar(name=("uintptr" | "intptr") as name):
            return f"{name}_t"
        case _:
            return c.type_name(type_)


def alias(type_: VendorType) -> str:
    """The definition of a vendor's type."""
    if type_.kind == "handle":
        return f"typedef void* {type_.name};"
    if type_.callback is None:
        return f"typedef {type_name(type_.scalar)} {type_.name};"
    return _function("typedef ", type_.name, type_.callback, 0)


def constant_macro(constant: Constant) -> str:
    assert isinstance(constant.value, int)
    value = constant.value
    number = hex(value) if value > 0xFF else str(value) if value >= 0 else f"({value})"
    return f"#define {constant.name} (({type_name(_named(constant.type))}){number})"


def _named(name: str) -> Type:
    return Scalar(name) if name.startswith(("int", "uint")) else Typedef(name, Scalar("pointer"))


def function_member(function: Function) -> str:
    """The member of the struct that holds the function."""
    return _function("  ", function.name, function.type, 2)


def _function(start: str, name: str, callback: Callback, indent: int) -> str:
    """A pointer to such a function, broken as clang-format does it."""
    head = f"{start.strip()} {type_name(callback.returns)}".strip()
    head = f"{head}(FLETCHING_CALL* {name})("
    arguments = [_parameter(argument) for argument in callback.arguments] or ["void"]
    text = wrap_arguments(head, arguments, ");", indent, _WIDTH)
    return " " * indent + text


def _parameter(argument: Argument) -> str:
    return f"{type_name(argument.type)} {argument.name}"


def status_line(constant: Constant) -> str:
    """The name of a status, for its number."""
    condition, answer = f"  if (status == {constant.name})", f'return "{constant.name}";'
    line = f"{condition} {answer}"
    return line if len(line) <= _WIDTH else f"{condition}\n    {answer}"


def library_rows(runtime: Runtime) -> list[str]:
    """The file names by GOOS, aligned as gofmt does it; no row for a system without a library."""
    found = [(goos, getattr(runtime.libraries, system)) for system, goos in _SYSTEMS]
    rows = [(f'"{goos}":', names) for goos, names in found if names]
    width = max(len(key) for key, _ in rows)
    return [
        f"{key:{width}} {{{', '.join(literal(name) for name in names)}}}," for key, names in rows
    ]


def symbol_row(function: Function) -> str:
    return f"{{{literal(function.symbol)}, {str(is_required(function)).lower()}}}"


FILTERS: Filters = {
    "alias": alias,
    "constant_macro": constant_macro,
    "function_member": function_member,
    "library_rows": library_rows,
    "status_line": status_line,
    "symbol_row": symbol_row,
}
