"""Wrong specs, derived from the good one by editing its data. No mutant is written by hand.

Every mutant passes the generator's checks: if it drops or renames something, references to it
(errata, pointer targets) are updated too.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML

from fletching_generator.reading.types import split_arguments

# Every file of spec/ by its stem, as plain data.
Documents: TypeAlias = dict[str, Any]
Entry: TypeAlias = dict[str, Any]

_CALLBACK = re.compile(r"callback\((?P<arguments>.*)\) -> (?P<result>.+)")
# The wrong width of each integer type.
_OTHER_WIDTH = {
    "int": "int64",
    "int32": "int64",
    "int64": "int32",
    "uint8": "uint16",
    "uint16": "uint32",
    "uint32": "uint64",
    "uint64": "uint32",
}
_CONTRACT = {
    "called_by": "consumer",
    "thread": "any",
    "times": "any number",
    "inside": "anything",
    "points_to": {},
    "returns": "nothing",
    "failure": "nothing",
}
# The checks that detect a wrong spec: the oracle (tests/oracle), or the vendors' libraries.
ABI = "abi"
EVENTS = "events"
# Numbers from here on are not devices and not reserved.
_UNUSED_NUMBER = 100


@dataclass(frozen=True)
class Mutant:
    id: str  # "swap:ArrowDeviceArray.device_id+device_type"
    # The oracle's line must be about one of these, such as "ArrowDeviceArray.device_id".
    about: tuple[str, ...]
    documents: Documents
    kind: str = ABI


def read(spec: Path) -> Documents:
    """Reads the good spec."""
    yaml = YAML(typ="safe")
    return {path.stem: yaml.load(path) for path in sorted(spec.glob("*.yaml"))}


def write(documents: Documents, spec: Path) -> None:
    """Writes the files of a spec as JSON, which is also YAML."""
    for name, content in documents.items():
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (spec / f"{name}.yaml").write_text(text + "\n", encoding="utf-8")


def derive(good: Documents) -> list[Mutant]:
    """All mutants, in a fixed order."""
    makers: tuple[Callable[[Documents], Iterator[Mutant]], ...] = (
        _swapped_fields,
        _dropped_fields,
        _added_fields,
        _other_widths,
        _other_signs,
        _other_kinds,
        _other_results,
        _other_arguments,
        _wrong_numbers,
        _dropped_macros,
        _wrong_enumerators,
        _older_texts,
    )
    return [mutant for maker in makers for mutant in maker(good)]


# --- Fields --------------------------------------------------------------------------------------


def _swapped_fields(good: Documents) -> Iterator[Mutant]:
    for name, fields in _structs(good):
        for i in range(len(fields) - 1):
            a, b = fields[i]["name"], fields[i + 1]["name"]

            def swap(own: list[Entry], i: int = i) -> None:
                own[i], own[i + 1] = own[i + 1], own[i]

            yield _with_fields(good, f"swap:{name}.{a}+{b}", name, (a, b), swap)


def _dropped_fields(good: Documents) -> Iterator[Mutant]:
    for name, fields in _structs(good):
        for i, field in enumerate(fields):

            def drop(own: list[Entry], i: int = i) -> None:
                del own[i]

            yield _with_fields(good, f"drop:{name}.{field['name']}", name, (field["name"],), drop)


def _added_fields(good: Documents) -> Iterator[Mutant]:
    for name, fields in _structs(good):
        for place, i in (("first", 0), ("last", len(fields))):

            def add(own: list[Entry], i: int = i) -> None:
                own.insert(i, _new_field("extra", "int64"))

            yield _with_fields(good, f"add:{name}.extra-{place}", name, ("extra",), add)


def _other_widths(good: Documents) -> Iterator[Mutant]:
    of_devices = {t["name"]: t["type"] for _, t in _typedefs(good) if _is_of_devices(t)}
    for name, fields in _structs(good):
        for field in fields:
            for wrong in _wrong_widths(str(of_devices.get(field["type"], field["type"]))):
                yield _with_type(good, "width", name, field["name"], wrong)
    for file, typedef in _used_typedefs(good):
        wrong = _OTHER_WIDTH[typedef["type"]]
        yield _with_typedef(good, f"width:{typedef['name']}-{wrong}", file, typedef["name"], wrong)


def _wrong_widths(type_: str) -> list[str]:
    array = re.fullmatch(r"(\w+)\[(\d+)\]", type_)
    if array:
        scalar, count = array[1], int(array[2])
        counts = [f"{scalar}[{count - 1}]", f"{scalar}[{count + 1}]"]
        return [*counts, f"{_OTHER_WIDTH[scalar]}[{count}]"]
    return [_OTHER_WIDTH[type_]] if type_ in _OTHER_WIDTH else []


def _other_signs(good: Documents) -> Iterator[Mutant]:
    """The first integer field of each struct that has one."""
    for name, fields in _structs(good):
        integer = next((f for f in fields if f["type"] in _OTHER_WIDTH), None)
        if integer:
            yield _with_type(good, "sign", name, integer["name"], _other_sign(integer["type"]))
    for file, typedef in _used_typedefs(good):
        wrong = _other_sign(typedef["type"])
        yield _with_typedef(good, f"sign:{typedef['name']}-{wrong}", file, typedef["name"], wrong)


def _other_sign(type_: str) -> str:
    return type_.removeprefix("u") if type_.startswith("u") else "u" + type_


def _other_kinds(good: Documents) -> Iterator[Mutant]:
    """Makes callbacks data pointers, and the last data pointer of each struct a callback."""
    for name, fields in _structs(good):
        for field in fields:
            if _is_callback(field):
                yield _with_type(good, "pointer", name, field["name"], "void*")
        pointers = [f["name"] for f in fields if not _is_callback(f) and f["type"].endswith("*")]
        for pointer in pointers[-1:]:
            wrong = f"callback(self: {name}*) -> void"
            yield _with_type(good, "callback", name, pointer, wrong)


# --- Signatures ----------------------------------------------------------------------------------


def _other_results(good: Documents) -> Iterator[Mutant]:
    wrong_results = {"int": ("int64", "void"), "void": ("int",), "const char*": ("int", "void")}
    for name, field, arguments, result in _callbacks(good):
        for wrong in wrong_results[result]:
            yield _with_signature(good, f"result-{wrong}", name, field, arguments, wrong)


def _other_arguments(good: Documents) -> Iterator[Mutant]:
    typedefs = {typedef["name"]: typedef["type"] for _, typedef in _typedefs(good)}
    for name, field, arguments, result in _callbacks(good):
        for i in range(int(arguments[0].startswith("self:")), len(arguments)):
            argument, type_ = (part.strip() for part in arguments[i].split(":", 1))
            rest = arguments[:i], arguments[i + 1 :]
            wrong = _OTHER_WIDTH.get(typedefs.get(type_, type_), "int")
            dropped = [*rest[0], *rest[1]]
            changed = [*rest[0], f"{argument}: {wrong}", *rest[1]]
            yield _with_signature(good, f"drop-{argument}", name, field, dropped, result)
            yield _with_signature(good, f"{argument}-{wrong}", name, field, changed, result)
            if type_ in _OTHER_WIDTH and type_ != "int":
                unsigned = [*rest[0], f"{argument}: u{type_}", *rest[1]]
                yield _with_signature(good, f"{argument}-u{type_}", name, field, unsigned, result)
            if i + 1 < len(arguments):
                swapped = [*rest[0], arguments[i + 1], arguments[i], *arguments[i + 2 :]]
                other = arguments[i + 1].split(":", 1)[0].strip()
                yield _with_signature(
                    good, f"swap-{argument}+{other}", name, field, swapped, result
                )
        yield _with_signature(good, "add-extra", name, field, [*arguments, "extra: void*"], result)


# --- Constants -----------------------------------------------------------------------------------


def _wrong_numbers(good: Documents) -> Iterator[Mutant]:
    for file, index, macro in _integer_constants(good):
        documents = copy.deepcopy(good)
        documents[file]["constants"][index]["value"] += _UNUSED_NUMBER
        yield Mutant(f"value:{macro}", (macro,), documents)
    for index, macro in _arrow_devices(good):
        documents = copy.deepcopy(good)
        documents["devices"]["devices"][index]["value"] += _UNUSED_NUMBER
        yield Mutant(f"value:{macro}", (macro,), documents)


def _dropped_macros(good: Documents) -> Iterator[Mutant]:
    for file, index, macro in _integer_constants(good):
        documents = copy.deepcopy(good)
        del documents[file]["constants"][index]
        yield Mutant(f"drop:{macro}", (macro,), documents)
    for index, macro in _arrow_devices(good):
        documents = copy.deepcopy(good)
        gone = documents["devices"]["devices"].pop(index)["name"]
        for device in documents["devices"]["devices"]:
            if gone in device["accessible_from"]["devices"]:
                device["accessible_from"] = {"devices": [], "unknown": f"{gone} is gone"}
        yield Mutant(f"drop:{macro}", (macro,), documents)


# --- Enumerators of DLPack -----------------------------------------------------------------------


def _wrong_enumerators(good: Documents) -> Iterator[Mutant]:
    """Another number, another name, or none. Arrow's device numbers are covered above."""
    for index, device in enumerate(good["devices"]["devices"]):
        if "unreleased" in device:
            continue
        about = f"DLDeviceType.{device['dlpack']}"
        if "arrow" not in device:
            yield _with_device(good, f"value:{device['dlpack']}", about, index, "value", 112)
        wrong = f"{device['dlpack']}X"
        yield _with_device(good, f"name:{device['dlpack']}", f"{about}X", index, "dlpack", wrong)
    codes = _codes(good)
    for index, code in enumerate(codes):
        if "unreleased" in code:
            continue
        about = f"DLDataTypeCode.{code['name']}"
        documents = copy.deepcopy(good)
        _codes(documents)[index]["value"] += _UNUSED_NUMBER
        yield Mutant(f"value:{code['name']}", (about,), documents)
        documents = copy.deepcopy(good)
        del _codes(documents)[index]
        types = documents["tensor-types"]["types"]
        types[:] = [each for each in types if each["code"] != code["name"]]
        yield Mutant(f"drop:{code['name']}", (about,), documents)
        documents = copy.deepcopy(good)
        _codes(documents)[index]["name"] += "X"
        for each in documents["tensor-types"]["types"]:
            if each["code"] == code["name"]:
                each["code"] += "X"
        yield Mutant(f"name:{code['name']}", (f"{about}X",), documents)


