"""Compares a header's numbers with the spec: enumerators, macros, devices."""

from __future__ import annotations

from collections.abc import Iterator

from ..spec.model import Declarations, Interface, TypedefDeclaration
from .facts import HeaderEnum, HeaderMacro, Run
from .findings import ERROR, LAGS, NOTE, Finding

_DEVICE_PREFIX = "ARROW_DEVICE_"
_RESERVED = " on DLPack's main branch, which no release has yet"
# Another minor version has other enumerators but the same layouts.
_MINOR_VERSION = "DLPACK_MINOR_VERSION"


def compare_enum(
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
    for enumerator in expected.unreleased:
        there = found.get(enumerator.name)
        if there is not None:
            same = there.value == enumerator.value
            wrong = "" if same else f" as {enumerator.value}"
            text = f"is {there.value}; DLPack's main branch has it{wrong}, and no release does"
            yield Finding(NOTE if same else ERROR, interface.id, there.name, text, there.place)
    yield from _compare_other_enumerators(spec, interface, expected, enum)


def _compare_other_enumerators(
    spec: Declarations, interface: Interface, expected: TypedefDeclaration, enum: HeaderEnum
) -> Iterator[Finding]:
    """Yields findings for numbers that only the header has: from a newer release or a fork."""
    known = {enumerator.name for enumerator in expected.known}
    owners = {e.value: f"{e.name}{_RESERVED * e.unreleased}" for e in expected.known}
    forks = {entry: fork.name for fork in spec.forks for entry in fork.devices.items()}
    unassigned = {number.value for number in spec.unassigned} if expected.from_devices else set()
    for enumerator in enum.enumerators:
        if enumerator.name in known:
            continue
        owner = owners.get(enumerator.value)
        severity, text = _verdict(enumerator.value, unassigned, owner, "it")
        fork = forks.get((enumerator.name, enumerator.value))
        if expected.from_devices and fork is not None:
            text += f"; {fork} of DLPack has it so"
        yield Finding(severity, interface.id, enumerator.name, text, enumerator.place)


def _verdict(value: int, unassigned: set[int], owner: str | None, what: str) -> tuple[str, str]:
    """Returns the severity and the message for a number whose name is not in the spec."""
    if value in unassigned:
        return ERROR, f"is {value}, a number that is never assigned"
    if owner is not None:
        return ERROR, f"is {value}, the number of {owner}"
    return NOTE, f"is {value}; the specification does not know {what}"


def compare_constants(spec: Declarations, interface: Interface, run: Run) -> Iterator[Finding]:
    for constant in spec.interface_constants(interface):
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
        return f"another copy, included before, has defined the guard {interface.guard}"
    return f"it is under '{' and '.join(macro.conditions)}', which does not hold"


def names_devices(interface: Interface, run: Run) -> bool:
    """Returns whether the header has a macro that looks like a device type."""
    return interface.device_macros and any(name.startswith(_DEVICE_PREFIX) for name in run.macros)


def compare_other_devices(spec: Declarations, interface: Interface, run: Run) -> Iterator[Finding]:
    known = {device.arrow for device in spec.arrow_devices}
    by_value = {device.value: device for device in (*spec.devices, *spec.unreleased_devices)}
    unassigned = {number.value for number in spec.unassigned}
    for macro in run.macros.values():
        if not macro.name.startswith(_DEVICE_PREFIX) or macro.name in known or macro.value is None:
            continue
        owner = by_value.get(macro.value)
        if owner is not None and owner.arrow is None:
            where = "on DLPack's main branch" if owner.unreleased else "in DLPack"
            text = f"is {macro.value}; the specification has it {where} only, as '{owner.name}'"
            severity = NOTE
        else:
            name = None if owner is None else f"'{owner.name}'"
            severity, text = _verdict(macro.value, unassigned, name, "this device")
        yield Finding(severity, interface.id, macro.name, text, macro.place)
