"""What the words of the async table mean: its conditions and actions, on plain frozen data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .table import SideName

EIO, EINVAL = 5, 22
INT64_MAX = 2**63 - 1


class Config(NamedTuple):
    """Where one side stands: its state, its variables, and what is known of its surroundings."""

    state: str
    demand: int = 0
    # Of a producer.
    ready: tuple[int, ...] = ()  # batches by number, in the order in which the source gave them
    open: tuple[int, ...] = ()  # tasks, by the number of their batch
    handed: int | str | None = None  # 3 or "schema": handed over by the running handler call
    end_marked: bool = False
    failure: int = 0
    holds_schema: bool = False
    # Of a producer's source.
    schema_given: bool = False
    given: int = 0  # how many batches
    source_finished: bool = False
    # Of a consumer.
    wanted: int = 0
    queue: tuple[int, ...] = ()
    running: tuple[int, ...] = ()  # extractions
    arrived: int = 0  # how many tasks have come, refused ones too
    # Of both.
    extracted: int | None = None  # the last extracted task


@dataclass(frozen=True)
class Arguments:
    """What an event carries."""

    n: int = 0
    task: int = 0
    errno: int = 0


@dataclass
class Effects:
    """What can be seen of one event."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    tells: list[dict[str, Any]] = field(default_factory=list)  # to the application
    fates: list[tuple[int | str, str]] = field(default_factory=list)  # (3, "extracted")
    result: int | None = None
    holds: bool = False  # the event's own call, release, does not return yet
    lets_return: bool = False  # a release that was held returns


Action = Callable[[Config, Arguments, Effects], Config]

CONDITIONS: Mapping[str, Callable[[Config], bool]] = {
    "demand > 0 and ready > 0": lambda c: c.demand > 0 and bool(c.ready),
    "ready = 0 and end marked": lambda c: not c.ready and c.end_marked,
    "open = 0": lambda c: not c.open,
    "wanted > 0": lambda c: c.wanted > 0,
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


def _add(a: int, b: int) -> int:
    return min(a + b, INT64_MAX)


def _add_demand(c: Config, a: Arguments, _: Effects) -> Config:
    return c._replace(demand=_add(c.demand, a.n))


def _use_demand(c: Config, _a: Arguments, _: Effects) -> Config:
    return c._replace(demand=c.demand - 1)


# --- The producer's ----------------------------------------------------------------------------


def _note(errno: int | None) -> Action:
    return lambda c, a, _: c._replace(failure=a.errno if errno is None else errno)


def _discard(c: Config, _: Arguments, e: Effects) -> Config:
    """Everything that the source has given and that was not handed over."""
    e.fates += [(batch, "discarded") for batch in c.ready]
    if c.holds_schema:
        e.fates.append(("schema", "discarded"))
    return c._replace(ready=(), holds_schema=False)


def _settle(fate: str) -> Action:
    def settle(c: Config, a: Arguments, e: Effects) -> Config:
        e.fates.append((a.task, fate))
        rest = tuple(task for task in c.open if task != a.task)
        handed = None if c.handed == a.task else c.handed
        return c._replace(open=rest, handed=handed, extracted=a.task)

    return settle


def _hand_over(c: Config, _: Arguments, e: Effects) -> Config:
    if c.handed == "schema":
        e.fates.append(("schema", "taken"))
    return c._replace(handed=None)


def _take_back(c: Config, _: Arguments, e: Effects) -> Config:
    if c.handed is not None:
        e.fates.append((c.handed, "discarded"))
    rest = tuple(task for task in c.open if task != c.handed)
    return c._replace(open=rest, handed=None)


def _keep_schema(c: Config, _a: Arguments, _: Effects) -> Config:
    return c._replace(holds_schema=True)


def _reject_schema(c: Config, _: Arguments, e: Effects) -> Config:
    e.fates.append(("schema", "discarded"))
    return c


def _keep_batch(c: Config, a: Arguments, _: Effects) -> Config:
    return c._replace(ready=(*c.ready, a.task))


def _reject_batch(c: Config, a: Arguments, e: Effects) -> Config:
    e.fates.append((a.task, "discarded"))
    return c


def _mark_end(c: Config, _a: Arguments, _: Effects) -> Config:
    return c._replace(end_marked=True)


def _call_on_schema(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "on_schema"})
    return c._replace(handed="schema", holds_schema=False)


def _call_on_next_task(c: Config, _: Arguments, e: Effects) -> Config:
    task, *rest = c.ready
    e.calls.append({"call": "on_next_task", "task": task})
    return c._replace(ready=tuple(rest), open=(*c.open, task), handed=task)


def _call_on_next_task_null(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "on_next_task", "task": None})
    return c


def _call_on_error(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "on_error", "code": c.failure})
    return c


def _call_release(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "release"})
    return c


# --- The consumer's ----------------------------------------------------------------------------


