"""The semantic checks of spec/runtimes.yaml: faults that a schema cannot detect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import Mistake, SpecError
from ..reading.documents import Document, Report
from ..reading.types import Pointer, Type
from .model import Function, Runtime, VendorType

_OF_C = ("read_from", "header", "status", "query")
_WITH_FUNCTIONS = ("call", "polling", "command_buffer")


def check_runtimes(runtimes: tuple[Runtime, ...], document: Document, devices: Document) -> None:
    """Raises SpecError with all mistakes, in the order of the lines."""
    mistakes: list[Mistake] = []
    symbols: dict[str, str] = {}
    names: set[str] = set()
    for index, runtime in enumerate(runtimes):
        report = document.reporter(mistakes, "runtimes", index)
        if runtime.name in names:
            report(["name"], f"'{runtime.name}' is a duplicate", "rename or remove one")
        names.add(runtime.name)
        _check_api(runtime, report)
        _check_libraries(runtime, report)
        _check_handles(runtime, report)
        _check_operations(runtime, document.content["runtimes"][index]["operations"], report)
        _check_query(runtime, report)
        _check_functions(runtime, symbols, report)
    mistakes.sort(key=lambda mistake: mistake.line)
    for index, device in enumerate(devices.content["devices"]):
        name = device.get("runtime")
        if name is not None and name not in names:
            hint = f"add it to spec/runtimes.yaml, or use one of {', '.join(sorted(names))}"
            problem = f"runtime '{name}' is not declared"
            mistakes.append(devices.mistake(["devices", index, "runtime"], problem, hint))
    if mistakes:
        raise SpecError(*mistakes)


def check_events(runtimes: tuple[Runtime, ...], devices: Document) -> None:
    """Checks that a device has its runtime's event. Raises SpecError with all mistakes."""
    by_name = {runtime.name: runtime for runtime in runtimes}
    mistakes: list[Mistake] = []
    for index, device in enumerate(devices.content["devices"]):
        if "runtime" in device:
            report = devices.reporter(mistakes, "devices", index, "event")
            _check_event(device["event"], by_name[device["runtime"]], report)
    if mistakes:
        raise SpecError(*mistakes)


def _check_event(event: Mapping[str, str], runtime: Runtime, report: Report) -> None:
    """Checks the pointer: a C API has handles, passed by address; other APIs have objects."""
    handle = runtime.handles["event"]
    pointer = "address_of_handle" if runtime.api == "c" else "object"
    names = [handle, *(t.same_as for t in runtime.types if t.name == handle and t.same_as)]
    found, spellings = event.get("type", "none"), [f"{name}*" for name in names]
    if event["pointer"] != pointer:
        what = f"{handle}, a handle" if runtime.api == "c" else f"{handle}, an object"
        problem = f"'{event['pointer']}' does not fit the event of runtime '{runtime.name}': {what}"
        report(["pointer"], problem, f"write 'pointer: {pointer}'")
    if found not in spellings:
        problem = f"'{found}' is not a pointer to the event of runtime '{runtime.name}'"
        report(["type"], problem, f"write {' or '.join(spellings)}")


def _check_api(runtime: Runtime, report: Report) -> None:
    is_c = runtime.api == "c"
    for key in _OF_C:
        if (getattr(runtime, key) is not None) != is_c:
            hint = f"add '{key}:'" if is_c else "remove it"
            report([] if is_c else [key], f"api '{runtime.api}' and '{key}' do not fit", hint)
    if bool(runtime.functions) != is_c:
        hint = "a C API has functions; other APIs are called through a waiter"
        report(["api"], f"api '{runtime.api}' and 'functions' do not fit", hint)


def _check_libraries(runtime: Runtime, report: Report) -> None:
    libraries = runtime.libraries
    for system in ("linux", "windows", "macos"):
        if not getattr(libraries, system) and libraries.note is None:
            hint = "name a file, or say why in 'note'"
            report(["libraries", system], f"no library for {system}", hint)


def _check_handles(runtime: Runtime, report: Report) -> None:
    if runtime.api != "c":
        return
    types = {type_.name: type_ for type_ in runtime.types}
    for role, name in runtime.handles.items():
        if name not in types:
            report(["handles", role], f"type '{name}' is not declared", "add it to 'types'")
        elif role == "event" and types[name].kind not in ("handle", "handle64"):
            report(["handles", role], f"'{name}' is not a handle", "name a handle")


def _check_operations(runtime: Runtime, content: Mapping[str, Any], report: Report) -> None:
    for operation in runtime.operations:
        keys = ["operations", operation.name]
        if ("functions" in content[operation.name]) != (operation.by in _WITH_FUNCTIONS):
            hint = f"functions go with {', '.join(_WITH_FUNCTIONS)}"
            report(keys, f"by '{operation.by}' and 'functions' do not fit", hint)
        if operation.by != "call" and operation.note is None:
            report(keys, f"by '{operation.by}' without a reason", "say why and how in 'note'")


def _check_query(runtime: Runtime, report: Report) -> None:
    query = runtime.query
    if query is None:
        return
    if query.function not in runtime.operation("query").functions:
        hint = f"name {query.function.name} in the operation 'query'"
        report(["query", "function"], "is not what the operation 'query' calls", hint)
    through_argument = query.value != "result"
    if through_argument != (query.selector is not None):
        hint = "an argument has a selector, a result has none"
        report(["query", "value"], f"'{query.value}' and 'selector' do not fit", hint)
    arguments = {argument.name: argument.type for argument in query.function.type.arguments}
    if through_argument and not isinstance(arguments.get(query.value), Pointer):
        hint = f"write result, or one of {', '.join(arguments)}"
        report(["query", "value"], f"'{query.value}' is not an argument that points anywhere", hint)
    for constant in query.pending:
        if constant in query.done:
            report(["query", "pending"], f"{constant.name} is done and pending", "remove one")
    for constant in query.lost:
        if constant in (*query.done, *query.pending):
            report(["query", "lost"], f"{constant.name} is lost, and done or pending", "remove one")


def _check_functions(runtime: Runtime, symbols: dict[str, str], report: Report) -> None:
    for index, function in enumerate(runtime.functions):
        keys: list[str | int] = ["functions", index]
        for key in ("symbol", "per_thread"):
            symbol = getattr(function, key)
            if symbol in symbols:
                here = [*keys, key if key == "per_thread" else "name"]
                report(
                    here,
                    f"symbol '{symbol}' is already the symbol of {symbols[symbol]}",
                    "remove one",
                )
            elif symbol is not None:
                symbols[symbol] = f"{function.name} of '{runtime.name}'"
        if function.newer and not function.optional:
            hint = "add 'optional:', since when libraries have it"
            report([*keys, "newer"], "a library as old as the header lacks the function", hint)
        if function.per_thread and not (runtime.header and runtime.header.per_thread):
            hint = "add 'per_thread:' to the header of the runtime"
            report([*keys, "per_thread"], "no macro selects the per-thread functions", hint)
        _check_signature(function, [*keys, "type"], report)


def _check_signature(function: Function, keys: list[str | int], report: Report) -> None:
    names = [argument.name for argument in function.type.arguments]
    if len(set(names)) != len(names):
        report(keys, "two arguments have the same name", "rename one")
    for type_ in (function.type.returns, *(a.type for a in function.type.arguments)):
        if _is_struct(type_):
            report(keys, f"a struct is passed by value in '{function.name}'", "use a pointer")


def _is_struct(type_: Type) -> bool:
    return isinstance(type_, VendorType) and type_.kind == "struct"
