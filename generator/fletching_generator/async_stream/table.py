"""The async stream as typed, frozen data: states, events, cells, and the thread rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

SideName = Literal["producer", "consumer"]


@dataclass(frozen=True)
class Event:
    name: str  # "request"
    by: Literal["peer", "source", "executor", "application"]
    call: str | None  # "request": the C callback that causes it
    argument: Literal["n", "task", "batch", "call"] | None
    errno: bool  # True: it has an errno value
    needs: str | None  # "a task is open": the precondition of the event
    doc: str


@dataclass(frozen=True)
class Case:
    """The actions of a cell under a condition."""

    when: str | None  # "demand > 0"; None: always
    do: tuple[str, ...]  # ("note EINVAL", "discard")
    result: str | None  # "0", "EINVAL", "errno"; None if the event returns no value
    next: str  # "error_pending"
    violation: str | None  # the erratum, if the other side has broken a rule
    rests_on: tuple[str, ...]  # ("async-cancel-remaining",)

    @property
    def errata(self) -> tuple[str, ...]:
        return ((self.violation,) if self.violation else ()) + self.rests_on


@dataclass(frozen=True)
class Cell:
    """One event in one state."""

    state: str  # "streaming"
    event: str  # "request"
    impossible: str | None  # the reason; such a cell has no cases
    rests_on: tuple[str, ...]  # errata of an impossible cell
    cases: tuple[Case, ...]  # the first case whose condition holds applies


@dataclass(frozen=True)
class Side:
    name: SideName
    doc: str
    start: str  # "created"
    terminal: tuple[str, ...]  # ("released",)
    states: Mapping[str, str]  # {"created": "The handler is there ..."}
    variables: Mapping[str, str]
    events: Mapping[str, Event]
    cells: Mapping[tuple[str, str], Cell]  # by state and event

    @property
    def possible(self) -> Iterator[Cell]:
        return (cell for cell in self.cells.values() if not cell.impossible)


@dataclass(frozen=True)
class ThreadRule:
    id: str  # "one-handler-call"
    rule: str
    section: str | None  # "Thread safety"
    rests_on: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """A list of events in order. The table determines their effects."""

    name: str  # "three-batches-in-ones"
    doc: str
    hostile: bool  # True: the other side breaks a rule
    steps: tuple[
        str, ...
    ]  # ("schema_ready", "step", "request 3 within on_schema"): with phrases expanded


@dataclass(frozen=True)
class Scenarios:
    reach: Mapping[str, tuple[tuple[str, ...], ...]]  # paths to each state
    scenarios: tuple[Scenario, ...]


@dataclass(frozen=True)
class AsyncTable:
    producer: Side
    consumer: Side
    inside: Mapping[str, tuple[str, ...]]  # {"on_schema": ("request", "cancel")}
    threads: tuple[ThreadRule, ...]
    scenarios: Mapping[SideName, Scenarios]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.producer, self.consumer


def build_table(content: dict[str, Any], scenarios: dict[str, Any]) -> AsyncTable:
    """Returns the table from the content of async.yaml and async-scenarios.yaml."""
    return AsyncTable(
        producer=build_side("producer", content["sides"]["producer"]),
        consumer=build_side("consumer", content["sides"]["consumer"]),
        inside={call: tuple(calls) for call, calls in content["inside"].items()},
        threads=tuple(
            ThreadRule(
                rule["id"], rule["rule"], rule.get("section"), tuple(rule.get("rests_on", ()))
            )
            for rule in content["threads"]
        ),
        scenarios={
            "producer": _scenarios(scenarios["producer"]),
            "consumer": _scenarios(scenarios["consumer"]),
        },
    )


def build_side(name: SideName, content: dict[str, Any]) -> Side:
    cells: dict[tuple[str, str], Cell] = {}
    for entry in content["cells"]:
        for state in entry["in"]:
            cells[state, entry["on"]] = _cell(state, entry)
    return Side(
        name=name,
        doc=content["doc"],
        start=content["start"],
        terminal=tuple(content["terminal"]),
        states=content["states"],
        variables=content["variables"],
        events={key: _event(key, entry) for key, entry in content["events"].items()},
        cells=cells,
    )


def _event(name: str, entry: dict[str, Any]) -> Event:
    return Event(
        name=name,
        by=entry["by"],
        call=entry.get("call"),
        argument=entry.get("argument"),
        errno=entry.get("errno", False),
        needs=entry.get("needs"),
        doc=entry["doc"],
    )


def _cell(state: str, entry: dict[str, Any]) -> Cell:
    impossible = entry.get("impossible")
    cases = () if impossible else tuple(_case(state, entry, c) for c in entry.get("cases", [{}]))
    return Cell(state, entry["on"], impossible, tuple(entry.get("rests_on", ())), cases)


def _case(state: str, entry: dict[str, Any], case: dict[str, Any]) -> Case:
    """Returns a case. The keys of the cell apply to all its cases."""
    result = case.get("result", entry.get("result"))
    return Case(
        when=case.get("when"),
        do=tuple(case.get("do", entry.get("do", ()))),
        result=None if result is None else str(result),
        next=case.get("next", entry.get("next", state)),
        violation=case.get("violation", entry.get("violation")),
        rests_on=(*entry.get("rests_on", ()), *case.get("rests_on", ())),
    )


def _scenarios(content: dict[str, Any]) -> Scenarios:
    phrases = content["phrases"]
    return Scenarios(
        reach={
            state: tuple(tuple(expand(steps, phrases)) for steps in ways)
            for state, ways in content["reach"].items()
        },
        scenarios=tuple(
            Scenario(
                entry["name"],
                entry["doc"],
                entry.get("hostile", False),
                tuple(expand(entry["steps"], phrases)),
            )
            for entry in content["scenarios"]
        ),
    )


def expand(steps: list[Any], phrases: Mapping[str, list[Any]]) -> Iterator[str]:
    """Yields the steps with phrases and repetitions expanded."""
    for step in steps:
        if isinstance(step, dict):
            for _ in range(step["repeat"]):
                yield from expand(step["steps"], phrases)
        elif step in phrases:
            yield from expand(phrases[step], phrases)
        else:
            yield step
