"""Compares a header with the spec, in words that its maintainer can act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..languages.c import interface_constants
from ..spec.layout import LAYOUT_CLASSES, LayoutClass, StructLayout, struct_layout
from ..spec.model import (
    Callback,
    Declarations,
    Field,
    Interface,
    Scalar,
    Struct,
    Type,
    TypedefDeclaration,
)
from ..spec.types import spell
from .dlpack_version import header_version, parse_version
from .facts import HeaderEnum, HeaderField, HeaderMacro, HeaderRecord, Place, Run

ERROR, WARNING, NOTE = "error", "warning", "note"
LAGS = "is missing: the header lags behind the specification"
_DEVICE_PREFIX = "ARROW_DEVICE_"
# Another minor version has other enumerators, but the same layouts.
_MINOR_VERSION = "DLPACK_MINOR_VERSION"


@dataclass(frozen=True)
class Finding:
    severity: str  # "error": another ABI or a broken promise; "warning"; "note": worth knowing
    interface: str  # "c-device-data"
    subject: str  # "ArrowDeviceArray.sync_event"
    text: str  # "at offset 88, the specification has it at 96"
    place: Place | None  # None for what is not there


@dataclass(frozen=True)
class Report:
    """What was found, each finding with the runs (language and target) that show it."""

    runs: int
    declared: tuple[str, ...]  # the interfaces that the header declares
    absent: tuple[str, ...]  # those that it does not; no mistake unless asked for by name
    missed: bool  # one that was asked for by name is absent
    findings: tuple[tuple[Finding, tuple[Run, ...]], ...]

    @property
    def wrong(self) -> bool:
        return self.missed or any(finding.severity == ERROR for finding, _ in self.findings)


def compare(spec: Declarations, runs: Sequence[Run], interfaces: Sequence[str]) -> Report:
    """Holds every run against the interfaces of the spec, all of them when none is named."""
    wanted = [i for i in spec.interfaces if not interfaces or i.id in interfaces]
    seen: dict[Finding, list[Run]] = {}
    declared = [i for i in wanted if any(_declares(spec, i, run) for run in runs)]
    for run in runs:
        for interface in declared:
            for finding in _compare_interface(spec, interface, run):
                seen.setdefault(finding, []).append(run)
    absent = tuple(i.id for i in wanted if i not in declared)
    return Report(
        runs=len(runs),
        declared=tuple(i.id for i in declared),
        absent=absent,
        missed=bool(interfaces and absent),
        findings=tuple((finding, tuple(found)) for finding, found in seen.items()),
    )


def _declares(spec: Declarations, interface: Interface, run: Run) -> bool:
    """Whether the header has anything of the interface: a struct, a macro, a typedef, its guard."""
    names = {s.name for s in interface.structs} | {t.type.name for t in interface.typedefs}
    names |= {c.name for c in interface_constants(spec, interface)} | {interface.guard}
    there = {*run.records, *run.macros, *run.skipped_macros, *run.typedefs}
    return bool(names & there)


def _compare_interface(spec: Declarations, interface: Interface, run: Run) -> Iterator[Finding]:
    yield from _compare_guard(interface, run)
    for struct in interface.structs:
        yield from _compare_struct(spec, interface, struct, run)
    for typedef in interface.typedefs:
        if typedef.enumerators:
            yield from _compare_enum(spec, interface, typedef, run)
        else:
            yield from _compare_typedef(interface, typedef.type.name, typedef.type.scalar, run)
    yield from _compare_constants(spec, interface, run)
    if interface.device_macros:
        yield from _compare_other_devices(spec, interface, run)


def _compare_guard(interface: Interface, run: Run) -> Iterator[Finding]:
    for record in (run.records[s.name] for s in interface.structs if s.name in run.records):
        around = _guards_around(record.place, run)
        if interface.guard not in around + _guards_elsewhere(record.place, run):
            inner = [macro for macro in around if macro.startswith(("ARROW_", "DLPACK_"))]
            instead = f"; it stands under {inner[-1]}" if inner else ""
            text = f"'{record.name}' is not inside this canonical guard{instead}"
            mend = "; two headers with their own copies cannot be included together"
            yield Finding(ERROR, interface.id, interface.guard, text + mend, record.place)


def _guards_around(place: Place, run: Run) -> list[str]:
    here = [guard for guard in run.guards if guard.place.file == place.file]
    return [guard.macro for guard in here if guard.place.line < place.line <= guard.end_line]


def _guards_elsewhere(place: Place, run: Run) -> list[str]:
    """The facts do not say from where a file is included: it may be from inside of these."""
    return [g.macro for g in run.guards if g.place.file != place.file and g.taken]


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
            text = "is no field of the specification"
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
        text = f"is a closed enum; it has to be {scalar.name}, so that unknown values pass"
        yield Finding(ERROR, interface.id, name, text, closed.place)
    elif typedef is None:
        text = f"is not declared; it has to be {scalar.name}"
        yield Finding(WARNING, interface.id, name, text, None)
    elif typedef.type != scalar.name:
        text = f"is {typedef.type}, the specification says {scalar.name}"
        yield Finding(ERROR, interface.id, name, text, typedef.place)


def _compare_enum(
    spec: Declarations, interface: Interface, expected: TypedefDeclaration, run: Run
) -> Iterator[Finding]:
    name = expected.type.name
    enum = next((e for e in run.enums if e.name == name), None)
    if enum is None:
        yield Finding(ERROR, interface.id, name, "is not declared as an enum", None)
        return
    found = {enumerator.name: enumerator for enumerator in enum.enumerators}
    for enumerator in expected.enumerators:
        there = found.get(enumerator.name)
        if there is None:
            yield Finding(NOTE, interface.id, enumerator.name, LAGS, None)
        elif there.value != enumerator.value:
            text = f"is {there.value}, the specification says {enumerator.value}"
            yield Finding(ERROR, interface.id, enumerator.name, text, there.place)
    yield from _compare_other_enumerators(spec, interface, expected, enum)


def _compare_other_enumerators(
    spec: Declarations, interface: Interface, expected: TypedefDeclaration, enum: HeaderEnum
) -> Iterator[Finding]:
    """What the header has more, which may be newer than the spec, or a fork's."""
    known = {enumerator.name for enumerator in expected.enumerators}
    owners = {enumerator.value: enumerator.name for enumerator in expected.enumerators}
    holes = {hole.value for hole in spec.holes} if expected.from_devices else set()
    for enumerator in enum.enumerators:
        if enumerator.name in known:
            continue
        owner = owners.get(enumerator.value)
        severity, text = _verdict(enumerator.value, holes, owner, "it")
        yield Finding(severity, interface.id, enumerator.name, text, enumerator.place)


