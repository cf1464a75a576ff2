"""The semantic checks beyond the schemas: names defined, numbers unique, contracts complete."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Mistake, SpecError
from ..reading.documents import Document, Report
from ..reading.types import Callback, Pointer, Scalar, StructType, Type, Typedef, spell
from .model import Declarations, Event, Field, Interface, Struct


def check_meaning(
    spec: Declarations,
    project: Document,
    interfaces: Mapping[str, Document],
    devices: Document,
    errata: Document,
    *,
    keys: set[str],
) -> None:
    """Raises SpecError with all mistakes, by file and in the order of the lines.

    `keys`: the keys of the CUDA Array Interface, which an erratum may be about.
    """
    mistakes: list[Mistake] = []
    _check_guards(spec, project.reporter(mistakes))
    seen: set[str] = set()
    macros: dict[str, str] = {}
    for interface in spec.interfaces:
        report = interfaces[interface.id].reporter(mistakes)
        _check_interface(spec, interface, seen, macros, report)
        for index, typedef in enumerate(interfaces[interface.id].content["typedefs"]):
            if typedef.get("enumerators", "devices") != "devices":
                _check_enumerators(typedef["enumerators"], ["typedefs", index], report)
        seen.add(interface.id)
    _check_devices(devices.content, macros, devices.reporter(mistakes))
    _check_errata(spec, keys, errata.reporter(mistakes))
    if mistakes:
        order = {name: number for number, name in enumerate(_files(spec))}
        raise SpecError(*sorted(mistakes, key=lambda m: (order[m.file], m.line)))


def _files(spec: Declarations) -> list[str]:
    names = ("project", *spec.project.interfaces, "devices", "errata")
    return [f"spec/{name}.yaml" for name in names]


def _check_guards(spec: Declarations, report: Report) -> None:
    guards: dict[str, str] = {}
    for index, interface in enumerate(spec.interfaces):
        if interface.guard in guards:
            first = guards[interface.guard]
            report(
                ["interfaces", index],
                f"guard {interface.guard} is already the guard of '{first}'",
                "one guard, one file",
            )
        guards[interface.guard] = interface.id
    if sum(interface.device_macros for interface in spec.interfaces) != 1:
        report(["interfaces"], "the device macros are in no file", "set device_macros in one file")


def _check_interface(
    spec: Declarations, interface: Interface, seen: set[str], macros: dict[str, str], report: Report
) -> None:
    for index, name in enumerate(interface.requires):
        if name not in seen:
            report(
                ["requires", index],
                f"'{name}' is not declared before this interface",
                "move it up in 'interfaces' of spec/project.yaml, or fix the name",
            )
    for index, constant in enumerate(interface.constants):
        if constant.name in macros:
            report(["constants", index, "name"], f"'{constant.name}' is a duplicate", "remove one")
        macros[constant.name] = interface.id
    for index, typedef in enumerate(interface.typedefs):
        arrow = _device_type(spec)
        if arrow and typedef.from_devices and typedef.type.scalar != arrow.scalar:
            problem = f"the type differs from ArrowDeviceType's: expected {arrow.scalar.name}"
            report(["typedefs", index, "type"], problem, "one type for one list of numbers")
    for index, struct in enumerate(interface.structs):
        _check_struct(spec, interface, struct, ["structs", index], report)


def _check_struct(
    spec: Declarations, interface: Interface, struct: Struct, keys: list[str | int], report: Report
) -> None:
    names: set[str] = set()
    visible = _visible_structs(spec, interface, struct)
    for index, field in enumerate(struct.fields):
        here = [*keys, "fields", index]
        if field.name in names:
            report([*here, "name"], f"field '{field.name}' is a duplicate", "rename or remove one")
        names.add(field.name)
        _check_field(struct, field, visible, here, report)
        if field.enumerated_by is not None:
            _check_enumerated(spec, field, [*here, "enumerated_by"], report)


def _check_enumerated(
    spec: Declarations, field: Field, keys: list[str | int], report: Report
) -> None:
    named = next((t for t in spec.typedefs if t.type.name == field.enumerated_by), None)
    if named is None or not named.enumerators:
        report(keys, f"'{field.enumerated_by}' is not a typedef with enumerators", "name one")
    elif named.type.scalar != field.type:
        problem = f"expected type {named.type.scalar.name}, got {spell(field.type)}"
        report(keys, problem, "the field has the type of the typedef")


def _device_type(spec: Declarations) -> Typedef | None:
    """Returns the type of the device macros."""
    homes = (interface for interface in spec.interfaces if interface.device_macros)
    return next((home.typedefs[0].type for home in homes), None)


def _check_enumerators(entries: list[dict], keys: list[str | int], report: Report) -> None:  # type: ignore[type-arg]
    """Uses the order of the file, so that an error refers to the later of two entries."""
    for key in ("name", "label", "value"):
        seen: set[str | int] = set()
        for index, entry in enumerate(entries):
            if entry[key] in seen:
                problem = f"'{entry[key]}' is a duplicate"
                report([*keys, "enumerators", index, key], problem, "every enumerator has its own")
            seen.add(entry[key])
    for index, entry in enumerate(entries):
        _check_release(entry, [*keys, "enumerators", index], report)


def _check_release(entry: dict, keys: list[str | int], report: Report) -> None:  # type: ignore[type-arg]
    if ("since" in entry) == ("unreleased" in entry):
        problem = "needs either 'since' or 'unreleased: true'"
        report(keys, problem, "a number is in a release of DLPack, or on its main branch only")


def _visible_structs(spec: Declarations, interface: Interface, struct: Struct) -> set[str]:
    """Returns the structs that are complete in C where this struct is declared."""
    visible = {s.name for i in spec.interfaces if i.id in interface.requires for s in i.structs}
    for other in interface.structs:
        if other is struct:
            break
        visible.add(other.name)
    return visible


def _check_field(
    struct: Struct, field: Field, visible: set[str], keys: list[str | int], report: Report
) -> None:
    type_key = [*keys, "type"]
    if isinstance(field.type, StructType) and field.type.name not in visible:
        report(
            type_key,
            f"'{field.type.name}' is embedded before it is declared",
            "declare it earlier, name its file under 'requires', or use a pointer",
        )
    if field.type == Scalar("void"):
        report(type_key, "a field cannot be void", "use void* or a scalar")
    if isinstance(field.type, Callback):
        _check_callback(struct, field, field.type, keys, report)
    elif field.contract is not None:
        report([*keys, "contract"], "only a callback has a contract", "remove it")


def _check_callback(
    struct: Struct, field: Field, callback: Callback, keys: list[str | int], report: Report
) -> None:
    type_key = [*keys, "type"]
    begins_with_self = callback.arguments and _points_to(callback.arguments[0].type, struct.name)
    if not struct.function_table and not begins_with_self:
        report(
            type_key,
            f"the first argument of '{field.name}' is not the struct",
            f"write 'self: {struct.name}*' first",
        )
    names = [argument.name for argument in callback.arguments]
    if len(set(names)) != len(names):
        report(type_key, "two arguments have the same name", "rename one")
    if field.contract is None:
        report(keys, f"callback '{field.name}' has no contract", "add 'contract:'")
        return


def _points_to(type_: Type, struct: str) -> bool:
    return isinstance(type_, Pointer) and type_.to == StructType(struct)


def _check_devices(content: dict, macros: dict[str, str], report: Report) -> None:  # type: ignore[type-arg]
    """Uses the order of the file, so that an error refers to the later of two entries."""
    values: dict[int, str] = {}
    for index, entry in enumerate(content["unassigned"]):
        if entry["value"] in values:
            report(
                ["unassigned", index, "value"], f"duplicate value {entry['value']}", "remove one"
            )
        values[entry["value"]] = "unassigned"
    names: dict[str, str] = dict.fromkeys(macros, "a constant")
    for index, device in enumerate(content["devices"]):
        keys: list[str | int] = ["devices", index]
        value, owner = device["value"], values.get(device["value"])
        if owner is not None:
            problem = (
                f"{value} is a reserved value, never assigned"
                if owner == "unassigned"
                else f"{value} is already the value of {owner}"
            )
            report([*keys, "value"], problem, "use another number")
        values[value] = f"'{device['name']}'"
        for key in ("name", "arrow", "dlpack"):
            name = device.get(key)
            if name in names:
                report([*keys, key], f"'{name}' is already the name of {names[name]}", "rename one")
            elif name is not None:
                names[name] = f"'{device['name']}'"
        _check_device(device, content["notes"], keys, report)


def _check_device(device: dict, notes: dict, keys: list[str | int], report: Report) -> None:  # type: ignore[type-arg]
    if ("arrow" in device) == ("dlpack_only" in device):
        report(
            keys,
            "needs either an Arrow macro or a reason why there is none",
            "write 'arrow: ARROW_DEVICE_...' or 'dlpack_only: reason', not both",
        )
    _check_release(device, keys, report)
    if "unreleased" in device and "arrow" in device:
        problem = "an unreleased device has no Arrow macro"
        report([*keys, "arrow"], problem, "write 'since' for 'unreleased' once it is released")
    elif ("arrow" in device) != ("arrow" in device.get("since", {})):
        report(
            [*keys, "since"], "'arrow' and 'since.arrow' belong together", "write both or neither"
        )
    content = device["event"]
    event = Event(content["pointer"], content.get("type"), content.get("note"))
    if (event.pointer in ("address_of_handle", "object")) != (event.type is not None):
        report(
            [*keys, "event"],
            f"pointer '{event.pointer}' does not fit type {event.type or 'none'}",
            "a handle or an object has a type; 'none' and 'producer_defined' have none",
        )
    if event.type is not None and "runtime" not in device:
        report([*keys, "event"], "an event type without a runtime", "add 'runtime:'")
    if event.note is not None and event.note not in notes:
        report(
            [*keys, "event", "note"],
            f"note '{event.note}' is not defined",
            f"use one of {', '.join(notes)}",
        )


def _check_errata(spec: Declarations, keys: set[str], report: Report) -> None:
    known = spec.declared_names | keys
    ids: set[str] = set()
    for index, erratum in enumerate(spec.errata):
        if erratum.id in ids:
            report(["errata", index, "id"], f"'{erratum.id}' is a duplicate", "rename one")
        ids.add(erratum.id)
        if erratum.about not in known:
            report(
                ["errata", index, "about"],
                f"'{erratum.about}' is not defined",
                "name a struct, Struct.field, typedef, guard or key of the spec",
            )
