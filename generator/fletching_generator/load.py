"""Reads the whole of spec/ into the model: YAML, then schema, then types, then meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import model
from .check import check_meaning
from .dictionaries import read_dictionary
from .documents import Document, KeyPath, plain
from .errors import Mistake, SpecError
from .types import TypeExpressionError, parse_type

Names = dict[str, model.Typedef | model.StructType]
_CUDA_ARRAY_INTERFACE = "cuda-array-interface"


class SpecFiles:
    """The documents of spec/, held to their schemas."""

    def __init__(self, root: Path) -> None:
        self._spec = root / "spec"
        self.project = self._read("project")
        self.devices = self._read("devices")
        self.errata = self._read("errata")
        self.cuda_array_interface = self._read(_CUDA_ARRAY_INTERFACE)
        self.interfaces = {
            name: self._read(name, schema="interface")
            for name in plain(self.project.content)["interfaces"]
        }
        self._refuse_strays()

    def _read(self, name: str, schema: str | None = None) -> Document:
        document = Document(self._spec / f"{name}.yaml", f"spec/{name}.yaml")
        document.validate(self._spec / "schema" / f"{schema or name}.schema.json")
        return document

    def _refuse_strays(self) -> None:
        known = {"project", "devices", "errata", _CUDA_ARRAY_INTERFACE, *self.interfaces}
        for path in sorted(self._spec.glob("*.yaml")):
            if path.stem not in known:
                mend = "list it under 'interfaces' in spec/project.yaml or remove it"
                name = f"spec/{path.name}"
                raise SpecError(Mistake(name, 1, "(whole file)", "no part of the spec", mend))


def load_spec(root: Path) -> model.Spec:
    """The spec under `root`, checked. Raises SpecError."""
    files = SpecFiles(root)
    names = _collect_names(files)
    interfaces = tuple(_interface(name, doc, names) for name, doc in files.interfaces.items())
    devices = plain(files.devices.content)
    spec = model.Spec(
        project=_project(plain(files.project.content)),
        interfaces=interfaces,
        devices=tuple(sorted(map(_device, devices["devices"]), key=lambda d: d.value)),
        holes=tuple(model.Hole(**hole) for hole in devices["holes"]),
        notes=tuple(model.Note(key, text) for key, text in devices["notes"].items()),
        errata=tuple(_erratum(erratum) for erratum in plain(files.errata.content)["errata"]),
        cuda_array_interface=read_dictionary(_CUDA_ARRAY_INTERFACE, files.cuda_array_interface),
    )
    check_meaning(spec, files.project, files.interfaces, files.devices, files.errata)
    return spec


def _project(content: dict[str, Any]) -> model.Project:
    return model.Project(**{**content, "interfaces": tuple(content["interfaces"])})


def _collect_names(files: SpecFiles) -> Names:
    """Every typedef and struct by name; a name that stands twice is an error."""
    names: Names = {}
    mistakes: list[Mistake] = []
    for document in files.interfaces.values():
        content = plain(document.content)
        for kind in ("typedefs", "structs"):
            for index, entry in enumerate(content[kind]):
                keys: KeyPath = [kind, index, "name"]
                name = entry["name"]
                if name in names:
                    problem = f"'{name}' is defined twice"
                    mistakes.append(document.mistake(keys, problem, "rename or remove one"))
                elif kind == "structs":
                    names[name] = model.StructType(name)
                else:
                    names[name] = _typedef(document, index, entry)
    if mistakes:
        raise SpecError(*mistakes)
    return names


def _typedef(document: Document, index: int, entry: dict[str, Any]) -> model.Typedef:
    keys: KeyPath = ["typedefs", index, "type"]
    scalar = _type(document, keys, entry["type"], {})
    if not isinstance(scalar, model.Scalar) or scalar.name == "void":
        problem = f"'{entry['type']}' is no integer"
        raise SpecError(document.mistake(keys, problem, "name an integer type"))
    return model.Typedef(entry["name"], scalar)


def _type(document: Document, keys: KeyPath, text: str, names: Names) -> model.Type:
    try:
        return parse_type(text, names)
    except TypeExpressionError as error:
        raise SpecError(document.mistake(keys, str(error), error.mend)) from None


def _interface(name: str, document: Document, names: Names) -> model.Interface:
    content = plain(document.content)
    typedefs = []
    for entry in content["typedefs"]:
        typedef = names[entry["name"]]
        assert isinstance(typedef, model.Typedef)
        typedefs.append(model.TypedefDeclaration(typedef, entry["open"], entry["doc"]))
    return model.Interface(
        id=name,
        guard=content["guard"],
        title=content["title"],
        document=content["document"],
        requires=tuple(content["requires"]),
        doc=content["doc"],
        typedefs=tuple(typedefs),
        device_macros=content.get("device_macros", False),
        constants=tuple(model.Constant(**constant) for constant in content["constants"]),
        structs=tuple(
            _struct(document, ["structs", index], entry, names)
            for index, entry in enumerate(content["structs"])
        ),
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
        contract = model.Contract(**{**contract, "nullable": tuple(contract["nullable"])})
    type_ = _type(document, [*keys, "type"], entry["type"], names)
    return model.Field(**{**entry, "type": type_, "contract": contract})


def _device(entry: dict[str, Any]) -> model.Device:
    event = entry["event"]
    return model.Device(
        name=entry["name"],
        value=entry["value"],
        doc=entry["doc"],
        arrow=entry.get("arrow"),
        dlpack_only=entry.get("dlpack_only"),
        dlpack=entry["dlpack"],
        since_arrow=entry["since"].get("arrow"),
        since_dlpack=entry["since"]["dlpack"],
        device_id=entry["device_id"],
        runtime=entry.get("runtime"),
        event=model.Event(event["pointer"], event.get("type"), event.get("note")),
    )


def _erratum(entry: dict[str, Any]) -> model.Erratum:
    return model.Erratum(**{**entry, "says": tuple(entry["says"].items())})
