"""Compares a header with the spec and reports differences to its maintainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..reading.types import Callback, Scalar, Type, spell
from ..spec.layout import LAYOUT_CLASSES, LayoutClass, StructLayout, struct_layout
from ..spec.model import Declarations, Field, Interface, Struct
from .check_numbers import (
    compare_constants,
    compare_enum,
    compare_other_devices,
    names_devices,
)
from .dlpack_version import header_version, parse_version
from .facts import HeaderField, HeaderRecord, Place, Run
from .findings import ERROR, LAGS, NOTE, WARNING, Finding, Report
from .namespaces import without_namespaces

_PREFIXES = ("ARROW_", "DLPACK_")


def compare(
    spec: Declarations,
    runs: Sequence[Run],
    interfaces: Sequence[str],
    read_with_macro: Callable[[str], list[Run]],
) -> Report:
    """Compares every run with the given interfaces of the spec, or with all if none is given.

    `read_with_macro` reads the header as if the macro had been defined before it, to test whether a
    guard works, independent of its spelling.
    """
    wanted = [i for i in spec.interfaces if not interfaces or i.id in interfaces]
    seen: dict[Finding, list[Run]] = {}
    names = {struct.name for struct in spec.structs}
    moved = [without_namespaces(run, names) for run in runs]
    declared = [i for i in wanted if any(_declares(spec, i, run) for run, _ in moved)]
    devices = [i for i in wanted if i not in declared and any(names_devices(i, r) for r in runs)]
    for interface in declared:
        guarded = read_with_macro(interface.guard)
        for run, (flat, spaces), again in zip(runs, moved, guarded, strict=True):
            findings = _compare_interface(spec, interface, flat, again)
            for finding in (*_compare_namespaces(interface, flat, spaces), *findings):
                seen.setdefault(finding, []).append(run)
    for interface in devices:
        for run in runs:
            for finding in compare_other_devices(spec, interface, run):
                seen.setdefault(finding, []).append(run)
    declared = [i for i in wanted if i in declared or i in devices]
    absent = tuple(i.id for i in wanted if i not in declared)
    return Report(
        runs=len(runs),
        declared=tuple(i.id for i in declared),
        absent=absent,
        missed=bool(interfaces and absent),
        findings=tuple((finding, tuple(found)) for finding, found in seen.items()),
    )


def _declares(spec: Declarations, interface: Interface, run: Run) -> bool:
    """Returns whether the header has a struct, macro or typedef of the interface, or its guard."""
    names = {s.name for s in interface.structs} | {t.type.name for t in interface.typedefs}
    names |= {c.name for c in spec.interface_constants(interface)} | {interface.guard}
    there = {*run.records, *run.macros, *run.skipped_macros, *run.typedefs}
    return bool(names & there)


def _compare_interface(
    spec: Declarations, interface: Interface, run: Run, guarded: Run
) -> Iterator[Finding]:
    yield from _compare_guard(interface, run, guarded)
    for struct in interface.structs:
        yield from _compare_struct(spec, interface, struct, run)
    for typedef in interface.typedefs:
        if typedef.enumerators:
            yield from compare_enum(spec, interface, typedef, run)
        else:
            yield from _compare_typedef(interface, typedef.type.name, typedef.type.scalar, run)
    yield from compare_constants(spec, interface, run)
    if interface.device_macros:
        yield from compare_other_devices(spec, interface, run)


def _compare_namespaces(
    interface: Interface, run: Run, spaces: Mapping[str, str]
) -> Iterator[Finding]:
    for name in (struct.name for struct in interface.structs if struct.name in spaces):
        text = f"is in the namespace '{spaces[name]}', and another type than the one of C"
        hint = "; declare it outside of every namespace"
        yield Finding(ERROR, interface.id, name, text + hint, run.records[name].place)


def _compare_guard(interface: Interface, run: Run, guarded: Run) -> Iterator[Finding]:
    """Checks that the guard skips the copy if the macro is defined, and defines the macro."""
    for record in (run.records[s.name] for s in interface.structs if s.name in run.records):
        if any(name.rpartition("::")[2] == record.name for name in guarded.defined):
            inner = [m for m in _guards_around(record.place, run) if m.startswith(_PREFIXES)]
            instead = f"; it is under {inner[-1]}" if inner else ""
            text = f"'{record.name}' is not inside this canonical guard{instead}"
            hint = "; two headers with their own copies cannot be included together"
        elif interface.guard not in run.macros:
            text = f"'{record.name}' is inside this canonical guard, which nothing defines"
            hint = "; a copy that is included later is not skipped"
        else:
            continue
        yield Finding(ERROR, interface.id, interface.guard, text + hint, record.place)


def _guards_around(place: Place, run: Run) -> list[str]:
    here = [guard for guard in run.guards if guard.place.file == place.file]
    return [guard.macro for guard in here if guard.place.line < place.line <= guard.end_line]


def _compare_struct(
    spec: Declarations, interface: Interface, struct: Struct, run: Run
) -> Iterator[Finding]:
    record = run.records.get(struct.name)
    if record is None:
        text = "is not declared, though other parts of the interface are"
        older = struct.since is not None and header_version(run) < parse_version(struct.since)
        severity, text = (NOTE, LAGS) if older else (ERROR, text)
        yield Finding(severity, interface.id, struct.name, text, None)
        return
    expected = {field.name: field for field in struct.fields}
    found = {field.name: field for field in record.fields}
    if not expected.keys() & found.keys():
        text = "is something else: it has none of the fields of the specification"
        yield Finding(ERROR, interface.id, struct.name, text, record.place)
        return
    layout = struct_layout(spec, struct, _layout_class(run))
    for name in expected.keys() - found.keys():
        yield Finding(ERROR, interface.id, f"{struct.name}.{name}", "is missing", record.place)
    for field in record.fields:
        subject = f"{struct.name}.{field.name}"
        if field.name not in expected:
            text = "is not a field of the specification"
            yield Finding(ERROR, interface.id, subject, text, field.place)
        else:
            yield from _compare_field(interface, subject, expected[field.name], field, layout)
    yield from _compare_size(interface, struct.name, record, layout)


def _compare_field(
    interface: Interface, subject: str, expected: Field, found: HeaderField, layout: StructLayout
) -> Iterator[Finding]:
    offset = layout.offset(expected.name)
    if found.offset != offset:
        text = f"is at offset {found.offset}, the specification has it at {offset}"
        yield Finding(ERROR, interface.id, subject, text, found.place)
    wanted = {header_spelling(expected), header_spelling(expected, open_typedefs=True)}
    if found.type not in wanted:
        what = "signature" if expected.is_callback else "type"
        text = f"has {what} '{found.type}', the specification says '{header_spelling(expected)}'"
        yield Finding(ERROR, interface.id, subject, text, found.place)
    if found.bits is not None:
        text = f"is a bit-field of {found.bits} bits, the specification has none"
        yield Finding(ERROR, interface.id, subject, text, found.place)


def _compare_size(
    interface: Interface, name: str, record: HeaderRecord, layout: StructLayout
) -> Iterator[Finding]:
    if record.packed:
        yield Finding(ERROR, interface.id, name, "is packed", record.place)
    if record.size != layout.size:
        text = f"has {record.size} bytes, the specification says {layout.size}"
        yield Finding(ERROR, interface.id, name, text, record.place)
    if record.align != layout.align:
        text = f"is aligned to {record.align} bytes, the specification says {layout.align}"
        yield Finding(ERROR, interface.id, name, text, record.place)


def _compare_typedef(
    interface: Interface, name: str, scalar: Scalar, run: Run
) -> Iterator[Finding]:
    typedef = run.typedefs.get(name)
    enum = next((e for e in run.enums if e.name == name), None)
    closed = enum or (typedef if typedef is not None and typedef.is_enum else None)
    if closed is not None:
        text = f"is a closed enum: expected {scalar.name}, so that unknown values pass"
        yield Finding(ERROR, interface.id, name, text, closed.place)
    elif typedef is None:
        text = f"is not declared: expected {scalar.name}"
        yield Finding(WARNING, interface.id, name, text, None)
    elif typedef.type != scalar.name:
        text = f"is {typedef.type}, the specification says {scalar.name}"
        yield Finding(ERROR, interface.id, name, text, typedef.place)


def header_spelling(field: Field, open_typedefs: bool = False) -> str:
    """Returns a field's type in the spelling of the facts: without argument names, typedefs by name
    or resolved."""
    scalar = getattr(field.type, "scalar", None)
    return spell(scalar) if open_typedefs and scalar is not None else _unnamed(field.type)


def _unnamed(type_: Type) -> str:
    match type_:
        case Callback(arguments=arguments, returns=returns):
            inner = ", ".join(_unnamed(argument.type) for argument in arguments)
            return f"callback({inner}) -> {_unnamed(returns)}"
        case _:
            return spell(type_)


def _layout_class(run: Run) -> LayoutClass:
    return next(
        c
        for c in LAYOUT_CLASSES
        if c.pointer_size == run.pointer_size
        and (c.pointer_size == 8 or c.int64_align == run.int64_align)
    )
