"""Traces: the effects of a scenario's events, computed from the table, as data for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .configuration import Arguments, Config, Effects
from .run import NotPossibleError, default_arguments, enabled, run
from .table import AsyncTable, Case, Scenario, Side, SideName

HANDLER_CALL_STATES = ("in_schema", "in_task", "in_end", "stopping", "error_in_call")
LAST_CALL_STATES = ("in_error", "in_release")
PLACED = ("overlap", "release_inside")  # events that depend on the call inside which they happen
_FINISH_LIMIT = 1000


@dataclass
class Runner:
    """The state of a running scenario."""

    table: AsyncTable
    side: Side
    hostile: bool
    config: Config = field(init=False)
    steps: list[dict[str, Any]] = field(default_factory=list)
    taken: list[tuple[str, str, Case]] = field(default_factory=list)  # state, event, case
    fates: dict[int | str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    codes: list[int] = field(default_factory=list)  # of on_error calls, or of notified errors
    running_call: str | None = None  # a producer's handler call
    rule_broken: bool = False  # by the other side

    def __post_init__(self) -> None:
        self.config = Config(self.side.start)

    def step(self, text: str) -> None:
        """Runs a step. Raises NotPossibleError if the step is not possible."""
        words = text.split()
        place = tuple(words[-2:]) if len(words) > 2 and words[-2] in ("within", "beside") else ()
        event, *numbers = words[: len(words) - len(place)]
        if event == "finish":
            self.finish()
            return
        if event not in self.side.events:
            raise NotPossibleError(
                f"unknown event '{event}'; use one of {', '.join(self.side.events)}"
            )
        self.apply(event, self._arguments(event, [int(n) for n in numbers]), *place)

    def apply(
        self, event: str, arguments: Arguments, how: str | None = None, call: str | None = None
    ) -> None:
        if how is None and self.running_call and not event.startswith("returns"):
            inside = self.side.events[event].by == "peer"
            how, call = "within" if inside else "beside", self.running_call
        self._check_place(event, how, call)
        before = self.config
        self.config, effects, case = run(self.side, before, event, arguments)
        self.taken.append((before.state, event, case))
        self.rule_broken = self.rule_broken or case.violation is not None
        self.steps.append(self._describe(event, arguments, how, call, effects))
        self._account(event, arguments, effects)

    def finish(self) -> None:
        """Ends the stream with as few steps as possible."""
        for _ in range(_FINISH_LIMIT):
            if self.config.state in self.side.terminal:
                return
            event = _way_out(self.side, self.config)
            self.apply(event, default_arguments(self.side, self.config, event))
        raise NotPossibleError(f"no way out of {self.config.state}")

    def _arguments(self, event: str, numbers: list[int]) -> Arguments:
        """Parses the numbers of a step: n, the task, the errno value, or task and errno value."""
        known = default_arguments(self.side, self.config, event)
        definition = self.side.events[event]
        names: list[str] = []
        if definition.argument in ("n", "task"):
            names.append(definition.argument)
        if definition.errno:
            names.append("errno")
        if len(numbers) == 1 and len(names) == 2:
            names = ["errno"]
        if len(numbers) > len(names):
            raise NotPossibleError(f"{event} takes {len(names)} numbers")
        given = dict(zip(names, numbers, strict=False))
        return replace(known, **given) if given else known

    def _check_place(self, event: str, how: str | None, call: str | None) -> None:
        if how is None or call is None:
            if event in PLACED:
                raise NotPossibleError(f"{event} must name the call in which it happens")
            return
        made = self.side.events[event].call
        allowed = self.table.inside.get(call)
        if how == "within" and allowed is not None and made is not None and made not in allowed:
            if not self.hostile:
                raise NotPossibleError(f"{made} is not allowed within {call}; say 'hostile: true'")
            self.rule_broken = True
        if self.side.name == "producer" and call != self.running_call:
            raise NotPossibleError(f"{call} is not running, but {self.running_call}")

    def _describe(
        self, event: str, a: Arguments, how: str | None, call: str | None, effects: Effects
    ) -> dict[str, Any]:
        definition = self.side.events[event]
        step: dict[str, Any] = {"event": event}
        if definition.argument == "n":
            step["n"] = a.n
        elif definition.argument in ("task", "batch"):
            step[definition.argument] = a.task
        elif definition.argument == "call":
            step["call"] = self.running_call
        if definition.errno:
            step["errno"] = a.errno
        if how is not None:
            step[how] = call
        if effects.calls:
            step["calls"] = effects.calls
        if effects.notifications:
            step["notifications"] = effects.notifications
        if effects.result is not None:
            step["result"] = effects.result
        if effects.holds:
            step["returns"] = False
        if effects.lets_return:
            step["then_returns"] = "release"
        step["state"] = self.config.state
        return step

    def _account(self, event: str, arguments: Arguments, effects: Effects) -> None:
        if event.startswith("returns"):
            self.running_call = None
        for call in effects.calls:
            self.calls[self._spell(call)] += 1
            if self.side.name == "producer":
                self.running_call = call["call"]
            if call["call"] == "on_error":
                self.codes.append(call["code"])
        self.codes += [n["code"] for n in effects.notifications if n["notify"] == "error"]
        if self.side.events[event].call in ("on_schema", "on_next_task") and effects.result:
            refused = arguments.task if self.side.events[event].argument == "task" else None
            if refused is not None:
                self.fates[refused] = "refused"
            elif event.startswith("on_schema"):
                self.fates.setdefault("schema", "refused")
        for thing, fate in effects.fates:
            if thing in self.fates:
                raise NotPossibleError(f"{thing} is {self.fates[thing]} already and becomes {fate}")
            self.fates[thing] = fate

    @staticmethod
    def _spell(call: dict[str, Any]) -> str:
        return "end" if call["call"] == "on_next_task" and call["task"] is None else call["call"]


def _way_out(side: Side, config: Config) -> str:
    wishes = _producer_wishes(config) if side.name == "producer" else _consumer_wishes(config)
    return next(event for event in wishes if enabled(side, config, event))


def _producer_wishes(config: Config) -> Iterator[str]:
    if config.state in HANDLER_CALL_STATES:
        yield "returns_ok"
    elif config.state in LAST_CALL_STATES:
        yield "returns"
    if config.open:
        yield "extract"
    if config.state == "created":
        yield "schema_ready"
    if config.state == "streaming" and not config.ready and not config.end_marked:
        yield "end_reached"
    if config.state == "streaming" and config.ready and not config.demand:
        yield "cancel"
    yield "step"


def _consumer_wishes(config: Config) -> Iterator[str]:
    if config.running:
        yield "extract_ok"
    if config.queue:
        yield "take"
    if config.state in ("created", "cancelled_early"):
        yield "on_schema"
    if config.state == "streaming":
        yield "on_end"
    yield "release"


def run_scenario(table: AsyncTable, side: Side, scenario: Scenario) -> Runner:
    """Runs a scenario. Raises NotPossibleError with the step's number if the table excludes it."""
    runner = Runner(table, side, scenario.hostile)
    for number, text in enumerate(scenario.steps, start=1):
        try:
            runner.step(text)
        except NotPossibleError as problem:
            raise NotPossibleError(f"step {number}, '{text}': {problem}") from None
    if runner.config.state not in side.terminal:
        raise NotPossibleError(f"ends in {runner.config.state}; add the step 'finish'")
    return runner


