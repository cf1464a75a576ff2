"""Checks the async table: complete, no unknown names, no dead ends, and scenarios that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..errors import Mistake, SpecError
from ..reading.documents import Document, KeyPath, Report
from .actions import ACTIONS, PEER_CALLS
from .run import NotPossibleError
from .table import AsyncTable, Case, Side, build_side, build_table
from .traces import run_scenario, sweeps

# The values that an action or a condition reads from its event.
_READS = {
    "add demand": "n",
    "add unsent": "n",
    "request n": "n",
    "keep batch": "batch",
    "reject batch": "batch",
    "return data": "task",
    "drop data": "task",
    "lose data": "task",
    "keep data": "task",
    "queue task": "task",
    "drop task": "task",
    "notify task": "task",
    "note errno": "errno",
    "notify errno": "errno",
}
_RETURNING = ("on_schema", "on_next_task", "extract_data")  # the callbacks that return an int


# A cache, because tests load the whole spec for every file that they change.
_sound: dict[tuple[str, str, frozenset[str]], AsyncTable] = {}


def check_async(table: Document, scenarios: Document, errata: frozenset[str]) -> AsyncTable:
    """Returns the table if both files are valid. Raises SpecError with all mistakes otherwise."""
    key = (table.text, scenarios.text, errata)
    if key not in _sound:
        _sound[key] = _check_table(table, scenarios, errata)
    return _sound[key]


def _check_table(table: Document, scenarios: Document, errata: frozenset[str]) -> AsyncTable:
    mistakes: list[Mistake] = []
    report, report_scenario = table.reporter(mistakes), scenarios.reporter(mistakes)
    content = table.content
    for name, side in content["sides"].items():
        _check_names(["sides", name], side, report)
    _check_errata(content, [], errata, report)
    _check_phrases(scenarios.content, report_scenario)
    _stop_on(mistakes)

    for name, side in content["sides"].items():
        built = build_side(name, side)
        entries = {(state, e["on"]): i for i, e in enumerate(side["cells"]) for state in e["in"]}
        for state, event, problem, hint in side_problems(built):
            keys: KeyPath = ["sides", name, "states", state]
            if event is not None:
                keys = ["sides", name, "cells", entries[state, event]]
            report(keys, problem, hint)
    _stop_on(mistakes)

    built_table = build_table(content, scenarios.content)
    for side_ in built_table.sides:
        _check_scenarios(built_table, side_, report_scenario)
    _stop_on(mistakes)
    return built_table


def _stop_on(mistakes: list[Mistake]) -> None:
    if mistakes:
        raise SpecError(*sorted(mistakes, key=lambda m: (m.file, m.line)))


def _check_names(keys: list[str | int], side: dict[str, Any], report: Report) -> None:
    """Checks that every cell is defined once and that its states and events exist."""
    states, events = side["states"], side["events"]
    for key in ("start", "terminal"):
        for name in [side[key]] if key == "start" else side[key]:
            if name not in states:
                report([*keys, key], f"no state '{name}'", f"use one of {', '.join(states)}")
    filled: Counter[tuple[str, str]] = Counter()
    for index, entry in enumerate(side["cells"]):
        here = [*keys, "cells", index]
        if entry["on"] not in events:
            problem, hint = f"no event '{entry['on']}'", f"use one of {', '.join(events)}"
            report([*here, "on"], problem, hint)
        for state in entry["in"]:
            if state not in states:
                report([*here, "in"], f"no state '{state}'", f"use one of {', '.join(states)}")
            filled[state, entry["on"]] += 1
            if filled[state, entry["on"]] == 2:
                problem = f"'{entry['on']}' in '{state}' is filled twice"
                report([*here, "in"], problem, "remove one")
        _check_shape(entry, here, report)
        for next_ in (c["next"] for c in (entry, *entry.get("cases", [])) if "next" in c):
            if next_ not in states:
                report(here, f"no state '{next_}'", f"use one of {', '.join(states)}")
    for state in states:
        missing = [event for event in events if not filled[state, event]]
        if missing:
            problem = f"'{state}' has no cell for {', '.join(missing)}"
            report(
                [*keys, "states", state], problem, "add one, or write 'impossible' with a reason"
            )


def _check_shape(entry: dict[str, Any], keys: list[str | int], report: Report) -> None:
    if "impossible" in entry:
        extra = sorted(set(entry) & {"do", "result", "next", "cases", "violation"})
        if extra:
            problem = f"impossible cell: expected no action, got {', '.join(extra)}"
            report(keys, problem, "remove one of both")
        return
    cases = entry.get("cases")
    if cases is None:
        return
    for key in ("do", "next", "result"):
        if key in entry:
            report([*keys, key], "not allowed with 'cases'", "write it in each case")
    if "when" in cases[-1] or not all("when" in case for case in cases[:-1]):
        problem = "wrong condition: expected 'when' in every case except the last"
        report([*keys, "cases"], problem, "add or remove 'when'")


def _check_errata(node: Any, keys: list[str | int], errata: frozenset[str], report: Report) -> None:
    """Checks that every referenced erratum exists."""
    if isinstance(node, dict):
        named = [*node.get("rests_on", ()), *([node["violation"]] if "violation" in node else [])]
        for name in named:
            if name not in errata:
                problem = f"no erratum '{name}'"
                report(keys, problem, "add it to spec/errata.yaml, or fix the name")
        for key, value in node.items():
            _check_errata(value, [*keys, key], errata, report)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            _check_errata(value, [*keys, index], errata, report)


def _check_phrases(content: dict[str, Any], report: Report) -> None:
    """Checks that a phrase uses only events and earlier phrases, so that none contains itself."""
    for name, side in content.items():
        above: set[str] = set()
        for phrase, steps in side["phrases"].items():
            for used in _used(steps):
                if used in side["phrases"] and used not in above:
                    problem = f"'{used}' is not a phrase above this one"
                    report([name, "phrases", phrase], problem, "move it up, or fix the name")
            above.add(phrase)


def _used(steps: list[Any]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, dict):
            yield from _used(step["steps"])
        else:
            yield step


Problem = tuple[str, str | None, str, str]  # state, event, problem, hint


def side_problems(side: Side) -> list[Problem]:
    """Returns the faults in the state machine of one side."""
    problems: list[Problem] = []
    for cell in side.possible:
        for case in cell.cases:
            for problem, hint in _case_problems(side, cell.state, cell.event, case):
                problems.append((cell.state, cell.event, problem, hint))
    return problems or [*_path_problems(side)]


def _case_problems(side: Side, state: str, event: str, case: Case) -> Iterator[tuple[str, str]]:
    definition = side.events[event]
    carried = {definition.argument, "errno" if definition.errno else None}
    known, calls = ACTIONS[side.name], PEER_CALLS[side.name]
    for action in case.do:
        if action not in known:
            yield f"the {side.name} cannot '{action}'", f"use one of {', '.join(known)}"
        elif _READS.get(action) not in carried | {None}:
            yield f"'{action}' needs {_READS[action]}, which '{event}' does not carry", "change it"
    if len(set(case.do)) != len(case.do):
        yield "an action is a duplicate", "remove one"
    if (case.result is not None) != (definition.call in _RETURNING):
        yield (
            f"'{event}' returns {'a value' if case.result is None else 'nothing'}",
            "fix 'result'",
        )
    if case.result == "errno" and not definition.errno:
        yield f"'{event}' carries no errno", "return 0 or EINVAL"
    made = [action for action in case.do if action in calls]
    if state in side.terminal:
        if case.next != state:
            yield f"'{state}' is terminal and cannot be left", "remove 'next'"
        if made:
            yield f"'{state}' is terminal and calls nothing", f"remove '{made[0]}'"
    if side.name == "producer":
        if made and event != "step":
            yield f"'{event}' calls '{made[0]}' synchronously", "move it to 'step'"
        if len(made) > 1:
            yield "two handler calls at once", "keep one"


def _path_problems(side: Side) -> Iterator[Problem]:
    after: dict[str, set[str]] = {state: set() for state in side.states}
    for cell in side.possible:
        after[cell.state] |= {case.next for case in cell.cases}
    reached = _closure({side.start}, after)
    for state in side.states:
        if state not in reached:
            yield state, None, f"'{state}' cannot be reached from '{side.start}'", "add a way to it"
        elif not _closure({state}, after) & set(side.terminal):
            yield state, None, f"no path from '{state}' to the end", "add a way out"


def _closure(start: set[str], after: dict[str, set[str]]) -> set[str]:
    found, fresh = set(start), set(start)
    while fresh:
        fresh = {state for known in fresh for state in after[known]} - found
        found |= fresh
    return found


def _check_scenarios(table: AsyncTable, side: Side, report: Report) -> None:
    """Checks that scenarios can happen, end, have unique names, and state if a rule is broken."""
    scenarios = table.scenarios[side.name]
    try:
        names = {scenario.name: -1 for scenario in sweeps(table, side)}
    except (NotPossibleError, KeyError) as problem:
        report([side.name, "reach"], str(problem), "fix 'reach', or the table")
        return
    for index, scenario in enumerate(scenarios.scenarios):
        keys: KeyPath = [side.name, "scenarios", index]
        if scenario.name in names:
            report(keys, f"'{scenario.name}' is a duplicate", "rename one; sweeps have names, too")
        names[scenario.name] = index
        try:
            runner = run_scenario(table, side, scenario)
        except NotPossibleError as problem:
            report(keys, str(problem), "fix the scenario, or the table")
            continue
        if runner.rule_broken != scenario.hostile:
            hint = "add 'hostile: true'" if runner.rule_broken else "remove 'hostile'"
            report(keys, f"a rule is {'' if runner.rule_broken else 'not '}broken", hint)
