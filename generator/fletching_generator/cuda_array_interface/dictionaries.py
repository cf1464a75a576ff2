"""The CUDA Array Interface, which is a dictionary instead of a C struct, as frozen data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import Mistake, SpecError
from ..reading.documents import Document, Report


@dataclass(frozen=True)
class Change:
    version: int  # 2
    doc: str  # "The address of an array without elements is 0."


@dataclass(frozen=True)
class Key:
    name: str  # "strides"
    since: int  # 0: the first version that has it
    required: bool  # False
    none: bool  # True: None is equivalent to a missing key
    type: str  # "tuple of integers"
    unit: str | None  # "bytes"
    valid: str  # "one for each dimension"
    doc: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Order:
    char: str  # "<"
    name: str  # "little_endian"
    doc: str


@dataclass(frozen=True)
class Kind:
    """One kind character of type strings."""

    char: str  # "U"
    name: str  # "text"
    counts: Literal["bits", "bytes", "characters"]  # the unit of the number after the kind
    sizes: tuple[int, ...]  # (2, 4, 8); empty if any number is valid
    ordered: bool  # True: items of several bytes have a byte order
    numeric: bool
    has_unit: bool  # True: a unit in brackets may follow
    no_number: int | None  # 8: the bytes of an item without a number; None: a number is required


@dataclass(frozen=True)
class Unit:
    text: str  # "ns"
    name: str  # "nanosecond"


@dataclass(frozen=True)
class TypeString:
    section: str
    orders: tuple[Order, ...]
    kinds: tuple[Kind, ...]
    units: tuple[Unit, ...]


@dataclass(frozen=True)
class StreamNumber:
    value: int  # 1
    name: str  # "legacy_default"
    allowed: bool  # True
    doc: str


@dataclass(frozen=True)
class Check:
    """A check of a dictionary."""

    id: str  # "cuda-array-interface.stream-zero"
    rules: tuple[str, ...]  # ("cai-stream.not-zero",): its rules; see rulebook.py
    beyond: str | None  # why it exists even though no published text demands it
    key: str | None  # "stream"; None: the dictionary itself
    severity: Literal["error", "warning"]
    since: int  # 3: the first version to which it applies
    typed: bool  # True: a struct with typed fields can also fail it
    section: str
    doc: str
    hint: str  # "give None, 1 or 2, whichever is meant"

    @property
    def name(self) -> str:
        """The identifier: stream_zero."""
        return self.id.partition(".")[2].replace("-", "_")


@dataclass(frozen=True)
class Limits:
    masks: int  # 4: masks of masks
    lists: int  # 32: lists within the list of 'descr'
    fields: int  # 4096: fields of 'descr', including nested ones
    item_bytes: int  # 2147483647


@dataclass(frozen=True)
class DictionaryInterface:
    id: str  # "cuda-array-interface": the file name without its suffix
    title: str  # "CUDA Array Interface"
    document: str  # "CUDA Array Interface (Version 3)": the published text
    attribute: str  # "__cuda_array_interface__"
    version: int  # 3
    doc: str
    limits: Limits
    versions: tuple[Change, ...]  # from 0 on
    keys: tuple[Key, ...]
    typestr: TypeString
    streams: tuple[StreamNumber, ...]
    checks: tuple[Check, ...]  # in the order of execution


def read_dictionary(id_: str, document: Document) -> DictionaryInterface:
    """Returns the validated interface described by the file. Raises SpecError."""
    content = document.content
    interface = DictionaryInterface(
        **{
            **content,
            "id": id_,
            "limits": Limits(**content["limits"]),
            "versions": _changes(content["versions"]),
            "keys": tuple(map(_key, content["keys"])),
            "typestr": _type_string(content["typestr"]),
            "streams": tuple(StreamNumber(**entry) for entry in content["streams"]),
            "checks": tuple(_check(id_, entry) for entry in content["checks"]),
        }
    )
    mistakes: list[Mistake] = []
    check_dictionary(interface, document.reporter(mistakes))
    if mistakes:
        raise SpecError(*sorted(mistakes, key=lambda mistake: mistake.line))
    return interface


def _changes(entries: list[dict[str, Any]]) -> tuple[Change, ...]:
    return tuple(Change(**entry) for entry in entries)


def _key(entry: dict[str, Any]) -> Key:
    return Key(**{"unit": None, **entry, "changes": _changes(entry.get("changes", []))})


def _type_string(entry: dict[str, Any]) -> TypeString:
    return TypeString(
        section=entry["section"],
        orders=tuple(Order(**order) for order in entry["orders"]),
        kinds=tuple(map(_kind, entry["kinds"])),
        units=tuple(Unit(**unit) for unit in entry["units"]),
    )


def _kind(entry: dict[str, Any]) -> Kind:
    defaults = {"has_unit": False, "no_number": None}
    return Kind(**{**defaults, **entry, "sizes": tuple(entry["sizes"])})


def _check(id_: str, entry: dict[str, Any]) -> Check:
    rest = {key: value for key, value in entry.items() if key != "name"}
    changed = {"id": f"{id_}.{entry['name']}", "rules": tuple(entry["rules"])}
    return Check(**{"beyond": None, **rest, **changed})


# --- Semantic checks -----------------------------------------------------------------------------


def check_dictionary(interface: DictionaryInterface, report: Report) -> None:
    """Reports the mistakes that a schema cannot detect."""
    _check_versions(interface, report)
    _check_keys(interface, report)
    _check_type_string(interface.typestr, report)
    _check_unique("streams", "value", [stream.value for stream in interface.streams], report)
    _check_unique("streams", "name", [stream.name for stream in interface.streams], report)
    _check_checks(interface, report)


def _check_versions(interface: DictionaryInterface, report: Report) -> None:
    found = [entry.version for entry in interface.versions]
    for index, version in enumerate(found):
        if version != index:
            report(
                ["versions", index, "version"],
                f"{version} does not follow the version before it",
                f"list every version from 0 on; expected {index} here",
            )
            return
    if interface.version != found[-1]:
        report(
            ["version"],
            f"{interface.version} is not the newest of 'versions'",
            f"write {found[-1]}, or add the version to 'versions'",
        )


def _check_keys(interface: DictionaryInterface, report: Report) -> None:
    _check_unique("keys", "name", [key.name for key in interface.keys], report)
    for index, key in enumerate(interface.keys):
        place: list[str | int] = ["keys", index]
        _check_since(interface, key.since, place, report)
        if key.required and key.none:
            hint = "say 'none: false', or 'required: false'"
            report([*place, "none"], f"'{key.name}' is required, and may be None", hint)
        if not any(check.key == key.name for check in interface.checks):
            hint = "add a check for it"
            report([*place, "name"], f"no check reads '{key.name}'", hint)
        for number, change in enumerate(key.changes):
            if not key.since < change.version <= interface.version:
                report(
                    [*place, "changes", number, "version"],
                    f"'{key.name}' cannot change in version {change.version}",
                    f"its versions are {key.since} to {interface.version}",
                )


def _check_type_string(typestr: TypeString, report: Report) -> None:
    where = ["typestr", "orders"]
    _check_unique(where, "char", [order.char for order in typestr.orders], report)
    _check_unique(where, "name", [order.name for order in typestr.orders], report)
    for name in ("little_endian", "big_endian", "irrelevant"):
        if name not in [order.name for order in typestr.orders]:
            report(where, f"'{name}' is missing", "the checks ask for it; add it")
    _check_unique(["typestr", "kinds"], "char", [kind.char for kind in typestr.kinds], report)
    _check_unique(["typestr", "units"], "text", [unit.text for unit in typestr.units], report)
    for index, kind in enumerate(typestr.kinds):
        if kind.no_number is not None and kind.no_number not in kind.sizes:
            report(
                ["typestr", "kinds", index, "no_number"],
                f"{kind.no_number} is none of the sizes of '{kind.char}'",
                "use one of 'sizes', or add it there",
            )


def _check_checks(interface: DictionaryInterface, report: Report) -> None:
    _check_unique("checks", "name", [check.id for check in interface.checks], report)
    keys = {key.name: key for key in interface.keys}
    for index, check in enumerate(interface.checks):
        place: list[str | int] = ["checks", index]
        _check_since(interface, check.since, place, report)
        if bool(check.rules) == (check.beyond is not None):
            problem = "expected either rules or a reason"
            hint = "name the rules, or write 'beyond: reason', not both"
            report([*place, "rules"], problem, hint)
        if check.key is None:
            continue
        if check.key not in keys:
            hint = f"use one of {', '.join(keys)}"
            report([*place, "key"], f"unknown key '{check.key}'", hint)
        elif check.since < keys[check.key].since:
            report(
                [*place, "since"],
                f"'{check.key}' does not exist in version {check.since}",
                f"it has been there since {keys[check.key].since}",
            )


def _check_since(
    interface: DictionaryInterface, since: int, place: list[str | int], report: Report
) -> None:
    if since > interface.version:
        hint = f"the newest version is {interface.version}"
        report([*place, "since"], f"unknown version {since}", hint)


def _check_unique(
    where: str | list[str],
    field: str,
    values: Iterable[object],
    report: Report,
) -> None:
    seen: set[object] = set()
    for index, value in enumerate(values):
        if value in seen:
            keys: list[str | int] = [*([where] if isinstance(where, str) else where), index, field]
            report(keys, f"'{value}' is a duplicate", "rename or remove one")
        seen.add(value)
