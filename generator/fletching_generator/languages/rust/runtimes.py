"""Rust: the tables of the runtimes that the crate `fletching` calls, and whose events they are."""

from __future__ import annotations

from collections.abc import Sequence

from ...render import Filters, Output
from ...runtimes.model import Function, Runtime, VendorType
from ...runtimes.names import BUILT_IN, snake, statuses
from ...runtimes.tables import called_runtimes, devices_of, is_required
from ...spec.model import Spec
from ...spec.types import Callback, Constant
from ...spelling import literal, pascal
from .text import WIDTH, doc, signature, type_name

_TABLES = "bindings/rust/fletching/src/runtime/tables"
# "system" is stdcall on 32-bit Windows, where a convention says so, and C everywhere else. A
# runtime without a convention has no library for 32-bit Windows.
_FUNCTION = 'unsafe extern "system" fn'
_CHAIN = 60  # rustfmt's fn_call_width and array_width


def outputs(spec: Spec) -> list[Output]:
    called = called_runtimes(spec)
    tables = Output(
        f"{_TABLES}.rs",
        "runtimes.rs",
        "spec/*.yaml",
        {"spec": spec, "called": called, "of_runtime": of_runtime(spec)},
    )
    return [tables, *(_table(runtime) for runtime in called)]


def _table(runtime: Runtime) -> Output:
    types = [type_ for type_ in runtime.types if type_.name not in BUILT_IN]
    handles = {type_.name for type_ in types if type_.kind == "handle"}
    context = {
        "runtime": runtime,
        "types": types,
        "statuses": statuses(runtime),
        "has_handles": any(constant.type in handles for constant in runtime.constants),
    }
    return Output(f"{_TABLES}/{runtime.name}.rs", "runtime.rs", "spec/runtimes.yaml", context)


def of_runtime(spec: Spec) -> dict[str, list[str]]:
    """The device types of each runtime, as the constants are called."""
    return {
        name: [f"ArrowDeviceType::{device.name.upper()}" for device in devices]
        for name, devices in devices_of(spec).items()
    }


def variant(runtime: Runtime) -> str:
    return pascal(runtime.name)


def arm(patterns: Sequence[str], value: str, indent: int = 8) -> str:
    """An arm of a match, broken as rustfmt does it."""
    margin = " " * indent
    line = f"{margin}{' | '.join(patterns)} =>"
    if len(f"{line} {value},") <= WIDTH:
        return f"{line} {value},"
    if len(f"{line} {{") <= WIDTH:
        return f"{line} {{\n{margin}    {value}\n{margin}}}"
    joined = f"\n{margin}| ".join(patterns)
    return f"{margin}{joined} => {value},"


def matches(constants: Sequence[Constant], value: str) -> str:
    """Whether the value is one of the constants."""
    names = [constant_name(constant) for constant in constants]
    short = f"matches!({value}, {' | '.join(names)})"
    if len(short) <= _CHAIN:
        return f"    {short}"
    alternatives = "\n            | ".join(names)
    return f"    matches!(\n        {value},\n        {alternatives}\n    )"


def constant_name(constant: Constant) -> str:
    """hipErrorNotReady as HIP_ERROR_NOT_READY."""
    name = constant.name
    return name if name.isupper() else snake(name).upper()


def constant_doc(constant: Constant) -> str:
    """The text, with the vendor's name where ours differs."""
    own = constant_name(constant) == constant.name
    return doc(constant.doc if own else f"{constant.name}: {constant.doc}")


def vendor_constant(constant: Constant, runtime: Runtime) -> str:
    """The definition of a constant; a handle is a number that is no address."""
    assert isinstance(constant.value, int)
    types = {type_.name: type_ for type_ in runtime.types}
    number = hex(constant.value) if constant.value > 0xFF else str(constant.value)
    if constant.type not in types:
        type_ = constant.type.replace("uint", "u").replace("int", "i")
    else:
        type_ = constant.type
        if types[constant.type].kind == "handle":
            number = f"without_provenance_mut({number})"
    return f"pub const {constant_name(constant)}: {type_} = {number};"


def alias(type_: VendorType) -> str:
    """The definition of a vendor's type."""
    text = doc(type_.doc)
    if type_.kind == "handle":
        return f"{text}\npub type {type_.name} = *mut c_void;"
    if type_.callback is None:
        return f"{text}\npub type {type_.name} = {type_name(type_.scalar)};"
    return f"{text}\n{_wrapped(f'pub type {type_.name} =', 'Option', type_.callback, 0, ';')}"


def function_field(function: Function) -> str:
    """The member of Functions that holds the function."""
    holder = "Symbol" if is_required(function) else "Optional"
    return _wrapped(f"    pub {snake(function.name)}:", holder, function.type, 4, ",")


def _wrapped(head: str, holder: str, callback: Callback, indent: int, end: str) -> str:
    """`head holder<function>`, broken as rustfmt does it."""
    one_line = f"{holder}<{signature(_FUNCTION, callback)}>{end}"
    if "\n" not in one_line and len(f"{head} {one_line}") <= WIDTH:
        return f"{head} {one_line}"
    if "\n" not in one_line and indent + 4 + len(one_line) <= WIDTH:
        return f"{head}\n{' ' * (indent + 4)}{one_line}"
    inner = signature(f"{' ' * (indent + 4)}{_FUNCTION}", callback, indent + 4)
    return f"{head} {holder}<\n{inner},\n{' ' * indent}>{end}"


def function_facts(function: Function) -> str:
    since = f" {function.optional}." if function.optional else ""
    return doc(f"{function.name}: {function.doc}{since}", 4)


def symbol(function: Function) -> str:
    """How a function is found in the library."""
    found = ("required", "?") if is_required(function) else ("optional", "")
    head = f"            {snake(function.name)}: library"
    call = f".{found[0]}(c{literal(function.symbol)}){found[1]},"
    line = f"{head}{call}"
    return line if len(line) <= WIDTH else f"{head}\n                {call}"


def library_names(names: tuple[str, ...]) -> str:
    quoted = [f'"{name}"' for name in names]
    line = ", ".join(quoted)
    if len(line) + 2 <= _CHAIN:
        return f"&[{line}]"
    return "".join(["&[\n", *(f"        {name},\n" for name in quoted), "    ]"])


def status_arm(constant: Constant) -> str:
    return arm([constant_name(constant)], f'"{constant.name}"')


FILTERS: Filters = {
    "alias": alias,
    "arm": arm,
    "constant_doc": constant_doc,
    "function_facts": function_facts,
    "function_field": function_field,
    "library_names": library_names,
    "matches": matches,
    "names": lambda constants: [constant_name(constant) for constant in constants],
    "status_arm": status_arm,
    "symbol": symbol,
    "variant": variant,
    "vendor_constant": vendor_constant,
}
