"""C: the tables of the core in `cpp/core/tables/`: each has a vendor's types and functions.

They include the functions that the product calls, but not the reference producer's.
"""

from __future__ import annotations

from ...reading.types import Callback, Constant
from ...render import Filters, Output
from ...runtimes.model import Function, Runtime, VendorType
from ...runtimes.names import BUILT_IN, statuses
from ...spec.model import Spec
from ...spec.runtime_tables import devices_of, used_constants, used_types
from ...spec.tensor_types import TensorType
from ...spelling import literal
from .names import declarator, type_name
from .wrapping import return_name, wrap_arguments

_FOLDER = "cpp/core/tables"
# The core defines these itself.
_OWN = (*BUILT_IN, "any_function")
_SYSTEMS = (("_WIN32", "windows"), ("__APPLE__", "macos"), (None, "linux"))  # macro, spec name


def outputs(spec: Spec) -> list[Output]:
    context = {"spec": spec, "groups": {k: v for k, v in devices_of(spec).items() if v}}
    devices = Output(f"{_FOLDER}/devices.h", "core_devices.h", "spec/devices.yaml", context)
    tensors = Output(
        f"{_FOLDER}/tensor_types.h", "core_tensor_types.h", "spec/tensor-types.yaml", {"spec": spec}
    )
    runtimes = Output(
        f"{_FOLDER}/runtimes.h", "core_runtimes.h", "spec/runtimes.yaml", {"spec": spec}
    )
    return [
        devices,
        tensors,
        runtimes,
        *(_table(runtime) for runtime in spec.runtimes if runtime.api == "c"),
    ]


def _table(runtime: Runtime) -> Output:
    functions = called_functions(runtime)
    used = used_types(runtime, functions)
    context = {
        "runtime": runtime,
        "functions": functions,
        "types": [t for t in runtime.types if t.name in used and t.name not in _OWN],
        "constants": used_constants(runtime, used),
        "statuses": statuses(runtime),
    }
    return Output(f"{_FOLDER}/{runtime.name}.h", "core_runtime.h", "spec/runtimes.yaml", context)


def called_functions(runtime: Runtime) -> list[Function]:
    return [f for f in runtime.functions if {"product", "core"} & {*f.callers}]


def tensor_type_row(row: TensorType) -> str:
    extension = row.extension or ("arrow.opaque" if row.type_name else None)
    texts = [literal(text) if text else "NULL" for text in (extension, row.type_name)]
    numbers = [row.code, str(row.bits), str(row.lanes), str(row.padded).lower()]
    cells = [*numbers, literal(row.format), str(row.part_bytes), str(row.parts), *texts]
    return wrap_arguments("{", cells, "},", 4)


def refused_row(format_: str, why: str) -> str:
    return wrap_arguments("{", [literal(format_), literal(why)], "},", 4)


def alias(type_: VendorType) -> str:
    """Returns the definition of a vendor's type."""
    match type_.kind:
        case "handle":
            return f"typedef void* {type_.name};"
        case "handle64":
            return f"typedef uint64_t {type_.name};"
        case "struct":
            if not type_.fields:
                return f"typedef struct {type_.name} {type_.name};"
            fields = "".join(f"  {declarator(field.name, field.type)};\n" for field in type_.fields)
            return f"typedef struct {{\n{fields}}} {type_.name};"
        case "callback":
            assert type_.callback is not None
            return _function("typedef ", type_.name, type_.callback, 0)
        case _:
            return f"typedef {type_name(type_.scalar)} {type_.name};"


def constant_macro(constant: Constant) -> str:
    assert isinstance(constant.value, int)
    value = constant.value
    number = hex(value) if value > 0xFF else str(value) if value >= 0 else f"({value})"
    type_ = f"{constant.type}_t" if constant.type.startswith(("int", "uint")) else constant.type
    return f"#define {constant.name} (({type_}){number})"


def function_member(function: Function) -> str:
    """Returns the struct member for the function."""
    return _function("  ", function.name, function.type, 2)


def _function(start: str, name: str, callback: Callback, indent: int) -> str:
    """Returns the type of a pointer to the callback, wrapped like clang-format."""
    head = f"{start.strip()} {type_name(callback.returns)}".strip()
    head = f"{head}(FLETCHING_CALL* {name})("
    arguments = [declarator(a.name, a.type) for a in callback.arguments] or ["void"]
    return " " * indent + wrap_arguments(head, arguments, ");", indent)


def function_row(function: Function, runtime: Runtime) -> str:
    offset = f"offsetof(struct {runtime.name}_functions, {function.name})"
    return wrap_arguments("{", [f'"{function.symbol}"', offset], "},", 4)


def library_names(runtime: Runtime) -> str:
    """Returns the library file names by system; none if the vendor has no library."""
    lines: list[str] = []
    for macro, system in _SYSTEMS:
        names = [f'"{name}"' for name in getattr(runtime.libraries, system)]
        directive = "#else" if macro is None else f"#{'el' if lines else ''}if defined({macro})"
        head = f"static const char* const {runtime.name}_library_names[] = {{"
        lines += [directive, wrap_arguments(head, [*names, "NULL"], "};")]
    return "\n".join([*lines, "#endif"])


FILTERS: Filters = {
    "core_alias": alias,
    "core_constant": constant_macro,
    "core_function_row": function_row,
    "core_library_names": library_names,
    "core_member": function_member,
    "core_refused": refused_row,
    "return_name": return_name,
    "core_tensor_type": tensor_type_row,
}
