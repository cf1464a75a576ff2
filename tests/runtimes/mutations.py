"""Mechanical changes of a runtime's table. Each must be detected by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from fletching_generator.reading.types import Argument, Pointer, Scalar, Type, Typedef
from fletching_generator.runtimes.model import Function, Runtime, VendorType

_OTHER_WIDTH = {
    "int8": "int32",
    "uint8": "uint32",
    "int32": "int64",
    "uint32": "uint64",
    "int64": "int32",
    "uint64": "uint32",
    "intptr": "int32",
    "uintptr": "uint32",
}


@dataclass(frozen=True)
class Change:
    """The whole table with one kind of change in many entries, each checked separately."""

    name: str  # "drop-argument:0": the kind, and which part of the entries
    runtime: Runtime
    expected: frozenset[str]  # the names that the complaints must be about, and no others
    per_thread: bool  # whether only the selection of per-thread functions exposes it


# The changed entry and the name to look for, or None if the change does not apply.
ChangedFunction = tuple[Function, str] | None


def changes(runtime: Runtime) -> Iterator[Change]:
    """Every change of every entry. A batch changes every second entry that the change applies to,
    so that a complaint about an unchanged entry is detected."""
    yield from _function_changes(runtime)
    yield from _constant_changes(runtime)
    yield from _type_changes(runtime)


def _function_changes(runtime: Runtime) -> Iterator[Change]:
    most = max(len(function.type.arguments) for function in runtime.functions)
    kinds: dict[str, Callable[[Function], ChangedFunction]] = {
        "rename-symbol": _rename,
        "without-version": _without_version,
        "add-argument": _add_argument,
        "other-result": _other_result,
    }
    for at in range(most):
        kinds[f"drop-argument-{at}"] = partial(_drop, at=at)
        kinds[f"width-{at}"] = partial(_width, at=at)
        kinds[f"pointer-{at}"] = partial(_pointer, at=at)
        kinds[f"swap-{at}"] = partial(_swap, at=at)
    for kind, change in kinds.items():
        yield from _batches(runtime, kind, change, per_thread=False)
    if runtime.header and runtime.header.per_thread:
        yield from _batches(runtime, "per-thread", _other_per_thread, per_thread=True)


def _batches(
    runtime: Runtime, kind: str, change: Callable[[Function], ChangedFunction], per_thread: bool
) -> Iterator[Change]:
    declared = [function for function in runtime.functions if not function.newer]
    changed = {f.symbol: result for f in declared if (result := change(f)) is not None}
    for half in (0, 1):
        chosen = {symbol: changed[symbol] for symbol in list(changed)[half::2]}
        if not chosen:
            continue
        functions = tuple(
            chosen[f.symbol][0] if f.symbol in chosen else f for f in runtime.functions
        )
        expected = frozenset(name for _, name in chosen.values())
        mutant = replace(runtime, functions=functions)
        yield Change(f"{kind}:{half}", mutant, expected, per_thread)


def _rename(function: Function) -> ChangedFunction:
    name = f"{function.symbol}_v9"
    return replace(function, symbol=name), name


def _without_version(function: Function) -> ChangedFunction:
    if function.symbol == function.name:
        return None
    return replace(function, symbol=function.name), function.name


def _other_per_thread(function: Function) -> ChangedFunction:
    if function.per_thread is None:
        name = f"{function.symbol}_ptsz"
        return replace(function, per_thread=name), name
    return replace(function, per_thread=None), function.symbol


def _with(function: Function, arguments: tuple[Argument, ...]) -> ChangedFunction:
    signature = replace(function.type, arguments=arguments)
    return replace(function, type=signature), function.symbol


def _drop(function: Function, at: int) -> ChangedFunction:
    arguments = function.type.arguments
    if at >= len(arguments):
        return None
    return _with(function, arguments[:at] + arguments[at + 1 :])


def _add_argument(function: Function) -> ChangedFunction:
    return _with(function, (*function.type.arguments, Argument("more", Scalar("uint32"))))


def _replaced(function: Function, at: int, type_: Type) -> ChangedFunction:
    arguments = list(function.type.arguments)
    arguments[at] = replace(arguments[at], type=type_)
    return _with(function, tuple(arguments))


def _width(function: Function, at: int) -> ChangedFunction:
    """Another width for an integer or for the target of an integer pointer."""
    if at >= len(function.type.arguments):
        return None
    type_ = function.type.arguments[at].type
    inner = type_.to if isinstance(type_, Pointer) else type_
    other = _OTHER_WIDTH.get(_integer(inner) or "")
    if other is None:
        return None
    changed = Scalar(other)
    return _replaced(
        function, at, replace(type_, to=changed) if isinstance(type_, Pointer) else changed
    )


def _integer(type_: Type) -> str | None:
    """The C integer type behind a type, if it is an integer."""
    if isinstance(type_, VendorType):
        return type_.scalar.name if type_.kind in ("integer", "enum") else None
    if isinstance(type_, Typedef):
        return type_.scalar.name
    return type_.name if isinstance(type_, Scalar) else None


def _pointer(function: Function, at: int) -> ChangedFunction:
    """Adds a pointer level."""
    if at >= len(function.type.arguments):
        return None
    return _replaced(function, at, Pointer(function.type.arguments[at].type, const=False))


def _swap(function: Function, at: int) -> ChangedFunction:
    arguments = function.type.arguments
    if at + 1 >= len(arguments) or _same_in_c(arguments[at].type, arguments[at + 1].type):
        return None
    swapped = (arguments[at + 1], arguments[at])
    return _with(function, arguments[:at] + swapped + arguments[at + 2 :])


def _same_in_c(one: Type, other: Type) -> bool:
    """Whether the two are the same to the compiler: VkFlags is uint32_t, and size_t is uint64_t
    if that is unsigned long."""
    if isinstance(one, Pointer) and isinstance(other, Pointer):
        return one.const == other.const and _same_in_c(one.to, other.to)
    return one == other or (_in_c(one) is not None and _in_c(one) == _in_c(other))


def _in_c(type_: Type) -> str | None:
    if isinstance(type_, VendorType) and type_.kind == "enum":
        return None
    if isinstance(type_, VendorType) and type_.name == "size_t":
        return "uint64"
    name = _integer(type_)
    return name if name not in ("intptr", "uintptr", "void") else None


def _other_result(function: Function) -> ChangedFunction:
    nothing = function.type.returns == Scalar("void")
    signature = replace(function.type, returns=Scalar("int64" if nothing else "void"))
    return replace(function, type=signature), function.symbol


def _constant_changes(runtime: Runtime) -> Iterator[Change]:
    for half in (0, 1):
        chosen = runtime.constants[half::2]
        for kind in ("value", "name"):
            constants = tuple(
                c
                if c not in chosen
                else replace(c, value=int(c.value) + 1)
                if kind == "value"
                else replace(c, name=f"{c.name}_X")
                for c in runtime.constants
            )
            expected = frozenset(f"{c.name}_X" if kind == "name" else c.name for c in chosen)
            mutant = replace(runtime, constants=constants)
            yield Change(f"constant-{kind}:{half}", mutant, expected, per_thread=False)


def _type_changes(runtime: Runtime) -> Iterator[Change]:
    for kind, change in {"type-kind": _other_kind, "type-width": _other_width}.items():
        for half in (0, 1):
            changed = {t.name: change(t) for t in runtime.types[half::2]}
            types = tuple(changed.get(t.name) or t for t in runtime.types)
            expected = frozenset(name for name, found in changed.items() if found)
            if expected:
                mutant = replace(runtime, types=types)
                yield Change(f"{kind}:{half}", mutant, expected, per_thread=False)
    for struct in (type_ for type_ in runtime.types if type_.fields):
        for name, fields in _other_fields(struct):
            types = tuple(replace(t, fields=fields) if t is struct else t for t in runtime.types)
            mutant = replace(runtime, types=types)
            yield Change(name, mutant, frozenset({struct.name}), per_thread=False)


def _other_kind(type_: VendorType) -> VendorType | None:
    match type_.kind:
        case "handle":
            return replace(type_, kind="handle64", scalar=Scalar("uint64"))
        case "handle64":
            return replace(type_, kind="handle", scalar=Scalar("pointer"))
        case "integer":
            return replace(type_, kind="enum")
        case "enum":
            return replace(type_, kind="integer")
        case "struct":
            return replace(type_, kind="handle", scalar=Scalar("pointer"), fields=())
        case "callback":
            return None  # the functions that take it have another signature then


def _other_width(type_: VendorType) -> VendorType | None:
    if type_.kind not in ("integer", "enum"):
        return None
    return replace(type_, scalar=Scalar(_OTHER_WIDTH[type_.scalar.name]))


def _other_fields(struct: VendorType) -> Iterator[tuple[str, tuple[Argument, ...]]]:
    fields = struct.fields
    for at in range(len(fields)):
        yield f"drop:{struct.name}.{fields[at].name}", fields[:at] + fields[at + 1 :]
        wider = replace(fields[at], type=Pointer(Scalar("void"), const=False))
        yield f"type:{struct.name}.{fields[at].name}", (*fields[:at], wider, *fields[at + 1 :])
        if at + 1 < len(fields):
            swapped = (fields[at + 1], fields[at])
            yield f"swap:{struct.name}.{fields[at].name}", fields[:at] + swapped + fields[at + 2 :]
