"""Computes which variables of the async table are still read from each state on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fletching_generator.async_stream.table import Case, Cell, Side

# For each action: the variables that it reads besides its arguments, and the variables that it
# overwrites.
READS = {
    "add demand": {"demand"},
    "use demand": {"demand"},
    "discard": {"ready", "holds_schema"},
    "return data": {"open", "handed"},
    "drop data": {"open", "handed"},
    "lose data": {"open", "handed"},
    "hand over": {"handed"},
    "take back": {"open", "handed"},
    "keep batch": {"ready"},
    "on_next_task": {"ready", "open"},
    "on_error": {"failure"},
    "add unsent": {"unsent"},
    "request unsent": {"unsent", "demand"},
    "queue task": {"queue"},
    "drop queue": {"queue"},
    "drop oldest": {"queue"},
    "extract oldest": {"queue", "running"},
    "extract queue": {"queue"},
    "keep data": {"running"},
}
WRITES = {
    "note EINVAL": {"failure"},
    "note errno": {"failure"},
    "discard": {"ready", "holds_schema"},
    "hand over": {"handed"},
    "take back": {"handed"},
    "keep schema": {"holds_schema"},
    "mark end": {"end_marked"},
    "on_schema": {"handed", "holds_schema"},
    "on_next_task": {"handed"},
    "request unsent": {"unsent"},
    "drop queue": {"queue"},
    "extract queue": {"queue"},
}
CONDITIONS = {
    "demand > 0 and ready > 0": {"demand", "ready"},
    "ready = 0 and end marked": {"ready", "end_marked"},
    "open = 0": {"open"},
    "unsent > 0": {"unsent"},
    "demand > 0": {"demand"},
    "running = 0": {"running"},
    "running = 1": {"running"},
}
NEEDS = {
    "a task is open": {"open"},
    "a task was extracted": {"extracted"},
    "a task is queued": {"queue"},
    "an extraction is running": {"running"},
    "demand > 0": {"demand"},
}
ALWAYS = {"state", "schema_given", "given", "source_finished", "arrived"}


@cache
def _live(cells: tuple[Cell, ...], needs: tuple[tuple[str, str], ...]) -> dict[str, set[str]]:
    needed = dict(needs)
    live: dict[str, set[str]] = {cell.state: set(ALWAYS) for cell in cells}
    changed = True
    while changed:
        changed = False
        for cell in cells:
            if cell.impossible:
                continue
            found = set(NEEDS.get(needed.get(cell.event, ""), set()))
            for case in cell.cases:
                found |= _before(case, live[case.next])
            if not found <= live[cell.state]:
                live[cell.state] |= found
                changed = True
    return live


def _before(case: Case, live: set[str]) -> set[str]:
    """Returns the live variables before the case, given those after it."""
    for action in reversed(case.do):
        live = (live - WRITES.get(action, set())) | READS.get(action, set())
    return live | CONDITIONS.get(case.when or "", set())


def live_variables(side: Side) -> Mapping[str, set[str]]:
    needs = tuple((event.name, event.needs) for event in side.events.values() if event.needs)
    return _live(tuple(side.cells.values()), needs)
