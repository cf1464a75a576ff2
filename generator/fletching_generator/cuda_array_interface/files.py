"""The CUDA Array Interface: a module for Python, a header for C++ and a page of the reference."""

from __future__ import annotations

from collections.abc import Iterable

from ..docs.pages import cell
from ..languages.c import literal, wrap_arguments
from ..languages.python import call
from ..render import Filters, Output
from ..spec.model import Spec
from .dictionaries import Check, DictionaryInterface, Kind, StreamNumber

_WIDTH = 100
_PYTHON, _CPP = "languages/python/templates", "languages/cpp/templates"
_DOCS = "docs/templates"


def outputs(spec: Spec) -> list[Output]:
    interface = spec.cuda_array_interface
    source, context = f"spec/{interface.id}.yaml", {"cai": interface}
    name = "cuda_array_interface"
    typed = {
        **context,
        "most_sizes": most_sizes(interface),
        "typed_checks": [check for check in interface.checks if check.typed],
    }
    page = {**context, "rules_page": f"rules/{interface.id}.md"}
    return [
        Output(
            f"bindings/python/src/fletching/{name}.py",
            f"{_PYTHON}/{name}.py",
            source,
            context,
        ),
        Output(
            f"cpp/include/fletching/{name}.hpp",
            f"{_CPP}/{name}.hpp",
            source,
            typed,
        ),
        Output(f"docs/reference/{interface.id}.md", f"{_DOCS}/{name}.md", source, page),
    ]


def capitalized(text: str) -> str:
    """The text with a capital letter at its beginning, the rest as it is."""
    return text[:1].upper() + text[1:]


# --- Python --------------------------------------------------------------------------------------


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
    cells += [literal(check.mend), f"_{check.name}"]
    return call("Rule", cells, indent=4, tail=",")


# --- C++ -----------------------------------------------------------------------------------------


def camel(name: str) -> str:
    """legacy_default as LegacyDefault."""
    return "".join(word.capitalize() for word in name.split("_"))


def most_sizes(interface: DictionaryInterface) -> int:
    """How many sizes the kind with the most of them has."""
    return max(len(kind.sizes) for kind in interface.typestr.kinds)


def cpp_kind_row(kind: Kind) -> str:
    """A kind in the table of C++."""
    cells = [
        f"'{kind.char}'",
        literal(kind.name),
        f"Counts::k{kind.counts.capitalize()}",
        f"{{{', '.join(map(str, kind.sizes))}}}",
        *(str(flag).lower() for flag in (kind.ordered, kind.numeric, kind.has_unit)),
        str(kind.no_number or 0),
    ]
    return wrap_arguments("{", cells, "},", indent=4, width=_WIDTH)


def cpp_check_row(check: Check) -> str:
    """A check in the table of C++."""
    severity = f"Severity::k{check.severity.capitalize()}"
    cells = [literal(check.id), literal(check.key or ""), severity, str(check.since)]
    cells += [literal(check.mend), f"&detail::{check.name}"]
    return wrap_arguments("{", cells, "},", indent=4, width=_WIDTH)


def cpp_refused_streams(streams: Iterable[StreamNumber]) -> str:
    values = [str(stream.value) for stream in streams]
    opening = f"inline constexpr std::array<std::int64_t, {len(values)}> kRefusedStreams{{"
    return wrap_arguments(opening, values, "};", indent=0, width=_WIDTH)


FILTERS: Filters = {
    "camel": camel,
    "capitalized": capitalized,
    "cell": cell,
    "cpp_kind_row": cpp_kind_row,
    "cpp_refused_streams": cpp_refused_streams,
    "cpp_check_row": cpp_check_row,
    "kind_row": kind_row,
    "check_row": check_row,
    "tuple_of": tuple_of,
}
