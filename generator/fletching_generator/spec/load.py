"""Loads spec/ into the model: YAML, then schemas, types and semantic checks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ..async_stream.check import check_async
from ..cuda_array_interface.dictionaries import read_dictionary
from ..errors import Mistake, SpecError
from ..reading import types
from ..reading.documents import Document, KeyPath
from ..reading.types import TypeExpressionError, parse_type
from ..runtimes.check import check_events, check_runtimes
from ..runtimes.model import load_runtimes
from . import model, pointers
from .check import check_meaning
from .check_memory import check_memory
from .errno import read_errors
from .tensor_types import read_tensor_types

Names = dict[str, types.Typedef | types.StructType | types.Callback]
_CUDA_ARRAY_INTERFACE = "cuda-array-interface"
_TENSOR_TYPES = "tensor-types"


class SpecFiles:
    """The validated documents in spec/. The declarations, and what errata are about, are read
    immediately, the others on demand."""

    def __init__(self, root: Path) -> None:
        self._spec = root / "spec"
        self.project = self.read("project")
        self.devices = self.read("devices")
        self.errata = self.read("errata")
        self.dictionary = self.read(_CUDA_ARRAY_INTERFACE)
        self.interfaces = {
            name: self.read(name, schema="interface") for name in self.project.content["interfaces"]
        }
        self._refuse_strays()

    def read(self, name: str, schema: str | None = None) -> Document:
        document = Document(self._spec / f"{name}.yaml", f"spec/{name}.yaml")
        document.validate(self._spec / "schema" / f"{schema or name}.schema.json")
        return document

    def _refuse_strays(self) -> None:
        known = {"project", "devices", "runtimes", "errata", "errno", "async"}
        known |= {"async-scenarios", _CUDA_ARRAY_INTERFACE, _TENSOR_TYPES, *self.interfaces}
        for path in sorted(self._spec.glob("*.yaml")):
            if path.stem not in known:
                hint = "list it under 'interfaces' in spec/project.yaml or remove it"
                name = f"spec/{path.name}"
                raise SpecError(Mistake(name, 1, "(whole file)", "not a file of the spec", hint))


def load_declarations(root: Path) -> model.Declarations:
    """Returns the validated declarations of the spec under `root`. Raises SpecError."""
    return _declarations(SpecFiles(root))


def load_spec(root: Path, *, events: bool = True) -> model.Spec:
    """Returns the validated spec under `root`. Raises SpecError.

    `events`: whether to compare the devices' events with the runtimes; false for deliberately wrong
    specs.
    """
    files = SpecFiles(root)
    declarations = _declarations(files)
    runtimes = files.read("runtimes")
    ids = frozenset(erratum.id for erratum in declarations.errata)
    codes = {code.name: code.value for code in declarations.data_type_codes.enumerators}
    spec = model.Spec(
        **vars(declarations),
        runtimes=load_runtimes(runtimes),
        async_table=check_async(files.read("async"), files.read("async-scenarios"), ids),
        cuda_array_interface=read_dictionary(_CUDA_ARRAY_INTERFACE, files.dictionary),
        errno=read_errors(files.read("errno")),
        tensor_types=read_tensor_types(files.read(_TENSOR_TYPES), codes),
    )
    check_runtimes(spec.runtimes, runtimes, files.devices)
    check_memory(spec, files.devices)
    if events:
        check_events(spec.runtimes, files.devices)
    return spec


def _declarations(files: SpecFiles) -> model.Declarations:
    names = _collect_names(files)
    content = files.devices.content
    devices = tuple(sorted(map(_device, content["devices"]), key=lambda d: d.value))
    released = tuple(device for device in devices if not device.unreleased)
    interfaces = tuple(
        _interface(name, doc, names, devices) for name, doc in files.interfaces.items()
    )
    declarations = model.Declarations(
        project=_project(files.project.content),
        interfaces=interfaces,
        devices=released,
        unreleased_devices=tuple(device for device in devices if device.unreleased),
        forks=tuple(model.Fork(**fork) for fork in content["forks"]),
        unassigned=tuple(model.Unassigned(**entry) for entry in content["unassigned"]),
        notes=tuple(model.Note(key, text) for key, text in content["notes"].items()),
        errata=tuple(_erratum(erratum) for erratum in files.errata.content["errata"]),
    )
    dictionary = files.dictionary.content
    keys = {f"{dictionary['attribute']}.{key['name']}" for key in dictionary["keys"]}
    parts = (files.project, files.interfaces, files.devices, files.errata)
    check_meaning(declarations, *parts, keys=keys)
    return declarations


def _project(content: dict[str, Any]) -> model.Project:
    return model.Project(**{**content, "interfaces": tuple(content["interfaces"])})


def _collect_names(files: SpecFiles) -> Names:
    """Returns every typedef, struct and function by name. A duplicate name is an error."""
    names: Names = {}
    mistakes: list[Mistake] = []
    for document in files.interfaces.values():
        content = document.content
        for kind in ("typedefs", "structs", "functions"):
            for index, entry in enumerate(content.get(kind, ())):
                keys: KeyPath = [kind, index, "name"]
                name = entry["name"]
                if name in names:
                    problem = f"'{name}' is defined twice"
                    mistakes.append(document.mistake(keys, problem, "rename or remove one"))
                elif kind == "structs":
                    names[name] = types.StructType(name, entry.get("typedef", False))
                elif kind == "typedefs":
                    names[name] = _typedef(document, index, entry)
                else:
                    names[name] = _function(document, index, entry, names)
    if mistakes:
        raise SpecError(*mistakes)
    return names


def _function(
    document: Document, index: int, entry: dict[str, Any], names: Names
) -> types.Callback:
    keys: KeyPath = ["functions", index, "type"]
    callback = _type(document, keys, entry["type"], names)
    if not isinstance(callback, types.Callback):
        hint = "write callback(name: T, ...) -> T"
        raise SpecError(document.mistake(keys, f"'{entry['type']}' is not a function", hint))
    return dataclasses.replace(callback, name=entry["name"])


def _typedef(document: Document, index: int, entry: dict[str, Any]) -> types.Typedef:
    keys: KeyPath = ["typedefs", index, "type"]
    scalar = _type(document, keys, entry["type"], {})
    if not isinstance(scalar, types.Scalar) or scalar.name == "void":
        problem = f"'{entry['type']}' is not an integer"
        raise SpecError(document.mistake(keys, problem, "name an integer type"))
    return types.Typedef(entry["name"], scalar)


def _type(document: Document, keys: KeyPath, text: str, names: Names) -> types.Type:
    try:
        return parse_type(text, names)
    except TypeExpressionError as error:
        raise SpecError(document.mistake(keys, str(error), error.hint)) from None


def _interface(
    name: str, document: Document, names: Names, devices: tuple[model.Device, ...]
) -> model.Interface:
    content = document.content
    functions = (names[entry["name"]] for entry in content.get("functions", ()))
    return model.Interface(
        id=name,
        guard=content["guard"],
        title=content["title"],
        document=content["document"],
        header=content.get("header", "abi.h"),
        requires=tuple(content["requires"]),
        doc=content["doc"],
        typedefs=tuple(_declaration(entry, names, devices) for entry in content["typedefs"]),
        device_macros=content.get("device_macros", False),
        constants=tuple(types.Constant(**constant) for constant in content["constants"]),
        functions=tuple(f for f in functions if isinstance(f, types.Callback)),
        structs=tuple(
            _struct(document, ["structs", index], entry, names)
            for index, entry in enumerate(content["structs"])
        ),
        experimental=content.get("experimental", False),
    )


def _declaration(
    entry: dict[str, Any], names: Names, devices: tuple[model.Device, ...]
) -> model.TypedefDeclaration:
    typedef = names[entry["name"]]
    assert isinstance(typedef, types.Typedef)
    listed = entry.get("enumerators", ())
    if listed == "devices":
        enumerators = tuple(
            model.Enumerator(d.dlpack, d.name, d.value, d.doc, d.since_dlpack, d.unreleased)
            for d in devices
        )
    else:
        enumerators = tuple(model.Enumerator(**enumerator) for enumerator in listed)
    return model.TypedefDeclaration(
        typedef,
        entry["open"],
        entry["doc"],
        tuple(e for e in enumerators if not e.unreleased),
        from_devices=listed == "devices",
        unreleased=tuple(e for e in enumerators if e.unreleased),
    )


def _struct(
    document: Document, keys: list[str | int], entry: dict[str, Any], names: Names
) -> model.Struct:
    fields = tuple(
        _field(document, [*keys, "fields", index], field, names)
        for index, field in enumerate(entry["fields"])
    )
    return model.Struct(**{**entry, "fields": fields})


def _field(
    document: Document, keys: list[str | int], entry: dict[str, Any], names: Names
) -> model.Field:
    contract = entry.get("contract")
    if contract is not None:
        facts = {key: value for key, value in contract.items() if key != "points_to"}
        contract = model.Contract(**facts, nullable=pointers.nullable(contract["points_to"]))
    type_ = _type(document, [*keys, "type"], entry["type"], names)
    facts = {key: value for key, value in entry.items() if key != "points_to"}
    type_ = pointers.describe(document, keys, entry, type_)
    return model.Field(**{**facts, "type": type_, "contract": contract})


def _device(entry: dict[str, Any]) -> model.Device:
    event, buffers = entry["event"], entry["buffers"]
    access, handles = entry["accessible_from"], entry["handles"]
    since = entry.get("since", {})
    return model.Device(
        name=entry["name"],
        value=entry["value"],
        doc=entry["doc"],
        arrow=entry.get("arrow"),
        dlpack_only=entry.get("dlpack_only"),
        dlpack=entry["dlpack"],
        since_arrow=since.get("arrow"),
        since_dlpack=since.get("dlpack"),
        unreleased=entry.get("unreleased", False),
        device_id=entry["device_id"],
        buffers=model.Buffers(buffers["are"], buffers.get("type"), buffers["doc"]),
        accessible_from=model.Access(
            tuple(access["devices"]), access.get("note"), access.get("unknown")
        ),
        handles=model.Handles(
            tuple(model.Handle(**handle) for handle in handles["needed"]), handles.get("unknown")
        ),
        runtime=entry.get("runtime"),
        event=model.Event(event["pointer"], event.get("type"), event.get("note")),
        title=entry.get("title") or entry["dlpack"].removeprefix("kDL"),
    )


def _erratum(entry: dict[str, Any]) -> model.Erratum:
    return model.Erratum(**{**entry, "says": tuple(entry["says"].items())})
