"""Java: the tables of the runtimes that `fletching` calls, shared by both engines."""

from __future__ import annotations

from ...reading.types import SCALAR_SIZES, Callback, Constant, Pointer, Scalar, Type, Typedef
from ...render import Filters, Output
from ...runtimes.model import Function, Runtime
from ...runtimes.names import snake, statuses
from ...spec.model import Spec
from ...spec.runtime_tables import called_runtimes, devices_of, used_constants, used_types
from ...spelling import literal, pascal
from .text import Broken, Call, Node

_FOLDER = "bindings/java/fletching/src/main/java/io/github/fletching/"

# The functions of a runtime that supports captures: our name, and the suffix of the vendor's name.
_CAPTURING_CALLS = {
    "init": "_INIT",
    "exchangeMode": "_THREAD_EXCHANGE_STREAM_CAPTURE_MODE",
    "isCapturing": "_STREAM_IS_CAPTURING",
    "streamWaitEvent": "_STREAM_WAIT_EVENT",
    "streamSynchronize": "_STREAM_SYNCHRONIZE",
    "eventSynchronize": "_EVENT_SYNCHRONIZE",
    "eventQuery": "_EVENT_QUERY",
    "eventRecord": "_EVENT_RECORD",
    "eventRecordWithFlags": "_EVENT_RECORD_WITH_FLAGS",
    "eventDestroy": "_EVENT_DESTROY",
    "getErrorName": "_GET_ERROR_NAME",
    "getErrorString": "_GET_ERROR_STRING",
}
_CAPTURING_NUMBERS = {
    "implicitCapture": "_ERROR_STREAM_CAPTURE_IMPLICIT",
    "invalidHandle": "_ERROR_INVALID_HANDLE",
    "relaxedMode": "_STREAM_CAPTURE_MODE_RELAXED",
    "disableTiming": "_EVENT_DISABLE_TIMING",
    "blockingSync": "_EVENT_BLOCKING_SYNC",
}


def outputs(spec: Spec) -> list[Output]:
    kinds = Output(
        f"{_FOLDER}RuntimeKind.java",
        "RuntimeKind.java",
        "spec/*.yaml",
        {"spec": spec, "called": called_runtimes(spec), "devices": devices_of(spec)},
    )
    return [kinds, _capturing(spec), *(_table(runtime) for runtime in called_runtimes(spec))]


def _table(runtime: Runtime) -> Output:
    name = f"{pascal(runtime.name)}Table"
    functions = called_functions(runtime)
    context = {
        "name": name,
        "runtime": runtime,
        "functions": functions,
        "constants": used_constants(runtime, used_types(runtime, functions)),
        "statuses": statuses(runtime),
        "handles": {type_.name for type_ in runtime.types if type_.kind == "handle"},
    }
    return Output(f"{_FOLDER}{name}.java", "RuntimeTable.java", "spec/runtimes.yaml", context)


def called_functions(runtime: Runtime) -> list[Function]:
    return [function for function in runtime.functions if "product" in function.callers]


def _capturing(spec: Spec) -> Output:
    """Returns the calls that CUDA and HIP share."""
    tables = {
        runtime.name: runtime
        for runtime in called_runtimes(spec)
        if any(_name(function).endswith("_STREAM_IS_CAPTURING") for function in runtime.functions)
    }
    context = {
        "runtimes": {name: capturing_values(runtime) for name, runtime in tables.items()},
        "calls": ["eventCreate", *_CAPTURING_CALLS],
        "numbers": list(_CAPTURING_NUMBERS),
    }
    path = f"{_FOLDER}CapturingCalls.java"
    return Output(path, "CapturingCalls.java", "spec/runtimes.yaml", context)


def capturing_values(runtime: Runtime) -> Call:
    """Returns the values of one runtime, in the order of the constructor."""
    table = f"{pascal(runtime.name)}Table"
    functions = [_name(function) for function in called_functions(runtime)]
    numbers = [constant_name(constant) for constant in runtime.constants]
    create = _name(runtime.operation("create").functions[0])
    names = [create, *(_ending(functions, end) for end in _CAPTURING_CALLS.values())]
    names += [_ending(numbers, end) for end in _CAPTURING_NUMBERS.values()]
    arguments: list[Node] = [f"{table}.{name}" for name in names]
    arguments += [f"{table}::{method}" for method in ("stateOf", "isLost", "nameOf")]
    return Call("new CapturingCalls", arguments)


def _ending(names: list[str], end: str) -> str:
    found = [name for name in names if name.endswith(end)]
    return min(found, key=len)  # cuEventQuery, if other names have the same suffix


def signature(callback: Callback) -> str:
    """Returns the types of a function in the form of Engine.call: "iaa"."""
    types = [callback.returns, *(argument.type for argument in callback.arguments)]
    return "".join(_letter(type_) for type_ in types)


def _letter(type_: Type) -> str:
    scalar = type_.scalar if isinstance(type_, Typedef) else type_
    if isinstance(scalar, Pointer | Callback):
        return "a"
    assert isinstance(scalar, Scalar)
    if scalar.name in ("pointer", "uintptr", "intptr"):
        return "a"
    if scalar.name == "void":
        return "v"
    return "l" if SCALAR_SIZES[scalar.name] == 8 else "i"  # narrower values use a whole register


def constant_name(constant: Constant) -> str:
    """Returns HIP_ERROR_NOT_READY for hipErrorNotReady."""
    name = constant.name
    return name if name.isupper() else snake(name).upper()


def constant_doc(constant: Constant) -> str:
    """Returns the documentation, with the vendor's name if it differs from the Java name."""
    own = constant_name(constant) == constant.name
    return constant.doc if own else f"{constant.name}: {constant.doc}"


def constant_row(constant: Constant, handles: set[str]) -> str:
    assert isinstance(constant.value, int)
    type_ = "long" if constant.type in handles else "int"
    number = hex(constant.value) if constant.value > 0xFFFF else str(constant.value)
    return f"static final {type_} {constant_name(constant)} = {number};"


def function_doc(function: Function) -> str:
    return function.doc + (f" Optional: {function.optional}." if function.optional else "")


def function_row(function: Function) -> Broken:
    arguments: list[Node] = [literal(function.symbol), literal(signature(function.type))]
    return Broken(f"static final Symbol {_name(function)} =", Call("LIBRARY.symbol", arguments))


def _name(function: Function) -> str:
    return snake(function.name).upper()


def library_row(runtime: Runtime) -> Broken:
    found = runtime.libraries
    names: list[Node] = [
        Call("List.of", [literal(name) for name in files])
        for files in (found.linux, found.windows, found.macos)
    ]
    value = Call("new Library", [literal(runtime.title), *names])
    return Broken("static final Library LIBRARY =", value)


FILTERS: Filters = {
    "runtime_constant_doc": constant_doc,
    "runtime_constant_name": constant_name,
    "runtime_constant_row": constant_row,
    "runtime_function_doc": function_doc,
    "runtime_function_row": function_row,
    "runtime_library_row": library_row,
}
