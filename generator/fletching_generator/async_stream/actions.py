"""The actions of the async table, as functions on frozen data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .configuration import EINVAL, EIO, INT64_MAX, Arguments, Config, Effects
from .table import SideName

Action = Callable[[Config, Arguments, Effects], Config]


def _add(a: int, b: int) -> int:
    return min(a + b, INT64_MAX)


def _add_demand(c: Config, a: Arguments, _: Effects) -> Config:
    return c._replace(demand=_add(c.demand, a.n))


def _use_demand(c: Config, _a: Arguments, _: Effects) -> Config:
    return c._replace(demand=c.demand - 1)


# --- Producer ----------------------------------------------------------------------------------


def _note(errno: int | None) -> Action:
    return lambda c, a, _: c._replace(failure=a.errno if errno is None else errno)


def _discard(c: Config, _: Arguments, e: Effects) -> Config:
    """Discards all items that the source has provided and that were not handed over."""
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


# --- Consumer ----------------------------------------------------------------------------------


def _notify(what: str, errno: int | None = None) -> Action:
    def notify(c: Config, a: Arguments, e: Effects) -> Config:
        notification: dict[str, Any] = {"notify": what}
        if what == "task":
            notification["task"] = a.task
        elif what == "error":
            notification["code"] = a.errno if errno is None else errno
        e.notifications.append(notification)
        return c

    return notify


def _schema(fate: str) -> Action:
    def schema(c: Config, _: Arguments, e: Effects) -> Config:
        e.fates.append(("schema", fate))
        return c

    return schema


def _add_unsent(c: Config, a: Arguments, _: Effects) -> Config:
    return c._replace(unsent=_add(c.unsent, a.n))


def _request_unsent(c: Config, _: Arguments, e: Effects) -> Config:
    e.calls.append({"call": "request", "n": c.unsent})
    return c._replace(demand=_add(c.demand, c.unsent), unsent=0)


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
        "return data": _settle("extracted"),
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
        "add unsent": _add_unsent,
        "add demand": _add_demand,
        "use demand": _use_demand,
        "request unsent": _request_unsent,
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
        "notify schema": _notify("schema"),
        "notify task": _notify("task"),
        "notify end": _notify("end"),
        "notify errno": _notify("error"),
        "notify EINVAL": _notify("error", EINVAL),
        "notify EIO": _notify("error", EIO),
        "hold release": _hold_release,
        "let release return": _let_release_return,
    },
}

# The actions that call the other side. A terminal state has none of them.
HANDLER_CALLS = ("on_schema", "on_next_task", "on_next_task NULL", "on_error", "release")
PEER_CALLS = {
    "producer": frozenset(HANDLER_CALLS),
    "consumer": frozenset(
        {"request unsent", "request n", "cancel", "extract oldest", "extract queue"}
        | {"drop task", "drop queue", "drop oldest"}
    ),
}