def _with_device(  # noqa: PLR0917 -- one line for each caller
    good: Documents, id_: str, about: str, index: int, key: str, value: str | int
) -> Mutant:
    documents = copy.deepcopy(good)
    documents["devices"]["devices"][index][key] = value
    return Mutant(id_, (about,), documents)


def _codes(documents: Documents) -> list[Entry]:
    typedefs = documents["dlpack"]["typedefs"]
    codes: list[Entry] = next(t for t in typedefs if t["name"] == "DLDataTypeCode")["enumerators"]
    return codes


# --- Other versions of the interface --------------------------------------------------------------


def _older_texts(good: Documents) -> Iterator[Mutant]:
    """The published page has one callback too many (errata.yaml, async-producer-release). The mail
    that proposed the interface had the array behind a pointer, two reserved words, and the
    consumer's stream as an argument of get_next."""

    def page_release(own: list[Entry]) -> None:
        cancel = next(i for i, field in enumerate(own) if field["name"] == "cancel")
        type_ = "callback(self: ArrowAsyncProducer*) -> void"
        own.insert(cancel + 1, _new_field("release", type_))

    yield _with_fields(
        good, "page:ArrowAsyncProducer.release", "ArrowAsyncProducer", ("release",), page_release
    )
    yield _with_type(good, "mail", "ArrowDeviceArray", "array", "ArrowArray*")

    def mail_layout(own: list[Entry]) -> None:
        by_name = {field["name"]: field for field in own}
        _set_type(by_name["array"], "ArrowArray*")
        _set_type(by_name["reserved"], "int64[2]")

    changed = ("array", "reserved")
    yield _with_fields(
        good, "mail:ArrowDeviceArray-whole", "ArrowDeviceArray", changed, mail_layout
    )
    stream = ["self: ArrowDeviceArrayStream*", "stream: void*", "out: ArrowDeviceArray*"]
    yield _with_signature(good, "mail-stream", "ArrowDeviceArrayStream", "get_next", stream, "int")


