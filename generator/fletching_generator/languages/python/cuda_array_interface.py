"""Python: the model of the CUDA Array Interface that the tests compare the packages with."""

from __future__ import annotations

from collections.abc import Iterable

from ...cuda_array_interface.dictionaries import Check, Kind
from ...render import Filters, Output
from ...spec.model import Spec
from ...spelling import capitalized, literal
from .spelling import call

_NAME = "cuda_array_interface.py"
MODEL = "tests/cuda_array_interface/model.py"


def outputs(spec: Spec) -> list[Output]:
    interface = spec.cuda_array_interface
    source = f"spec/{interface.id}.yaml"
    return [Output(MODEL, _NAME, source, {"cai": interface})]


def tuple_of(values: Iterable[object]) -> str:
    """A tuple in Python."""
    texts = [literal(value) if isinstance(value, str) else str(value) for value in values]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def kind_row(kind: Kind) -> str:
    """A kind in Python's table."""
    cells = [
        literal(kind.name),
        literal(kind.counts),
        tuple_of(kind.sizes),
        f"ordered={kind.ordered}",
        f"numeric={kind.numeric}",
        f"has_unit={kind.has_unit}",
        f"no_number={kind.no_number}",
    ]
    return call(f'"{kind.char}": Kind', cells, indent=4, tail=",")


def check_row(check: Check) -> str:
    """A check in Python's table."""
    cells = [literal(check.id), literal(check.key or ""), literal(check.severity), str(check.since)]
    cells += [literal(check.hint), f"_{check.name}"]
    return call("Rule", cells, indent=4, tail=",")


FILTERS: Filters = {
    "capitalized": capitalized,
    "check_row": check_row,
    "kind_row": kind_row,
    "tuple_of": tuple_of,
}
