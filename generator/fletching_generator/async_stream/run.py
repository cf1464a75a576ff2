"""Runs the async table: applies an event to a configuration and returns its effects."""

from __future__ import annotations

from .actions import ACTIONS
from .configuration import CONDITIONS, EINVAL, NEEDS, Arguments, Config, Effects
from .table import Case, Cell, Side


class NotPossibleError(Exception):
    """The event cannot happen here; the message says why."""


def enabled(side: Side, config: Config, event: str) -> bool:
    needs = side.events[event].needs
    cell = side.cells[config.state, event]
    return not cell.impossible and (needs is None or NEEDS[needs](config))


def choose(cell: Cell, config: Config) -> Case:
    return next(case for case in cell.cases if case.when is None or CONDITIONS[case.when](config))


def run(
    side: Side, config: Config, event: str, arguments: Arguments
) -> tuple[Config, Effects, Case]:
    """Runs an event. Raises NotPossibleError if the table or the event's needs exclude it."""
    cell = side.cells[config.state, event]
    if cell.impossible:
        raise NotPossibleError(f"{event} is impossible in {config.state}: {cell.impossible}")
    needs = side.events[event].needs
    if needs is not None and not NEEDS[needs](config):
        raise NotPossibleError(f"{event} cannot happen in {config.state}: it needs that {needs}")
    case = choose(cell, config)
    return *apply(side, case, surroundings(config, event), arguments), case


def apply(side: Side, case: Case, config: Config, arguments: Arguments) -> tuple[Config, Effects]:
    effects = Effects()
    for action in case.do:
        config = ACTIONS[side.name][action](config, arguments, effects)
    if case.result is not None:
        effects.result = {"0": 0, "EINVAL": EINVAL, "errno": arguments.errno}[case.result]
    return config._replace(state=case.next), effects


def surroundings(config: Config, event: str) -> Config:
    """Returns the configuration after the event's effect on the source or the peer's producer."""
    match event:
        case "schema_ready":
            return config._replace(schema_given=True)
        case "batch_ready":
            return config._replace(given=config.given + 1)
        case "end_reached" | "failure":
            return config._replace(source_finished=True)
        case "on_task" | "on_task_refused" | "overlap":
            return config._replace(arrived=config.arrived + 1)
        case _:
            return config


def default_arguments(side: Side, config: Config, event: str) -> Arguments:
    """Returns the default task and numbers of an event."""
    task = 0
    match side.events[event].needs:
        case "a task is open":
            task = config.open[0] if config.open else 0
        case "a task was extracted":
            task = config.extracted or 0
        case "a task is queued":
            task = config.queue[0] if config.queue else 0
        case "an extraction is running":
            task = config.running[0] if config.running else 0
    if event == "batch_ready":
        task = config.given
    elif event in ("on_task", "on_task_refused", "overlap"):
        task = config.arrived
    errno = 0 if event == "on_error_foreign_code" else 5 if side.events[event].errno else 0
    n = {"request": 1, "request_invalid": 0}.get(event, 0)
    return Arguments(n=n, task=task, errno=errno)
