# ruff: noqa: PLR0911, PLR0912 -- one branch for each event, or for each reason
"""The obligations of an async stream's producer, based on its history and not on the table.

`Facts` is the history so far, and `after` adds an event to it. Each rule is one sentence of the
protocol, as a function of the facts before, the event, and its effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

EINVAL = 22
INT64_MAX = 2**63 - 1
RETURNS = ("returns_ok", "returns_error", "returns")


@dataclass(frozen=True)
class Observation:
    """One event and its effects."""

    event: str
    n: int = 0
    task: int = 0
    errno: int = 0
    calls: tuple[tuple[Any, ...], ...] = ()  # (("on_next_task", 3),), (("on_error", 5),)
    notifications: tuple[tuple[Any, ...], ...] = ()
    result: int | None = None
    state: str = ""
    holds: bool = False
    lets_return: bool = False


@dataclass(frozen=True)
class Facts:
    schema_given: bool = False
    source: str = "running"  # "ended", "failed"
    running: str | None = None  # the handler call that has not returned: "task", "end", ...
    handed: int | None = None
    schema_called: bool = False
    asked: int = 0
    delivered: int = 0
    waiting: tuple[int, ...] = ()  # batches that were given and not delivered
    given: int = 0
    open: tuple[int, ...] = ()  # tasks that were delivered and not extracted
    extracted: bool = False  # a task was extracted
    over: str | None = None  # "end", "error", "cancel", "refused": how the stream ended
    errno: int = 0
    notified: bool = False  # by on_error
    release_called: bool = False
    released: bool = False


def after(f: Facts, s: Observation) -> Facts:
    """Returns the facts after an event, including its calls even if they are wrong."""
    f = _after_event(f, s)
    for call, *rest in s.calls:
        match call:
            case "on_schema":
                f = replace(f, schema_called=True, running="schema")
            case "on_next_task" if rest[0] is None:
                f = replace(f, running="end", over=f.over or "end")
            case "on_next_task":
                waiting = tuple(batch for batch in f.waiting if batch != rest[0])
                f = replace(
                    f,
                    running="task",
                    handed=rest[0],
                    waiting=waiting,
                    open=(*f.open, rest[0]),
                    delivered=f.delivered + 1,
                )
            case "on_error":
                f = replace(f, running="on_error", notified=True)
            case "release":
                f = replace(f, running="release", release_called=True)
    return f


def _after_event(f: Facts, s: Observation) -> Facts:
    match s.event:
        case "schema_ready":
            return replace(f, schema_given=True)
        case "batch_ready":
            return replace(
                f, given=f.given + 1, waiting=f.waiting if f.over else (*f.waiting, s.task)
            )
        case "end_reached":
            return replace(f, source="ended")
        case "failure":
            return _over(replace(f, source="failed"), "error", s.errno)
        case "request":
            return f if f.over else replace(f, asked=min(f.asked + s.n, INT64_MAX))
        case "request_invalid":
            return _over(f, "error", EINVAL)
        case "cancel":
            return _over(f, "cancel")
        case "extract" | "extract_drop":
            return _extracted(f, s.task)
        case "extract_fails":
            return _over(_extracted(f, s.task), "error", s.errno)
        case "returns_error":
            rest = tuple(task for task in f.open if task != f.handed)
            return replace(f, running=None, handed=None, open=rest, over="refused", waiting=())
        case "returns_ok":
            return replace(f, running=None, handed=None)
        case "returns":
            return replace(f, running=None, released=f.running == "release")
        case _:
            return f


def _over(f: Facts, why: str, errno: int = 0) -> Facts:
    return f if f.over else replace(f, over=why, errno=errno, waiting=())


def _extracted(f: Facts, task: int) -> Facts:
    rest = tuple(t for t in f.open if t != task)
    handed = None if f.handed == task else f.handed
    return replace(f, open=rest, handed=handed, extracted=True)


def fates(f: Facts, s: Observation) -> list[tuple[int | str, str]]:
    """Returns the fates of schema and batches due to this event."""
    found: list[tuple[int | str, str]] = []
    match s.event:
        case "extract" | "extract_drop" | "extract_fails":
            fate = {"extract": "extracted", "extract_drop": "dropped", "extract_fails": "failed"}
            found.append((s.task, fate[s.event]))
        case "returns_ok" if f.running == "schema":
            found.append(("schema", "taken"))
        case "returns_error" if f.running == "schema":
            found.append(("schema", "discarded"))
        case "returns_error" if f.handed is not None:
            found.append((f.handed, "discarded"))
        case "schema_ready" if f.over:
            found.append(("schema", "discarded"))
        case "batch_ready" if f.over:
            found.append((s.task, "discarded"))
    now = _after_event(f, s)
    if now.over and not f.over:
        found += [(batch, "discarded") for batch in f.waiting]
        if f.schema_given and not f.schema_called:
            found.append(("schema", "discarded"))
    return found


def due(f: Facts) -> tuple[Any, ...] | None:
    """Returns the handler call that the next step must make."""
    if f.running or f.release_called:
        return None
    if f.over == "error" and not f.notified:
        return ("on_error", f.errno)
    if f.over:
        return None if f.open else ("release",)
    if not f.schema_called:
        return ("on_schema",) if f.schema_given else None
    if f.waiting:
        return ("on_next_task", f.waiting[0]) if f.asked > f.delivered else None
    return ("on_next_task", None) if f.source == "ended" else None


def possible(f: Facts, event: str) -> bool:
    """Returns whether the event is possible, including violations."""
    match event:
        case "extract" | "extract_drop" | "extract_fails":
            return bool(f.open)
        case "extract_again":
            return f.extracted
        case "returns_ok" | "returns_error":
            return f.running in ("schema", "task", "end")
        case "returns":
            return f.running in ("on_error", "release")
        case "schema_ready":
            return f.source == "running" and not f.schema_given
        case "batch_ready" | "end_reached":
            return f.source == "running" and f.schema_given
        case "failure":
            return f.source == "running"
        case _:
            return True


def state_name(f: Facts) -> str:
    """Returns the state whose description matches the facts."""
    if f.released:
        return "released"
    if f.running in ("end", "on_error", "release"):
        return {"end": "in_end", "on_error": "in_error", "release": "in_release"}[f.running]
    if f.running:
        unless = {"schema": "in_schema", "task": "in_task"}[f.running]
        return {"error": "error_in_call", "cancel": "stopping"}.get(f.over or "", unless)
    if f.over == "error":
        return "failed" if f.notified else "error_pending"
    if f.over:
        return {"end": "ended", "cancel": "cancelled", "refused": "refused"}[f.over]
    if f.schema_called:
        return "streaming"
    return "schema" if f.schema_given else "created"


def _made(s: Observation, name: str) -> list[tuple[Any, ...]]:
    return [call for call in s.calls if call[0] == name]


def _tasks(s: Observation) -> list[int]:
    return [call[1] for call in _made(s, "on_next_task") if call[1] is not None]


Rule = Callable[[Facts, Observation], bool]

RULES: dict[str, Rule] = {
    "handler calls are made in steps only": lambda f, s: not s.calls or s.event == "step",
    "never two handler calls at once": lambda f, s: (
        len(s.calls) + (f.running is not None and s.event not in RETURNS) <= 1 or not s.calls
    ),
    "on_schema first and once, unless on_error or an early cancel precedes it": lambda f, s: (
        not (_made(s, "on_schema") and f.schema_called)
        and not (_made(s, "on_next_task") and not f.schema_called)
    ),
    "at most the demanded number of tasks": lambda f, s: len(_tasks(s)) <= f.asked - f.delivered,
    "tasks in the order of the batches": lambda f, s: (
        _tasks(s) == list(f.waiting[: len(_tasks(s))])
    ),
    "nothing but release once the stream is over, and on_error": lambda f, s: (
        not f.over or not (_made(s, "on_schema") or _made(s, "on_next_task"))
    ),
    "on_error only after an error, once, with its code": lambda f, s: all(
        f.over == "error" and not f.notified and code == f.errno for _, code in _made(s, "on_error")
    ),
    "a cancelled or refused stream has no on_error": lambda f, s: (
        f.over not in ("cancel", "refused", "end") or not _made(s, "on_error")
    ),
    "release once and last": lambda f, s: not (f.release_called and s.calls),
    "release only when the stream is over": lambda f, s: not _made(s, "release") or bool(f.over),
    "release is held back until every task is extracted": lambda f, s: (
        not (_made(s, "release") and f.open)
    ),
    "what is due is called in the next step, and nothing else": lambda f, s: (
        s.event != "step" or list(s.calls) == ([d] if (d := due(f)) else [])
    ),
    "extract_data returns 0, or the error, or EINVAL the second time": lambda f, s: (
        s.result
        == {"extract": 0, "extract_drop": 0, "extract_fails": s.errno, "extract_again": EINVAL}.get(
            s.event
        )
    ),
    "the state is what its description says": lambda f, s: s.state == state_name(after(f, s)),
}


def broken(f: Facts, s: Observation) -> list[str]:
    """Returns the names of the broken rules."""
    return [name for name, rule in RULES.items() if not rule(f, s)]
