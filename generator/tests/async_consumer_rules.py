# ruff: noqa: PLR0912 -- one branch for each event, or for each reason
"""The obligations of an async stream's consumer, based on its history and not on the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from async_producer_rules import EINVAL, INT64_MAX, Observation, Rule

EIO = 5
HANDED = ("on_schema", "on_schema_refused", "on_task", "on_task_refused", "on_end", "overlap")
RELEASES = ("release", "release_inside")
ERRORS = ("on_error", "on_error_foreign_code")
LOSSES = ("extract_fails", "extract_invalid")


@dataclass(frozen=True)
class Facts:
    unsent: int = 0  # before on_schema
    schema: bool = False  # on_schema was answered with 0
    asked: int = 0  # the remaining demand
    queue: tuple[int, ...] = ()
    running: tuple[int, ...] = ()  # extractions
    cancelled: bool = False  # by the application
    # How the producer, or a rejection by the consumer, ended the stream.
    over: str | None = None  # "end", "error", "refused"
    lost: bool = False  # an extraction failed, or was invalid, before the stream was over
    waiting: bool = False  # release has not returned
    released: bool = False
    arrived: int = 0

    @property
    def live(self) -> bool:
        """Whether the application may still get a new item."""
        return not (self.cancelled or self.over or self.lost or self.gone)

    @property
    def gone(self) -> bool:
        return self.waiting or self.released


def accepted(f: Facts, s: Observation) -> bool:
    """Returns whether the handler call is valid."""
    if s.event == "overlap" or f.over or f.gone:
        return False
    if s.event in ("on_schema", "on_schema_refused"):
        return not f.schema
    return f.schema and (s.event == "on_end" or f.asked > 0)


def answer(f: Facts, s: Observation) -> int | None:
    """Returns the required result of the handler call."""
    if s.event not in HANDED:
        return None
    if not accepted(f, s):
        return EINVAL
    return s.errno if s.event.endswith("_refused") else 0


def drops_queue(f: Facts, s: Observation) -> bool:
    """Returns whether queued tasks can no longer be taken."""
    if s.event == "cancel":
        return True
    ends = s.event in (*ERRORS, *RELEASES, *LOSSES)
    return f.live and (ends or bool(answer(f, s)))


def calls(f: Facts, s: Observation) -> list[tuple[Any, ...]]:
    """Returns the required calls of the producer, in order."""
    made: list[tuple[Any, ...]] = []
    if s.event == "on_schema" and accepted(f, s):
        if f.cancelled:
            made.append(("cancel",))
        elif f.unsent:
            made.append(("request", f.unsent))
    if s.event == "request" and f.schema and f.live:
        made.append(("request", s.n))
    if s.event in ("cancel", "extract_invalid") and f.schema and f.live:
        made.append(("cancel",))
    if s.event == "on_task" and accepted(f, s) and not f.live:
        made.append(("extract_data", s.task, False))
    if s.event in ("take", "drop"):
        made.append(("extract_data", f.queue[0], s.event == "take"))
    elif s.event in RELEASES and f.over == "end":
        made += [("extract_data", task, True) for task in f.queue]
    elif drops_queue(f, s):
        made += [("extract_data", task, False) for task in f.queue]
    return made


def notifications(f: Facts, s: Observation) -> list[tuple[Any, ...]]:
    """Returns the required notifications of the application."""
    if not f.live:
        return []
    returned = answer(f, s)
    if s.event in HANDED:
        if returned:
            return [("error", returned)]
        notified = {"on_schema": ("schema",), "on_task": ("task", s.task), "on_end": ("end",)}
        return [notified[s.event]]
    if s.event == "on_error":
        return [("error", s.errno)]
    return [("error", EIO)] if s.event in ("on_error_foreign_code", *RELEASES) else []


def after(f: Facts, s: Observation) -> Facts:
    ok = accepted(f, s)
    queue = () if drops_queue(f, s) or s.event in RELEASES else f.queue
    g = replace(f, queue=queue)
    match s.event:
        case "request":
            if f.live and not f.schema:
                g = replace(g, unsent=min(f.unsent + s.n, INT64_MAX))
            elif f.live:
                g = replace(g, asked=min(f.asked + s.n, INT64_MAX))
        case "cancel":
            g = replace(g, cancelled=f.cancelled or f.live)
        case "take":
            g = replace(g, queue=f.queue[1:], running=(*f.running, f.queue[0]))
        case "drop":
            g = replace(g, queue=f.queue[1:])
        case "extract_ok" | "extract_fails" | "extract_invalid":
            rest = tuple(task for task in f.running if task != s.task)
            over = f.waiting and not rest
            lost = f.lost or (s.event in LOSSES and f.live)
            g = replace(
                g,
                running=rest,
                lost=lost,
                waiting=f.waiting and not over,
                released=f.released or over,
            )
        case "on_schema" if ok:
            asked = 0 if f.cancelled else f.unsent
            g = replace(g, schema=True, asked=asked, unsent=0)
        case "on_task" if ok:
            g = replace(g, asked=f.asked - 1, queue=(*f.queue, s.task) if f.live else f.queue)
        case "on_end" if ok:
            g = replace(g, over="error" if f.lost else "end")
        case "on_error" | "on_error_foreign_code":
            g = replace(g, over=f.over or (None if f.gone else "error"))
        case "release":
            waits = bool(f.running) and not f.gone
            g = replace(
                g, waiting=f.waiting or waits, released=f.released or not (waits or f.waiting)
            )
        case "release_inside":
            g = replace(g, released=f.released or not f.waiting)
    if answer(f, s) and not f.over and not f.gone:
        g = replace(g, over="refused")
    if s.event in ("on_task", "on_task_refused", "overlap"):
        g = replace(g, arrived=f.arrived + 1)
    return g


def fates(f: Facts, s: Observation) -> list[tuple[int | str, str]]:
    found: list[tuple[int | str, str]] = []
    if s.event == "on_schema" and accepted(f, s):
        found.append(("schema", "discarded" if f.cancelled else "taken"))
    if s.event in ("extract_ok", *LOSSES):
        found.append((s.task, "extracted" if s.event == "extract_ok" else "failed"))
    for call in calls(f, s):
        if call[0] == "extract_data" and s.event != "take":
            found.append((call[1], "extracted" if call[2] else "dropped"))
    return found


def possible(f: Facts, event: str) -> bool:
    """Returns whether the event is possible, including violations."""
    match event:
        case "on_schema_refused" | "on_task_refused":
            return f.live and accepted(f, Observation(event))
        case "release_inside" | "extract_ok" | "extract_fails" | "extract_invalid":
            return bool(f.running)
        case "overlap":
            return f.schema or bool(f.over) or f.gone
        case "take" | "drop":
            return bool(f.queue)
        case _:
            return True


def state_name(f: Facts) -> str:
    if f.gone:
        return "released" if f.released else "releasing"
    if f.over:
        return {"end": "ended", "error": "failed", "refused": "refused"}[f.over]
    if f.lost:
        return "broken"
    if f.cancelled:
        return "cancelled" if f.schema else "cancelled_early"
    return "streaming" if f.schema else "created"


def _names(s: Observation) -> list[str]:
    return [call[0] for call in s.calls]


def _extracted(s: Observation) -> list[int]:
    return [call[1] for call in s.calls if call[0] == "extract_data"]


RULES: dict[str, Rule] = {
    "the producer is not called before on_schema": lambda f, s: (
        f.schema or s.event == "on_schema" or not s.calls
    ),
    "no request and no cancel once the stream is over": lambda f, s: (
        f.live or s.event == "on_schema" or not {"request", "cancel"} & set(_names(s))
    ),
    "on_error and release call no producer method": lambda f, s: (
        s.event not in (*ERRORS, *RELEASES) or not {"request", "cancel"} & set(_names(s))
    ),
    "requests are the application's wishes": lambda f, s: (
        [c for c in s.calls if c[0] == "request"] == [c for c in calls(f, s) if c[0] == "request"]
    ),
    "cancel is called once, by the application or for an invalid batch": lambda f, s: (
        _names(s).count("cancel") == [c[0] for c in calls(f, s)].count("cancel")
    ),
    "only tasks that were taken over are extracted, each once": lambda f, s: (
        len(set(_extracted(s))) == len(_extracted(s))
        and set(_extracted(s)) <= {*f.queue, *([s.task] if accepted(f, s) else [])}
    ),
    "nothing is left when release returns": lambda f, s: (
        s.event != "release" or s.holds or f.gone or set(_extracted(s)) == set(f.queue)
    ),
    "tasks are dropped at once when the stream is over, and kept otherwise": lambda f, s: (
        list(s.calls) == calls(f, s)
    ),
    "a handler call is answered with 0 just when it is in order": lambda f, s: (
        s.result == answer(f, s)
    ),
    "the application is notified of everything once": lambda f, s: (
        list(s.notifications) == notifications(f, s)
    ),
    "release waits for running extractions": lambda f, s: (
        s.holds == (s.event == "release" and bool(f.running) and not f.gone)
    ),
    "release returns after the last extraction": lambda f, s: (
        s.lets_return == (f.waiting and s.event.startswith("extract_") and f.running == (s.task,))
    ),
    "the state is what its description says": lambda f, s: s.state == state_name(after(f, s)),
}


def broken(f: Facts, s: Observation) -> list[str]:
    return [name for name, rule in RULES.items() if not rule(f, s)]
