"""Java: the table of tensor types, for the safe layer."""

from __future__ import annotations

from ...render import Filters, Output
from ...spec.model import Spec
from ...spec.tensor_types import StoredType, TensorType, TensorTypes
from ...spelling import literal
from .text import Broken, Call, Node

_PATH = "bindings/java/fletching/src/main/java/io/github/fletching/TensorTypes.java"


def output(spec: Spec) -> Output:
    return Output(_PATH, "TensorTypes.java", "spec/tensor-types.yaml", {"spec": spec})


def types(spec: Spec) -> Broken:
    labels = {code.name: code.label.upper() for code in spec.data_type_codes.enumerators}
    rows = [_type(row, labels[row.code]) for row in spec.tensor_types.types]
    return _list("TensorType", "TYPES", rows)


def _type(row: TensorType, code: str) -> Node:
    extension = row.extension or ("arrow.opaque" if row.type_name else None)
    texts = [literal(text) if text else "null" for text in (extension, row.type_name)]
    numbers = [f"DataTypeCode.{code}", str(row.bits), str(row.lanes), str(row.padded).lower()]
    storage = [literal(row.format), str(row.part_bytes), str(row.parts)]
    return Call("new TensorType", [*numbers, *storage, *texts])


def stored(table: TensorTypes) -> Broken:
    rows = [_stored(row) for row in table.as_storage]
    return _list("Stored", "STORED", rows)


def _stored(row: StoredType) -> Node:
    return Call("new Stored", [literal(row.format), str(row.bits), f"LOST_{row.lost.upper()}"])


def refused(table: TensorTypes) -> Broken:
    reasons: list[Node] = [
        Call("new Refused", [literal(format_), literal(why)]) for format_, why in table.refused
    ]
    others: list[Node] = [Call("new Refused", [literal(text), "OTHER"]) for text in table.others]
    return _list("Refused", "REFUSED", [*reasons, *others])


def reason(text: str, name: str) -> Broken:
    return Broken(f"static final String {name} =", literal(text))


def _list(type_: str, name: str, rows: list[Node]) -> Broken:
    return Broken(f"static final List<{type_}> {name} =", Call("List.of", rows))


FILTERS: Filters = {
    "tensor_reason": reason,
    "tensor_refused": refused,
    "tensor_stored": stored,
    "tensor_types": types,
}