def _verdict(value: int, holes: set[int], owner: str | None, what: str) -> tuple[str, str]:
    """Severity and text for a number under a name that the spec does not know."""
    if value in holes:
        return ERROR, f"is {value}, a number that is never given out"
    if owner is not None:
        return ERROR, f"is {value}, the number of {owner}"
    return NOTE, f"is {value}; the specification does not know {what}"


def _compare_constants(spec: Declarations, interface: Interface, run: Run) -> Iterator[Finding]:
    for constant in interface_constants(spec, interface):
        macro = run.macros.get(constant.name)
        if macro is None:
            yield _missing_constant(interface, constant.name, run)
        elif isinstance(constant.value, int) and macro.value != constant.value:
            shown = macro.text if macro.value is None else macro.value
            text = f"is {shown}, the specification says {constant.value}"
            severity = NOTE if constant.name == _MINOR_VERSION else ERROR
            yield Finding(severity, interface.id, constant.name, text, macro.place)
        elif isinstance(constant.value, str) and macro.text != f'"{constant.value}"':
            text = f'is {macro.text}, the specification says "{constant.value}"'
            yield Finding(ERROR, interface.id, constant.name, text, macro.place)


def _missing_constant(interface: Interface, name: str, run: Run) -> Finding:
    hidden = run.skipped_macros.get(name)
    if hidden is not None:
        text = f"is hidden: {_why_hidden(hidden, interface)}"
        return Finding(ERROR, interface.id, name, text, hidden.place)
    return Finding(NOTE, interface.id, name, LAGS, None)


def _why_hidden(macro: HeaderMacro, interface: Interface) -> str:
    if any(interface.guard in condition for condition in macro.conditions):
        return f"another copy, included before, has taken the guard {interface.guard}"
    return f"it stands under '{' and '.join(macro.conditions)}', which does not hold"


def _compare_other_devices(spec: Declarations, interface: Interface, run: Run) -> Iterator[Finding]:
    known = {device.arrow for device in spec.arrow_devices}
    by_value = {device.value: device for device in spec.devices}
    holes = {hole.value for hole in spec.holes}
    for macro in run.macros.values():
        if not macro.name.startswith(_DEVICE_PREFIX) or macro.name in known or macro.value is None:
            continue
        owner = by_value.get(macro.value)
        if owner is not None and owner.arrow is None:
            severity, text = NOTE, f"is {macro.value}; the specification has it in DLPack only"
        else:
            name = None if owner is None else f"'{owner.name}'"
            severity, text = _verdict(macro.value, holes, name, "this device")
        yield Finding(severity, interface.id, macro.name, text, macro.place)


def header_spelling(field: Field, open_typedefs: bool = False) -> str:
    """A field's type as facts spell it: no argument names, typedefs by name or opened up."""
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
