"""Java: the offsets of the fields and the signatures of the callbacks, for the safe layer."""

from __future__ import annotations

from ...reading.types import Callback
from ...render import Filters, Output
from ...spec.model import Field, Spec, Struct
from ...spelling import literal
from .names import constant
from .runtimes import signature
from .text import Broken, Call, Node

_FOLDER = "bindings/java/fletching/src/main/java/io/github/fletching/"


def outputs(spec: Spec) -> list[Output]:
    # The functions of the exchange table do not take the struct as their first argument.
    called = [s for s in spec.structs if s.callbacks and s.name != "DLPackExchangeAPI"]
    return [
        Output(f"{_FOLDER}{name}.java", f"{name}.java", "spec/*.yaml", {"structs": structs})
        for name, structs in (("Callback", called), ("Fields", spec.structs))
    ]


def _short(struct: Struct, field: Field) -> str:
    """Returns PRODUCER_REQUEST for `ArrowAsyncProducer.request`, as an example."""
    name = struct.name.removeprefix("Arrow").removeprefix("Async")
    if name != struct.name.removeprefix("Arrow"):
        name = name.removeprefix("DeviceStream")
    name = name.removeprefix("DLPack").removeprefix("DL")
    return f"{constant(name)}_{field.name.upper()}"


def field_row(field: Field, struct: Struct) -> Broken:
    place: list[Node] = [f"Offsets.{constant(struct.name)}", literal(field.name)]
    return Broken(f"static final long {_short(struct, field)} =", Call("offset", place))


def callback_row(field: Field, struct: Struct) -> Call:
    assert isinstance(field.type, Callback)
    failure = "Failures.EIO" if field.contract and field.contract.failure == "errno" else "0"
    row: list[Node] = [literal(f"{struct.name}.{field.name}"), literal(signature(field.type))]
    return Call(_short(struct, field), [*row, failure, f"Fields.{_short(struct, field)}"])


FILTERS: Filters = {"callback_row": callback_row, "field_row": field_row}
