"""The configuration of one side of the async stream, and the conditions of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

EIO, EINVAL = 5, 22
INT64_MAX = 2**63 - 1


class Config(NamedTuple):
    """One side: its state, its variables, and the known part of its surroundings."""

    state: str
    demand: int = 0
    # Producer.
    ready: tuple[int, ...] = ()  # batch numbers, in the order of the source
    open: tuple[int, ...] = ()  # open tasks, by batch number
    handed: int | str | None = None  # 3 or "schema": the argument of the running handler call
    end_marked: bool = False
    failure: int = 0
    holds_schema: bool = False
    # Source of a producer.
    schema_given: bool = False
    given: int = 0  # number of batches
    source_finished: bool = False
    # Consumer.
    unsent: int = 0
    queue: tuple[int, ...] = ()
    running: tuple[int, ...] = ()  # extractions
    arrived: int = 0  # number of tasks that have arrived, including rejected ones
    # Both.
    extracted: int | None = None  # the last extracted task


@dataclass(frozen=True)
class Arguments:
    """The values of an event."""

    n: int = 0
    task: int = 0
    errno: int = 0


@dataclass
class Effects:
    """The visible effects of one event."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    notifications: list[dict[str, Any]] = field(default_factory=list)  # to the application
    fates: list[tuple[int | str, str]] = field(default_factory=list)  # (3, "extracted")
    result: int | None = None
    holds: bool = False  # the event's call, a release, does not return yet
    lets_return: bool = False  # a held release returns


CONDITIONS: Mapping[str, Callable[[Config], bool]] = {
    "demand > 0 and ready > 0": lambda c: c.demand > 0 and bool(c.ready),
    "ready = 0 and end marked": lambda c: not c.ready and c.end_marked,
    "open = 0": lambda c: not c.open,
    "unsent > 0": lambda c: c.unsent > 0,
    "demand > 0": lambda c: c.demand > 0,
    "running = 0": lambda c: not c.running,
    "running = 1": lambda c: len(c.running) == 1,
}

NEEDS: Mapping[str, Callable[[Config], bool]] = {
    "a task is open": lambda c: bool(c.open),
    "a task was extracted": lambda c: c.extracted is not None,
    "a task is queued": lambda c: bool(c.queue),
    "an extraction is running": lambda c: bool(c.running),
    "demand > 0": lambda c: c.demand > 0,
    "the source has not begun": lambda c: not c.schema_given and not c.source_finished,
    "the source is running": lambda c: c.schema_given and not c.source_finished,
    "the source has not finished": lambda c: not c.source_finished,
}
