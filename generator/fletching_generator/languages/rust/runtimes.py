"""Rust: the tables of the runtimes that the crate `fletching` calls, and whose events a device has.

A runtime has a table when its events can be waited on by a call: the others need more than that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...render import Filters, Output
from ...runtimes.model import Function, Runtime, VendorType
from ...runtimes.names import BUILT_IN, snake, statuses
from ...spec.model import Spec
from ...spec.types import Constant
from ...spelling import pascal
from .text import WIDTH, doc, signature, type_name

_TABLES = "bindings/rust/fletching/src/runtime/tables"
_CHAIN = 60  # rustfmt's fn_call_width and array_width


def outputs(spec: Spec) -> list[Output]:
    called = [runtime for runtime in spec.runtimes if runtime.operation("host_wait").by == "call"]
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
        runtime.name: [
            f"ArrowDeviceType::{device.name.upper()}"
            for device in spec.devices
            if device.runtime == runtime.name
        ]
        for runtime in spec.runtimes
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


def alias(type_: VendorType, runtime: Runtime) -> str:
    """The definition of a vendor's type."""
    text = doc(type_.doc)
    head = f"pub type {type_.name} ="
    match type_.kind:
        case "handle":
            opaque = f"{pascal(snake(type_.name))}Opaque"
            opened = f"/// What a [`{type_.name}`] points to.\npub enum {opaque} {{}}"
            return f"{text}\n{head} *mut {opaque};\n\n{opened}"
        case "callback":
            assert type_.callback is not None
            function = signature(_abi(runtime), type_.callback)
            line = f"{head} Option<{function}>;"
            if "\n" not in function and len(line) <= WIDTH:
                return f"{text}\n{line}"
            if "\n" not in function and len(function) + 13 <= WIDTH:
                return f"{text}\n{head}\n    Option<{function}>;"
            function = signature(f"    {_abi(runtime)}", type_.callback, 4)
            return f"{text}\n{head} Option<\n{function},\n>;"
        case _:
            return f"{text}\n{head} {type_name(type_.scalar)};"


def _abi(runtime: Runtime) -> str:
    """The calling convention: "system" is stdcall on 32-bit Windows, and C everywhere else."""
    return f'unsafe extern "{"system" if runtime.convention else "C"}" fn'


def function_field(function: Function, runtime: Runtime) -> str:
    """The member of Functions that holds the function; an Option where a library may lack it."""
    head = f"    pub {snake(function.name)}:"
    kind = _abi(runtime)
    if is_required(function):
        short = signature(kind, function.type)
        if "\n" not in short and 9 + len(short) <= WIDTH < len(f"{head} {short},"):
            return f"{head}\n        {short},"
        return f"{signature(f'{head} {kind}', function.type, 4)},"
    short = f"Option<{signature(kind, function.type)}>,"
    if "\n" not in short and len(f"{head} {short}") <= WIDTH:
        return f"{head} {short}"
    if "\n" not in short and 8 + len(short) <= WIDTH:
        return f"{head}\n        {short}"
    inner = signature(" " * 8 + kind, function.type, 8)
    return f"{head} Option<\n{inner},\n    >,"


def is_required(function: Function) -> bool:
    """Whether no operation of a consumer's is possible without it."""
    return function.party == "consumer" and function.optional is None


def function_facts(function: Function) -> str:
    needed = "" if is_required(function) else " `None` where the library lacks it"
    since = f": {function.optional} have it" if function.optional else ""
    return doc(f"{function.name}: {function.doc}{needed}{since}{'.' if needed else ''}", 4)


def symbol(function: Function) -> str:
    """How a function is found in the library."""
    found = ("required", "?") if is_required(function) else ("find", "")
    head = f"            {snake(function.name)}: library"
    call = f'.{found[0]}(c"{function.symbol}"){found[1]},'
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
