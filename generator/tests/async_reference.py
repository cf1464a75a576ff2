"""A small reference producer and consumer, written from the rules and not from the table.

They play the role of a binding: `async_replay` replays the traces against them. Callbacks are
methods, a struct is an object, and results are errno values.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from async_replay import INVALID

EIO, EINVAL = 5, 22
INT64_MAX = 2**63 - 1


class Task:
    """The target of a task's private_data; cleared by the first extraction."""

    def __init__(self, producer: Producer, batch: Any) -> None:
        self._producer: Producer | None = producer
        self.batch = batch

    def extract_data(self, out: bool) -> int:
        producer, self._producer = self._producer, None
        if producer is None:
            return EINVAL
        errno: int = self.batch.read() if out else 0
        if not out:
            self.batch.free()
        producer.extracted(self, errno)
        return errno

    @property
    def open(self) -> bool:
        return self._producer is not None

    def take_back(self) -> None:
        self._producer = None
        self.batch.free()


class Producer:
    """Calls a handler, with one call in each job that it submits to the executor."""

    def __init__(self, handler: Any, submit: Callable[[Callable[[], None]], None]) -> None:
        self._handler = handler
        self._submit = submit
        self._lock = threading.RLock()
        self._schema: Any = None
        self._schema_called = False
        self._demand = 0
        self._ready: deque[Any] = deque()
        self._no_more = False
        self._open = 0
        self._busy = False
        self._over = False
        self._error: int | None = None  # for on_error
        self._release_called = False

    # Called by the source.

    def schema_ready(self, schema: Any) -> None:
        with self._lock:
            if not self._over:
                self._schema, schema = schema, None
        if schema is not None:
            schema.free()
        self._submit(self._job)

    def batch_ready(self, batch: Any) -> None:
        with self._lock:
            if not self._over:
                self._ready.append(batch)
                batch = None
        if batch is not None:
            batch.free()
        self._submit(self._job)

    def end_reached(self) -> None:
        with self._lock:
            self._no_more = True
        self._submit(self._job)

    def fail(self, errno: int) -> None:
        self._finish(errno)

    # Called by the consumer.

    def request(self, n: int) -> None:
        if n <= 0:
            self._finish(EINVAL)
            return
        with self._lock:
            self._demand = min(self._demand + n, INT64_MAX)
        self._submit(self._job)

    def cancel(self) -> None:
        self._finish(None)

    def extracted(self, task: Task, errno: int) -> None:
        with self._lock:
            self._open -= 1
        if errno:
            self._finish(errno)
        self._submit(self._job)

    def _finish(self, errno: int | None) -> None:
        """Ends the stream. After an error on_error follows, otherwise release."""
        with self._lock:
            if self._over:
                return
            self._over = True
            self._error = errno
        self._free_rest()
        self._submit(self._job)

    def _free_rest(self) -> None:
        with self._lock:
            rest, self._ready = self._ready, deque()
            schema, self._schema = self._schema, None
        for thing in (*rest, *([schema] if schema else [])):
            thing.free()

    # Called by the executor.

    def _job(self) -> None:
        """Makes at most one handler call."""
        with self._lock:
            call = None if self._busy or self._release_called else self._next_call()
            self._busy = self._busy or call is not None
        if call is not None:
            call()
            with self._lock:
                self._busy = False
            self._submit(self._job)

    def _next_call(self) -> Callable[[], None] | None:
        if self._error is not None:
            return self._call_on_error
        if self._over:
            return None if self._open else self._call_release
        if not self._schema_called:
            return self._call_on_schema if self._schema else None
        if self._ready:
            return self._call_on_next_task if self._demand else None
        return self._call_end if self._no_more else None

    def _call_on_schema(self) -> None:
        with self._lock:
            schema, self._schema, self._schema_called = self._schema, None, True
        if self._handler.on_schema(schema):
            schema.free()
            self._refused()

    def _call_on_next_task(self) -> None:
        with self._lock:
            task = Task(self, self._ready.popleft())
            self._demand -= 1
            self._open += 1
        if self._handler.on_next_task(task):
            if task.open:
                task.take_back()
                with self._lock:
                    self._open -= 1
            self._refused()

    def _call_end(self) -> None:
        with self._lock:
            self._over = True
        if self._handler.on_next_task(None):
            self._refused()

    def _refused(self) -> None:
        with self._lock:
            self._over = True
            self._error = None
        self._free_rest()

    def _call_on_error(self) -> None:
        errno, self._error = self._error, None
        self._handler.on_error(errno, "the producer has failed")

    def _call_release(self) -> None:
        self._release_called = True
        self._handler.release()


