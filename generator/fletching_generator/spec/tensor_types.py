"""The mapping of Arrow types to DLPack types: spec/tensor-types.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import Mistake, SpecError
from ..reading.documents import Document, Report

# Bytes per value, by format.
_BYTES = {**dict.fromkeys("cC", 1), **dict.fromkeys("sSe", 2), **dict.fromkeys("iIf", 4)}
_BYTES |= dict.fromkeys("lLg", 8)
_BINARY = re.compile(r"w:([1-9][0-9]?)")


@dataclass(frozen=True)
class TensorType:
    code: str  # "kDLComplex"
    value: int  # 5: the number of the code
    bits: int  # 64: per value
    format: str  # "f": of the storage
    lanes: int = 1  # values per storage element
    padded: bool = False  # True: a value narrower than a byte is stored in a byte
    parts: int = 1  # 2: the storage is a list with this number of elements
    extension: str | None = None  # "arrow.bool8"
    type_name: str | None = None  # "complex64"; set if the extension is arrow.opaque

    @property
    def part_bytes(self) -> int:
        """The number of bytes of one value of the format: 4."""
        binary = _BINARY.fullmatch(self.format)
        return int(binary[1]) if binary else _BYTES.get(self.format, 0)

    @property
    def name(self) -> str:
        """The name in messages: "float8_e4m3fn", "kDLInt32"."""
        return self.type_name or f"{self.code}{self.bits}"


@dataclass(frozen=True)
class StoredType:
    format: str  # "tss:": parameters may follow the colon
    bits: int  # 64: of the integer
    lost: str  # "time": the key of a reason


@dataclass(frozen=True)
class TensorTypes:
    vendor: str  # "DLPack"
    types: tuple[TensorType, ...]
    as_storage: tuple[StoredType, ...]
    refused: tuple[tuple[str, str], ...]  # (("b", "Arrow's booleans are bits"), ...)
    others: tuple[str, ...]  # ("n", ...): refused for the reason `other`
    reasons: dict[str, str]  # {"time": "DLPack has no times"}


def read_tensor_types(document: Document, codes: Mapping[str, int]) -> TensorTypes:
    """`codes`: the data-type codes of DLPack. Raises SpecError with all mistakes."""
    content = document.content
    mistakes: list[Mistake] = []
    report = document.reporter(mistakes)
    for index, entry in enumerate(content["types"]):
        if entry["code"] not in codes:
            keys: list[str | int] = ["types", index, "code"]
            report(
                keys, f"'{entry['code']}' is not a data-type code", "name one of spec/dlpack.yaml"
            )
    if mistakes:
        raise SpecError(*mistakes)
    types = tuple(TensorType(**entry, value=codes[entry["code"]]) for entry in content["types"])
    _check_types(types, report)
    for index, stored in enumerate(content["as_storage"]):
        if stored["lost"] not in content["reasons"]:
            problem = f"'{stored['lost']}' is not defined"
            report(["as_storage", index, "lost"], problem, "name one of 'reasons'")
    if mistakes:
        raise SpecError(*sorted(mistakes, key=lambda mistake: mistake.line))
    return TensorTypes(
        vendor=content["vendor"],
        types=types,
        as_storage=tuple(StoredType(**entry) for entry in content["as_storage"]),
        refused=tuple((entry["format"], entry["why"]) for entry in content["refused"]),
        others=tuple(content["others"]),
        reasons=content["reasons"],
    )


def _check_types(types: tuple[TensorType, ...], report: Report) -> None:
    """Checks that each DLPack and Arrow type occurs once, and that both have the same size."""
    seen: set[object] = set()
    for index, row in enumerate(types):
        dlpack = (row.value, row.bits, row.lanes, row.padded)
        arrow = row.type_name or (row.format, row.extension)
        for key, value in (("code", dlpack), ("format", arrow)):
            if value in seen:
                report(["types", index, key], f"{row.name} stands twice", "remove one")
            seen.add(value)
        bits = 8 if row.padded else row.bits * row.lanes
        if row.part_bytes * row.parts * 8 != bits:
            problem = f"'{row.format}' does not have the {bits} bits of the DLPack type"
            report(["types", index, "format"], problem, "name a format of that size")
        if row.extension is not None and row.type_name is not None:
            problem = "a type is of one extension"
            report(["types", index, "extension"], problem, "remove 'extension' or 'type_name'")