def sweeps(table: AsyncTable, side: Side) -> Iterator[Scenario]:
    """Yields a scenario for every possible event in every state.

    Events that happen inside a certain call are covered only by the written scenarios.
    """
    for (state, event), cell in side.cells.items():
        if not cell.impossible and event not in PLACED:
            yield _sweep(table, side, state, event)


def _sweep(table: AsyncTable, side: Side, state: str, event: str) -> Scenario:
    for way in table.scenarios[side.name].reach[state]:
        runner = Runner(table, side, hostile=True)
        for text in way:
            runner.step(text)
        if runner.config.state != state:
            raise NotPossibleError(f"reach.{state} ends in {runner.config.state}")
        if enabled(side, runner.config, event):
            name = f"{event}-in-{state}".replace("_", "-")
            return Scenario(name, f"{event} in the state {state}.", True, (*way, event, "finish"))
    raise NotPossibleError(f"no way in reach.{state} makes {event} possible")


def trace(table: AsyncTable, side: Side, scenario: Scenario) -> dict[str, Any]:
    """Returns one trace as data for JSON."""
    runner = run_scenario(table, side, scenario)
    return {
        "name": scenario.name,
        "doc": scenario.doc,
        "hostile": runner.rule_broken,
        "steps": runner.steps,
        "finally": _final(runner),
    }


def _final(runner: Runner) -> dict[str, Any]:
    calls, fates = runner.calls, runner.fates
    batches = [thing for thing in fates if isinstance(thing, int)]
    final: dict[str, Any] = {"state": runner.config.state}
    if runner.side.name == "producer":
        final["calls"] = {
            "on_schema": calls["on_schema"],
            "on_next_task": calls["on_next_task"],
            "end": calls["end"],
            "on_error": calls["on_error"],
            "release": calls["release"],
        }
    else:
        final["calls"] = {
            "request": calls["request"],
            "cancel": calls["cancel"],
            "extract_data": calls["extract_data"],
        }
    final["code"] = runner.codes[0] if runner.codes else None
    final["schema"] = fates.get("schema", "none")
    final["tasks"] = [fates[number] for number in sorted(batches)]
    return final


def side_traces(table: AsyncTable, name: SideName) -> list[dict[str, Any]]:
    side = table.producer if name == "producer" else table.consumer
    scenarios = (*table.scenarios[name].scenarios, *sweeps(table, side))
    return [trace(table, side, scenario) for scenario in scenarios]
