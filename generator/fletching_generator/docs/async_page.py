"""The reference page of the async stream: the diagrams and tables of both sides, as Markdown."""

from __future__ import annotations

from ..async_stream.table import Case, Cell, Side
from ..render import Filters, Output
from ..spec.model import Spec
from .pages import cell as table_cell
from .prose import prose

Row = tuple[str, str, str, str, str]  # states, condition, actions, next, errata


def outputs(spec: Spec) -> list[Output]:
    context = {"table": spec.async_table, "errata": {e.id: e for e in spec.errata}}
    return [Output("docs/reference/async.md", "async.md", "spec/async.yaml", context)]


def arrows(side: Side) -> list[tuple[str, str, str]]:
    """Start, end and events of each transition from one state to another."""
    events: dict[tuple[str, str], dict[str, None]] = {}
    for cell in side.possible:
        for case in cell.cases:
            if case.next != cell.state:
                events.setdefault((cell.state, case.next), {})[cell.event] = None
    found = [(*ends, ", ".join(names)) for ends, names in events.items()]
    return sorted(found, key=lambda arrow: list(side.states).index(arrow[0]))


def rows(side: Side, event: str) -> list[Row]:
    """Returns the cells of one event in the order of the states, with equal states grouped."""
    groups: dict[tuple[tuple[str, str, str, str], ...], list[str]] = {}
    for state in side.states:
        groups.setdefault(_answers(side.cells[state, event]), []).append(f"`{state}`")
    return [
        (", ".join(states) if first else "", *answer)
        for answers, states in groups.items()
        for first, answer in zip([True] + [False] * len(answers), answers, strict=False)
    ]


def _answers(cell: Cell) -> tuple[tuple[str, str, str, str], ...]:
    if cell.impossible:
        return (("", f"impossible: {cell.impossible}", "", _links(cell.rests_on)),)
    last = len(cell.cases) - 1
    return tuple(_answer(cell, case, index == last > 0) for index, case in enumerate(cell.cases))


def _answer(cell: Cell, case: Case, otherwise: bool) -> tuple[str, str, str, str]:
    done = [f"`{action}`" for action in case.do]
    done += [f"return {case.result}"] if case.result is not None else []
    broken = "violation: " if case.violation else ""
    when = case.when or ("otherwise" if otherwise else "")
    then = "" if case.next == cell.state else f"`{case.next}`"
    return when, broken + (", ".join(done) or "no action"), then, _links(case.errata)


def _links(errata: tuple[str, ...]) -> str:
    return ", ".join(f"[{name}](errata.md#{name})" for name in errata)


FILTERS: Filters = {
    "arrows": arrows,
    "cell": table_cell,
    "links": _links,
    "prose": prose,
    "rows": rows,
}