def _tell(what: str, errno: int | None = None) -> Action:
    def tell(c: Config, a: Arguments, e: Effects) -> Config:
        told: dict[str, Any] = {"tell": what}
        if what == "task":
            told["task"] = a.task
        elif what == "error":
            told["code"] = a.errno if errno is None else errno
        e.tells.append(told)
        return c

    return tell


def _schema(fate: str) -> Action:
    def schema(c: Config, _: Arguments, e: Effects) -> Config:
        e.fates.append(("schema", fate))
        return c

    return schema


def _add_wanted(c: Config, a: Arguments, _: Effects) -> Config:
    return c._replace(wanted=_add(c.wanted, a.n))


def _request_wanted(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "request", "n": c.wanted})
    return c._replace(demand=_add(c.demand, c.wanted), wanted=0)


def _request_n(c: Config, a: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "request", "n": a.n})
    return c


def _cancel(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "cancel"})
    return c


def _extract(e: Effects, task: int, out: bool) -> None:
    e.calls.append({"call": "extract_data", "task": task, "out": out})


def _queue_task(c: Config, a: Arguments, _: Effects) -> Config:
    return c._replace(queue=(*c.queue, a.task))


def _drop_task(c: Config, a: Arguments, e: Effects) -> Config:
    _extract(e, a.task, out=False)
    e.fates.append((a.task, "dropped"))
    return c


def _drop_queue(c: Config, _: Arguments, e: Effects) -> Config:
    for task in c.queue:
        _drop_task(c, Arguments(task=task), e)
    return c._replace(queue=())


def _drop_oldest(c: Config, _: Arguments, e: Effects) -> Config:
    _drop_task(c, Arguments(task=c.queue[0]), e)
    return c._replace(queue=c.queue[1:])


def _extract_oldest(c: Config, _: Arguments, e: Effects) -> Config:
    task, *rest = c.queue
    _extract(e, task, out=True)
    return c._replace(queue=tuple(rest), running=(*c.running, task))


def _extract_queue(c: Config, _: Arguments, e: Effects) -> Config:
    for task in c.queue:
        _extract(e, task, out=True)
        e.fates.append((task, "extracted"))
    return c._replace(queue=())


def _finish(fate: str) -> Action:
    def finish(c: Config, a: Arguments, e: Effects) -> Config:
        e.fates.append((a.task, fate))
        return c._replace(running=tuple(task for task in c.running if task != a.task))

    return finish


def _hold_release(c: Config, _: Arguments, e: Effects) -> Config:
    e.holds = True
    return c


def _let_release_return(c: Config, _: Arguments, e: Effects) -> Config:
    e.lets_return = True
    return c


ACTIONS: Mapping[SideName, Mapping[str, Action]] = {
    "producer": {
        "add demand": _add_demand,
        "use demand": _use_demand,
        "note EINVAL": _note(EINVAL),
        "note errno": _note(None),
        "discard": _discard,
        "give data": _settle("extracted"),
        "drop data": _settle("dropped"),
        "lose data": _settle("failed"),
        "hand over": _hand_over,
        "take back": _take_back,
        "keep schema": _keep_schema,
        "reject schema": _reject_schema,
        "keep batch": _keep_batch,
        "reject batch": _reject_batch,
        "mark end": _mark_end,
        "on_schema": _call_on_schema,
        "on_next_task": _call_on_next_task,
        "on_next_task NULL": _call_on_next_task_null,
        "on_error": _call_on_error,
        "release": _call_release,
    },
    "consumer": {
        "add wanted": _add_wanted,
        "add demand": _add_demand,
        "use demand": _use_demand,
        "request wanted": _request_wanted,
        "request n": _request_n,
        "cancel": _cancel,
        "take schema": _schema("taken"),
        "drop schema": _schema("discarded"),
        "queue task": _queue_task,
        "drop task": _drop_task,
        "drop queue": _drop_queue,
        "drop oldest": _drop_oldest,
        "extract oldest": _extract_oldest,
        "extract queue": _extract_queue,
        "keep data": _finish("extracted"),
        "lose data": _finish("failed"),
        "tell schema": _tell("schema"),
        "tell task": _tell("task"),
        "tell end": _tell("end"),
        "tell errno": _tell("error"),
        "tell EINVAL": _tell("error", EINVAL),
        "tell EIO": _tell("error", EIO),
        "hold release": _hold_release,
        "let release return": _let_release_return,
    },
}

# The actions by which a side calls the other; a terminal state has none of them.
HANDLER_CALLS = ("on_schema", "on_next_task", "on_next_task NULL", "on_error", "release")
PEER_CALLS = {
    "producer": frozenset(HANDLER_CALLS),
    "consumer": frozenset(
        {"request wanted", "request n", "cancel", "extract oldest", "extract queue"}
        | {"drop task", "drop queue", "drop oldest"}
    ),
}