# --- Reading a spec ------------------------------------------------------------------------------


def _interfaces(documents: Documents) -> list[str]:
    return list(documents["project"]["interfaces"])


def _structs(documents: Documents) -> Iterator[tuple[str, list[Entry]]]:
    for file in _interfaces(documents):
        for struct in documents[file]["structs"]:
            yield struct["name"], struct["fields"]


def _fields_of(documents: Documents, name: str) -> list[Entry]:
    return next(fields for struct, fields in _structs(documents) if struct == name)


def _typedefs(documents: Documents) -> Iterator[tuple[str, Entry]]:
    for file in _interfaces(documents):
        for typedef in documents[file]["typedefs"]:
            yield file, typedef


def _used_typedefs(documents: Documents) -> Iterator[tuple[str, Entry]]:
    """Typedefs used as field types, except the device type, which must stay Arrow's."""
    used = {field["type"] for _, fields in _structs(documents) for field in fields}
    for file, typedef in _typedefs(documents):
        if typedef["name"] in used and not _is_of_devices(typedef):
            yield file, typedef


def _is_of_devices(typedef: Entry) -> bool:
    return bool(typedef.get("enumerators") == "devices")


def _integer_constants(documents: Documents) -> Iterator[tuple[str, int, str]]:
    for file in _interfaces(documents):
        for index, constant in enumerate(documents[file]["constants"]):
            if isinstance(constant["value"], int):
                yield file, index, constant["name"]


