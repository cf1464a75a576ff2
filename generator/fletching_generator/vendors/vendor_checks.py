"""The checks in tests/runtimes/: C++ and C that compare the table with the vendors' headers."""

from __future__ import annotations

from ..languages.c.names import type_name
from ..languages.c.wrapping import wrap_arguments
from ..render import Filters, Output
from ..runtimes.model import INTEGERS, Function, VendorType
from ..spec.model import Spec

_FOLDER = "tests/runtimes"


def outputs(spec: Spec) -> list[Output]:
    files = []
    for runtime in spec.runtimes:
        if runtime.header is None:
            continue
        for name in ("functions.cpp", "constants.c"):
            path = f"{_FOLDER}/{runtime.name}_{name}"
            context = {"runtime": runtime}
            files.append(Output(path, name, "spec/runtimes.yaml", context))
    return files


def type_check(type_: VendorType) -> str:
    """Returns the assertion about a type."""
    check = f"FLETCHING_{type_.kind.upper()}("
    needs_width = type_.kind in ("integer", "enum")
    arguments = [type_.name, f"std::{type_.scalar.name}_t"] if needs_width else [type_.name]
    return wrap_arguments(check, arguments, ");")


def size(type_: VendorType) -> str | None:
    """Returns the size of a type as a C expression; None for a struct or a callback."""
    if type_.kind in ("struct", "callback"):
        return None
    width = INTEGERS.get(type_.scalar.name)
    return "sizeof(void*)" if width is None else str(width)


def function_check(function: Function) -> str:
    """Returns the assertions about a function's name and signature."""
    names = [function.name, function.symbol, function.per_thread or function.symbol]
    types = [function.type.returns, *(argument.type for argument in function.type.arguments)]
    arguments = [*names, *map(type_name, types)]
    return wrap_arguments("FLETCHING_FUNCTION(", arguments, ");")


FILTERS: Filters = {
    "function_check": function_check,
    "size": size,
    "type_check": type_check,
    "type_name": type_name,
}
