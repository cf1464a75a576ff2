"""Walks through all steps of a side, within bounds, and checks the rules of its protocol."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import async_consumer_rules
import async_producer_rules
from async_producer_rules import Observation

from fletching_generator.async_stream.configuration import Arguments, Config, Effects
from fletching_generator.async_stream.run import (
    apply,
    choose,
    default_arguments,
    enabled,
    surroundings,
)
from fletching_generator.async_stream.table import Case, Side

# How often an event that increases a number may happen on one path.
MOST = {"producer": {"asked": 2, "given": 2}, "consumer": {"asked": 2, "arrived": 3}}


@dataclass(frozen=True)
class Place:
    config: Config
    facts: Any


@dataclass(frozen=True)
class Walked:
    """One step of the walk."""

    place: Place
    event: str
    arguments: Arguments
    case: Case | None
    then: Place
    broken: tuple[str, ...]  # the names of broken rules


def rules(side: Side) -> ModuleType:
    return async_producer_rules if side.name == "producer" else async_consumer_rules


def start(side: Side) -> Place:
    return Place(Config(side.start), rules(side).Facts())


def events(side: Side, place: Place) -> Iterator[tuple[str, Arguments]]:
    """Yields the possible next events, within the bounds."""
    config, facts, most = place.config, place.facts, MOST[side.name]
    for event in side.events:
        if not enabled(side, config, event):
            continue
        known = default_arguments(side, config, event)
        requested = facts.asked + getattr(facts, "unsent", 0)  # a consumer's before on_schema
        if event == "request" and requested >= most["asked"]:
            continue
        if event == "batch_ready" and facts.given >= most["given"]:
            continue
        if event in ("on_task", "on_task_refused", "overlap") and facts.arrived >= most["arrived"]:
            continue
        if side.events[event].errno and event != "on_error_foreign_code":
            known = replace(known, errno=12)  # neither EIO nor EINVAL
        yield event, known
        tasks = {"a task is open": config.open, "an extraction is running": config.running}
        for task in tasks.get(side.events[event].needs or "", ())[1:]:
            yield event, replace(known, task=task)


def seen(event: str, a: Arguments, effects: Effects, config: Config) -> Observation:
    return Observation(
        event=event,
        n=a.n,
        task=a.task,
        errno=a.errno,
        calls=tuple(tuple(call.values()) for call in effects.calls),
        notifications=tuple(tuple(n.values()) for n in effects.notifications),
        result=effects.result,
        state=config.state,
        holds=effects.holds,
        lets_return=effects.lets_return,
    )


def step(side: Side, place: Place, event: str, a: Arguments, case: Case) -> tuple[Place, list[str]]:
    """Returns the place after the event, and the rules broken by it."""
    config, effects = apply(side, case, surroundings(place.config, event), a)
    what = seen(event, a, effects, config)
    module = rules(side)
    broken = module.broken(place.facts, what)
    if sorted(map(str, effects.fates)) != sorted(map(str, module.fates(place.facts, what))):
        broken.append("every batch and the schema are given or freed once")
    return Place(config, module.after(place.facts, what)), broken


def misjudged(side: Side, place: Place) -> str | None:
    """Returns an event for which the table and the rules disagree whether it is possible."""
    possible = rules(side).possible
    return next(
        (
            event
            for event in side.events
            if enabled(side, place.config, event) != possible(place.facts, event)
        ),
        None,
    )


def walk(side: Side, places: list[Place], depth: int | None = None) -> Iterator[Walked]:
    """Yields every step from these places, breadth first, visiting each place once."""
    known = set(places)
    fresh = deque((place, 0) for place in places)
    while fresh:
        place, steps = fresh.popleft()
        if wrong := misjudged(side, place):
            yield Walked(place, wrong, Arguments(), None, place, ("what can happen has a cell",))
            continue
        for event, arguments in events(side, place):
            case = choose(side.cells[place.config.state, event], place.config)
            try:
                then, broken = step(side, place, event, arguments, case)
            except (IndexError, KeyError, ValueError):  # a mutant may take a missing item
                then, broken = place, ["an action finds what it needs"]
            yield Walked(place, event, arguments, case, then, tuple(broken))
            if then not in known and (depth is None or steps + 1 < depth):
                known.add(then)
                fresh.append((then, steps + 1))