def _arrow_devices(documents: Documents) -> Iterator[tuple[int, str]]:
    for index, device in enumerate(documents["devices"]["devices"]):
        if "arrow" in device:
            yield index, device["arrow"]


def _is_callback(field: Entry) -> bool:
    return "contract" in field


def _callbacks(documents: Documents) -> Iterator[tuple[str, str, list[str], str]]:
    """Yields struct, field, arguments as "name: type", and result."""
    functions = {
        function["name"]: function["type"]
        for file in _interfaces(documents)
        for function in documents[file].get("functions", ())
    }
    for name, fields in _structs(documents):
        for field in filter(_is_callback, fields):
            match = _CALLBACK.fullmatch(str(functions.get(field["type"], field["type"])))
            assert match is not None  # guaranteed by the generator's checks
            arguments = [part.strip() for part in split_arguments(match["arguments"])]
            yield name, field["name"], arguments, match["result"]


# --- Making a mutant -----------------------------------------------------------------------------


def _new_field(name: str, type_: str) -> Entry:
    field = {
        "name": name,
        "type": type_,
        "presence": "optional",
        "set_by": "producer",
        "owned_by": "none",
        "valid": "anything",
        "doc": "No such field.",
    }
    _set_type(field, type_)
    return field


def _set_type(field: Entry, type_: str) -> None:
    """Sets another type and the keys that it needs: pointers, a contract."""
    field["type"] = type_
    field.pop("points_to", None)
    field.pop("enumerated_by", None)
    contract = field.pop("contract", dict(_CONTRACT))
    match = _CALLBACK.fullmatch(type_)
    if match:
        result = match["result"]
        failure = "nothing" if result == "void" else "errno"
        points_to = dict(_pointers(match["arguments"]))
        if result.endswith("*"):
            failure, points_to["return"] = "NULL", _points_to(result)
        field["contract"] = contract | {"points_to": points_to, "failure": failure}
    elif type_.endswith("*"):
        field["points_to"] = _points_to(type_)


def _pointers(arguments: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    for part in split_arguments(arguments):
        name, type_ = part.strip().split(": ", 1)
        match = _CALLBACK.fullmatch(type_)
        if match:
            yield from _pointers(match["arguments"], f"{prefix}{name}.")
        elif type_.endswith("*"):
            yield prefix + name, _points_to(type_)


def _points_to(type_: str) -> str:
    """The simplest description that fits."""
    last = "opaque" if "void" in type_ else "one"
    return " of ".join(["one"] * (type_.count("*") - 1) + [last])


def _with_fields(
    good: Documents,
    id_: str,
    struct: str,
    about: tuple[str, ...],
    change: Callable[[list[Entry]], None],
) -> Mutant:
    documents = copy.deepcopy(good)
    change(_fields_of(documents, struct))
    _drop_dangling(documents)
    return Mutant(id_, tuple(f"{struct}.{field}" for field in about), documents)


def _with_type(good: Documents, verb: str, struct: str, name: str, type_: str) -> Mutant:
    def change(own: list[Entry]) -> None:
        field = next(field for field in own if field["name"] == name)
        _set_type(field, type_)

    spelled = type_.split("(", maxsplit=1)[0].replace(" ", "")
    return _with_fields(good, f"{verb}:{struct}.{name}-{spelled}", struct, (name,), change)


def _with_typedef(good: Documents, id_: str, file: str, name: str, type_: str) -> Mutant:
    documents = copy.deepcopy(good)
    names = {name}
    if documents[file].get("device_macros"):  # all device types have one width
        names |= {t["name"] for _, t in _typedefs(documents) if _is_of_devices(t)}
    for _, typedef in _typedefs(documents):
        if typedef["name"] in names:
            typedef["type"] = type_
    about = tuple(
        f"{struct}.{field['name']}"
        for struct, fields in _structs(documents)
        for field in fields
        if field["type"] in names
    )
    return Mutant(id_, about, documents)


def _with_signature(  # noqa: PLR0917 -- the same
    good: Documents, verb: str, struct: str, name: str, arguments: list[str], result: str
) -> Mutant:
    def change(own: list[Entry]) -> None:
        field = next(field for field in own if field["name"] == name)
        _set_type(field, f"callback({', '.join(arguments)}) -> {result}")

    spelled = verb.replace(" ", "")
    return _with_fields(good, f"signature:{struct}.{name}.{spelled}", struct, (name,), change)


def _drop_dangling(documents: Documents) -> None:
    """Removes references to a removed field."""
    fields_of = {name: [field["name"] for field in fields] for name, fields in _structs(documents)}
    for erratum in documents["errata"]["errata"]:
        struct, _, field = erratum["about"].partition(".")
        if field and field not in fields_of.get(struct, [field]):
            erratum["about"] = struct
