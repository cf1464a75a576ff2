"""C++: the tables of the CUDA Array Interface."""

from __future__ import annotations

from collections.abc import Iterable

from ...cuda_array_interface.dictionaries import Check, DictionaryInterface, Kind, StreamNumber
from ...render import Filters, Output
from ...spec.model import Spec
from ...spelling import capitalized, literal, pascal
from ..c.wrapping import wrap_arguments

_PATH = "cpp/include/fletching/detail/cuda_array/tables.hpp"


def outputs(spec: Spec) -> list[Output]:
    interface = spec.cuda_array_interface
    context = {
        "cai": interface,
        "most_sizes": most_sizes(interface),
        "typed_checks": [check for check in interface.checks if check.typed],
    }
    return [Output(_PATH, "cuda_array_tables.hpp", f"spec/{interface.id}.yaml", context)]


def most_sizes(interface: DictionaryInterface) -> int:
    """Returns the maximum number of sizes of a kind."""
    return max(len(kind.sizes) for kind in interface.typestr.kinds)


def kind_row(kind: Kind) -> str:
    """Returns a row of the C++ table of kinds."""
    cells = [
        f"'{kind.char}'",
        literal(kind.name),
        f"Counts::k{kind.counts.capitalize()}",
        f"{{{', '.join(map(str, kind.sizes))}}}",
        *(str(flag).lower() for flag in (kind.ordered, kind.numeric, kind.has_unit)),
        str(kind.no_number or 0),
    ]
    return wrap_arguments("{", cells, "},", 4)


def check_row(check: Check) -> str:
    """Returns a row of the C++ table of checks."""
    severity = f"Severity::k{check.severity.capitalize()}"
    cells = [literal(check.id), literal(check.key or ""), severity, str(check.since)]
    cells += [literal(check.hint), f"Check::k{pascal(check.name)}"]
    return wrap_arguments("{", cells, "},", 4)


def refused_streams(streams: Iterable[StreamNumber]) -> str:
    values = [str(stream.value) for stream in streams]
    opening = f"inline constexpr std::array<std::int64_t, {len(values)}> kRefusedStreams{{"
    return wrap_arguments(opening, values, "};")


FILTERS: Filters = {
    "capitalized": capitalized,
    "check_row": check_row,
    "kind_row": kind_row,
    "pascal": pascal,
    "refused_streams": refused_streams,
}
