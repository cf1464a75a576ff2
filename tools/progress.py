"""Shows running tasks: bars on a terminal; otherwise a line at the start and end of each task, and
one about all running tasks every few seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich import progress as bars
from rich.console import Console

SECONDS_PER_LINE = 10.0
SECONDS_PER_FRAME = 0.25

# Finished steps and their total; None while the total is unknown.
Measure = Callable[[], tuple[int, int] | None]


def console() -> Console:
    """Standard output. If it is not a terminal, it is wide enough for a table."""
    return Console() if sys.stdout.isatty() else Console(width=120)


class Progress:
    """Progress bars, created by `showing`. Tasks may start and end on any thread."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._tasks: dict[bars.TaskID, Measure] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._plain = not sys.stdout.isatty()
        self._shown = bars.Progress(
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("left:"),
            bars.TimeRemainingColumn(),
            console=console(),
            transient=True,
            disable=self._plain,
            speed_estimate_period=120,
        )

    @contextmanager
    def task(self, name: str, measure: Measure = lambda: None) -> Iterator[None]:
        """The body is the task, which reports its end with `line`."""
        bar = self._shown.add_task(name, total=None)
        if self._plain:
            self.line(f"{self._subject}: {name} ...")
        with self._lock:
            self._tasks[bar] = measure
        try:
            yield
        finally:
            with self._lock:
                del self._tasks[bar]
                self._shown.remove_task(bar)

    def line(self, *lines: str) -> None:
        for line in lines:
            self._shown.console.print(line, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def ticking(self) -> Iterator[Progress]:
        ticker = threading.Thread(target=self._tick_until_end, daemon=True)
        with self._shown:
            ticker.start()
            try:
                yield self
            finally:
                self._ended.set()
                ticker.join()

    def _tick_until_end(self) -> None:
        while not self._ended.wait(SECONDS_PER_LINE if self._plain else SECONDS_PER_FRAME):
            with self._lock:
                for bar, measure in self._tasks.items():
                    if measured := measure():
                        self._shown.update(bar, completed=measured[0], total=measured[1])
                states = [state(task) for task in self._shown.tasks]
            if self._plain and states:
                self.line(f"{self._subject}: {'; '.join(states)}")


def state(task: bars.Task) -> str:
    """Such as "cpp 30 of 90, about 40 s left"."""
    if task.total is None:
        return f"{task.description} {task.elapsed or 0:.0f} s"
    seconds = task.time_remaining
    left = f", about {seconds:.0f} s left" if seconds else ""
    return f"{task.description} {task.completed:.0f} of {task.total:.0f}{left}"


def showing(subject: str) -> AbstractContextManager[Progress]:
    """`subject`: text such as "build", at the start of each line."""
    return Progress(subject).ticking()