class Consumer:
    """A handler, and its application."""

    def __init__(
        self, producer: Any, notify: Callable[..., None], waits: Callable[[], None]
    ) -> None:
        self._producer = producer
        self._notify = notify
        self._waits = waits  # called when release begins to wait
        self._changed = threading.Condition(threading.RLock())
        self._wanted = 0
        self._demand = 0
        self._queue: deque[Any] = deque()
        self._running: list[int] = []  # the extracting threads
        self._has_schema = False
        self._cancelled = False
        self._lost = False
        self._over = ""  # "end", "error", "refused"
        self._gone = False
        self._in_call = 0

    def _live(self) -> bool:
        return not (self._cancelled or self._lost or self._over or self._gone)

    def _drop_queue(self) -> None:
        with self._changed:
            queue, self._queue = self._queue, deque()
        for task in queue:
            task.extract_data(False)

    def _refuse(self, errno: int) -> int:
        with self._changed:
            is_live = self._live()
            if not self._over and not self._gone:
                self._over = "refused"
        if is_live:
            self._drop_queue()
            self._notify("error", errno)
        return errno

    # The handler.

    def on_schema(self, schema: Any, refusal: int = 0) -> int:
        return self._handle(lambda: self._on_schema(schema, refusal))

    def on_next_task(self, task: Any, refusal: int = 0) -> int:
        if task is None:
            return self._handle(self._on_end)
        return self._handle(lambda: self._on_task(task, refusal))

    def _handle(self, handle: Callable[[], int]) -> int:
        with self._changed:
            overlapping = self._in_call > 0
            self._in_call += 1
        try:
            return self._refuse(EINVAL) if overlapping else handle()
        finally:
            with self._changed:
                self._in_call -= 1

    def _on_schema(self, schema: Any, refusal: int) -> int:
        with self._changed:
            wrong = self._has_schema or self._over or self._gone
        if wrong or refusal:
            return self._refuse(EINVAL if wrong else refusal)
        with self._changed:
            self._has_schema = True
            is_cancelled = self._cancelled
            n, self._wanted = self._wanted, 0
            self._demand = 0 if is_cancelled else n
        if is_cancelled:
            schema.free()
            self._producer.cancel()
            return 0
        schema.take()
        if n:
            self._producer.request(n)
        self._notify("schema")
        return 0

    def _on_task(self, task: Any, refusal: int) -> int:
        with self._changed:
            wrong = not self._has_schema or self._over or self._gone or not self._demand
            if not wrong and not refusal:
                self._demand -= 1
                is_live = self._live()
                if is_live:
                    self._queue.append(task)
        if wrong or refusal:
            return self._refuse(EINVAL if wrong else refusal)
        if is_live:
            self._notify("task", task.number)
        else:
            task.extract_data(False)
        return 0

    def _on_end(self) -> int:
        with self._changed:
            wrong = not self._has_schema or self._over or self._gone
            is_live = not wrong and self._live()
            if not wrong:
                self._over = "error" if self._lost else "end"
        if wrong:
            return self._refuse(EINVAL)
        if is_live:
            self._notify("end")
        return 0

    def on_error(self, code: int, _message: str) -> None:
        with self._changed:
            self._in_call += 1
            is_live = self._live()
            if not self._over and not self._gone:
                self._over = "error"
        if is_live:
            self._drop_queue()
            self._notify("error", code if code > 0 else EIO)
        with self._changed:
            self._in_call -= 1

    def release(self) -> None:
        with self._changed:
            if self._gone:
                return
            self._in_call += 1
            is_live = self._live()
            self._gone = True
            kept, self._queue = self._queue, deque()
        for task in kept:
            task.extract_data(self._over == "end")
        if is_live:
            self._notify("error", EIO)
        with self._changed:
            if self._running and threading.get_ident() not in self._running:
                self._waits()
                self._changed.wait_for(lambda: not self._running)
            self._in_call -= 1

    # Called by the application.

    def request(self, n: int) -> None:
        with self._changed:
            live, known = self._live(), self._has_schema
            if live and known:
                self._demand = min(self._demand + n, INT64_MAX)
            elif live:
                self._wanted = min(self._wanted + n, INT64_MAX)
        if live and known:
            self._producer.request(n)

    def take(self) -> int:
        with self._changed:
            task = self._queue.popleft()
            self._running.append(threading.get_ident())
        result: int = task.extract_data(True)
        errno = EINVAL if result == INVALID else result
        with self._changed:
            lost = errno and self._live()
            self._lost = self._lost or bool(lost)
        if lost and result == INVALID:
            self._producer.cancel()
        if lost:
            self._drop_queue()
        with self._changed:
            self._running.remove(threading.get_ident())
            self._changed.notify_all()
        return errno

    def drop(self) -> None:
        with self._changed:
            task = self._queue.popleft()
        task.extract_data(False)

    def cancel(self) -> None:
        with self._changed:
            live = self._live()
            self._cancelled = self._cancelled or live
        if live and self._has_schema:
            self._producer.cancel()
        self._drop_queue()
