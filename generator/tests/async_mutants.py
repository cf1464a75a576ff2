# ruff: noqa: PLR0911 -- one branch for each event, or for each reason
"""Wrong async tables: every sensible change of every cell, and the check that detects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from async_liveness import live_variables
from async_walk import Place, misjudged, start, step, walk

from fletching_generator.async_stream.actions import ACTIONS
from fletching_generator.async_stream.check import side_problems
from fletching_generator.async_stream.configuration import CONDITIONS, Arguments, Config
from fletching_generator.async_stream.run import choose
from fletching_generator.async_stream.table import Case, Cell, Side

DEPTH = 5  # how many steps after the changed cell are searched for consequences
RESULTS = ("0", "EINVAL", "errno")

# Reasons why a mutant cannot be detected.
NEVER = "never: the event's own needs rule it out in this state"
NO_EFFECT = "same: it changes nothing in any place where the cell is used"
NOT_READ = "same: it changes a variable that nothing reads from there on"
SURVIVED = "survived"

# Mutants that no test can detect, by side, with reasons.
EXPLAINED = {
    ("producer", "returns_ok in in_task: without 'hand over'"): (
        "what was handed over is looked at only after the next handler call has replaced it"
    ),
    **{
        ("consumer", f"{place}: with 'use demand'"): (
            "no demand is ever added here, and a negative one counts like 0"
        )
        for place in (
            "on_schema in cancelled_early",
            "request in cancelled_early",
            "cancel in created",
            "cancel in cancelled_early",
        )
    },
}

T = TypeVar("T")


@dataclass(frozen=True)
class Mutant:
    cell: Cell  # the changed cell
    what: str  # "next is 'ended'"

    @property
    def name(self) -> str:
        return f"{self.cell.event} in {self.cell.state}: {self.what}"


def mutants(side: Side) -> Iterator[Mutant]:
    for cell in side.cells.values():
        if cell.impossible:
            empty = Case(None, (), None, cell.state, None, ())
            yield Mutant(replace(cell, impossible=None, cases=(empty,)), "is possible")
            continue
        yield Mutant(replace(cell, impossible="It is not."), "is impossible")
        for index, case in enumerate(cell.cases):
            label = f"case {index + 1}: " if len(cell.cases) > 1 else ""
            for what, wrong in _wrong_cases(side, case):
                cases = (*cell.cases[:index], wrong, *cell.cases[index + 1 :])
                yield Mutant(replace(cell, cases=cases), label + what)
        yield from _wrong_orders(cell)


def _wrong_cases(side: Side, case: Case) -> Iterator[tuple[str, Case]]:
    for state in side.states:
        if state != case.next:
            yield f"next is '{state}'", replace(case, next=state)
    for index, action in enumerate(case.do):
        rest = (*case.do[:index], *case.do[index + 1 :])
        yield f"without '{action}'", replace(case, do=rest)
        for other in ACTIONS[side.name]:
            if other not in case.do and other.split()[0] == action.split()[0]:
                do = (*case.do[:index], other, *case.do[index + 1 :])
                yield f"'{other}' instead of '{action}'", replace(case, do=do)
    for action in ACTIONS[side.name]:
        if action not in case.do:
            yield f"with '{action}'", replace(case, do=(*case.do, action))
    for result in RESULTS:
        if result != case.result:
            yield f"returns {result}", replace(case, result=result)
    if case.result is not None:
        yield "returns nothing", replace(case, result=None)


def _wrong_orders(cell: Cell) -> Iterator[Mutant]:
    """Yields mutants with missing cases and with changed conditions."""
    if len(cell.cases) == 1:
        return
    for index, case in enumerate(cell.cases):
        rest = list(cell.cases[:index] + cell.cases[index + 1 :])
        rest[-1] = replace(rest[-1], when=None)
        yield Mutant(replace(cell, cases=tuple(rest)), f"without case {index + 1}")
        for other in CONDITIONS:
            if case.when not in (None, other):
                wrong = replace(case, when=other)
                cases = (*cell.cases[:index], wrong, *cell.cases[index + 1 :])
                yield Mutant(replace(cell, cases=cases), f"case {index + 1}: when {other}")


@dataclass(frozen=True)
class Uses:
    """The uses of a cell in a complete walk with the correct table."""

    steps: tuple[tuple[Place, Arguments], ...]
    places: tuple[Place, ...]  # all places in the state, even if the event does not happen there


def uses(side: Side) -> Mapping[tuple[str, str], Uses]:
    steps: dict[tuple[str, str], dict[Case, list[tuple[Place, Arguments]]]] = {}
    places: dict[str, dict[Place, None]] = {state: {} for state in side.states}
    for walked in walk(side, [start(side)]):
        state = walked.place.config.state
        places[state].setdefault(walked.place)
        assert walked.case is not None, walked
        cell = steps.setdefault((state, walked.event), {})
        cell.setdefault(walked.case, []).append((walked.place, walked.arguments))
    return {
        key: Uses(
            tuple(use for found in steps.get(key, {}).values() for use in _spread(found, 30)),
            tuple(_spread(list(places[key[0]]), 40)),
        )
        for key in side.cells
    }


def _spread(items: list[T], count: int) -> list[T]:
    """Returns at most `count` items, evenly spread."""
    return items[:: max(1, len(items) // count)]


def noticed(side: Side, mutant: Mutant, used: Uses) -> str:
    """Returns the check or rule that fails with this mutant, or why it cannot be detected."""
    key = mutant.cell.state, mutant.cell.event
    wrong = replace(side, cells={**side.cells, key: mutant.cell})
    if side_problems(wrong):
        return "meaning check"
    if any(misjudged(wrong, place) for place in used.places):
        return "what can happen has a cell"
    if mutant.what in ("is possible", "is impossible"):
        return NEVER if not used.steps else SURVIVED
    after: dict[Place, None] = {}
    changed = read = False
    for place, arguments in used.steps:
        case = choose(mutant.cell, place.config)
        try:
            then, broken = step(wrong, place, key[1], arguments, case)
        except (IndexError, KeyError, ValueError):
            return "an action finds what it needs"
        if broken:
            return broken[0]
        right_case = choose(side.cells[key], place.config)
        right, _ = step(side, place, key[1], arguments, right_case)
        different = {name for name in Config._fields if _of(then, name) != _of(right, name)}
        if different:
            changed = True
            read = read or bool(different & live_variables(side)[right.config.state])
            after.setdefault(then)
    if not changed:
        return NO_EFFECT
    if not read:
        return NOT_READ
    found = walk(wrong, list(after), DEPTH)
    return next((walked.broken[0] for walked in found if walked.broken), SURVIVED)


def _of(place: Place, variable: str) -> object:
    return getattr(place.config, variable)
