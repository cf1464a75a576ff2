"""Every trace of consumer.json against the consumer of async streams, as far as it can be reached
from Python: the test plays the producer, in ctypes, and the application."""

from __future__ import annotations

import ctypes
import errno
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from capsules import Source
from fletching import Error, abi
from fletching._core import AsyncConsumer
from replay import Freed, Replay, Step, Thing, Trace, call, traces

STATES = (
    *("created", "cancelled_early", "streaming", "cancelled", "ended", "broken", "failed"),
    *("refused", "releasing", "released"),
)
# An application in Python has no way to refuse, or to discard a batch that it has not taken.
NOT_REACHED = {"on_schema_refused", "on_task_refused", "drop"}


def is_reached(trace: Trace) -> bool:
    return not any(step["event"] in NOT_REACHED for step in trace["steps"])


ALL = traces("consumer")
REACHED = [trace for trace in ALL if is_reached(trace)]


def code_of(error: Error | MemoryError) -> int:
    return errno.ENOMEM if isinstance(error, MemoryError) else error.errno or 0


class Extraction:
    """A take of the application, held open inside extract_data."""

    def __init__(self, task: int) -> None:
        self.task = task
        self.inside = False
        self.answers: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.orders: queue.SimpleQueue[Callable[[], int | None]] = queue.SimpleQueue()


class PeerTask(Thing):
    def __init__(self, player: Player, number: int) -> None:
        super().__init__(number)
        self.player, self.is_wrong = player, False

    def extract_data(self, _: object, out: Any) -> int:
        return self.player.extract(self, out.contents if out else None)


class Player(Replay):
    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.consumer = AsyncConsumer.create(self.wake)
        self.handler = abi.ArrowAsyncDeviceStreamHandler.from_address(self.consumer.handler())
        self.producer = abi.ArrowAsyncProducer(device_type=1)
        abi.implement(self.producer, self)
        self.handler.producer = ctypes.pointer(self.producer)
        self.known: Thing | None = None
        self.refused = self.cancelled = False
        self.schema_keeper = Source()
        self.reported: set[str] = set()
        self.arriving: PeerTask | None = None
        self.tasks: list[PeerTask] = []
        self.codes: list[int] = []
        self.running: list[Extraction] = []
        self.releases: list[threading.Thread] = []
        self.errors: list[BaseException] = []

    def state(self) -> str:
        return STATES[self.consumer.state]

    # --- Steps ---

    def one(self, step: Step) -> None:
        inside = step.get("within") == "extract_data" and self.running
        self.perform(step, lambda: self.ordered(step) if inside else self.act(step))

    def ordered(self, step: Step) -> int:
        """Inside the oldest extraction, on its thread."""
        results: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.running[0].orders.put(lambda: results.put(self.act(step)))
        return results.get()

    def act(self, step: Step) -> int:
        event, code = step["event"], step.get("errno", 0)
        if event == "on_schema":
            return self.give_schema()
        if event in ("on_task", "overlap"):
            return self.give_task(step)
        if event == "on_end":
            return call(self.handler.on_next_task, self.handler, None, None)
        if event in ("release", "release_inside"):
            return self.release(step)
        if event == "take":
            return self.take(step["task"])
        if event in ("on_error", "on_error_foreign_code"):
            self.handler.on_error(self.handler, code, None, None)
        elif event == "request":
            self.consumer.request(step["n"])
        elif event == "cancel":
            self.cancelled = True
            self.consumer.cancel()
        else:
            assert event.startswith("extract_"), event
            self.finish_extraction(step)
        return 0

    def give_schema(self) -> int:
        given = Thing()
        schema = abi.ArrowSchema(format=self.schema_keeper.schema.format)
        abi.implement(schema, Freed(given))
        first = self.known is None
        self.known = self.known or given
        code = call(self.handler.on_schema, self.handler, schema)
        if (code == 0) != abi.is_released(schema):
            self.fail("the schema was neither taken nor refused")
        if not abi.is_released(schema):
            abi.withdraw(schema)
            self.refused = self.refused or first
        return code

    def give_task(self, step: Step) -> int:
        task = PeerTask(self, step["task"])
        self.tasks.append(task)
        self.arriving = task
        raw = abi.ArrowAsyncTask()
        abi.implement(raw, task)
        code = call(self.handler.on_next_task, self.handler, raw, None)
        self.arriving = None
        if code != 0:
            task.fates.append("refused")
        return code

    def take(self, task: int) -> int:
        extraction = Extraction(task)
        self.running.append(extraction)

        def run() -> None:
            try:
                extraction.answers.put(0 if self.consumer.take(0) is not None else -1)
            except (Error, MemoryError) as error:
                extraction.answers.put(code_of(error))

        threading.Thread(target=run, daemon=True).start()
        return extraction.answers.get()

    def finish_extraction(self, step: Step) -> None:
        at = next(i for i, each in enumerate(self.running) if each.task == step["task"])
        extraction, task = self.running.pop(at), self.tasks[step["task"]]
        task.is_wrong = step["event"] == "extract_invalid"
        code = step.get("errno", 0)
        task.fates.append("failed" if code or task.is_wrong else "extracted")
        extraction.orders.put(lambda: int(code))
        expected = errno.EINVAL if task.is_wrong else code
        answer = extraction.answers.get()
        if answer != expected:
            self.fail(f"take: expected {expected}, got {answer}")
        if step.get("then_returns"):
            self.join()

    def join(self) -> None:
        while self.releases:
            self.releases.pop().join()

    def release(self, step: Step) -> int:
        if step.get("returns") is None:
            return call(self.handler.release, self.handler)
        thread = threading.Thread(target=call, args=(self.handler.release, self.handler))
        self.releases.append(thread)
        thread.start()
        while self.state() != "releasing" or self.expects():
            if not thread.is_alive():
                self.fail("release does not wait")
                break
            time.sleep(0)
        return 0

    # --- What the consumer calls ---

    def wake(self) -> None:
        """With every news."""
        what = self.news()
        if what:
            self.reached(what, "notify")

    def news(self) -> str:
        arriving, self.arriving = self.arriving, None
        if self.cancelled or self.state() == "broken":  # the application knows
            return ""
        if self.consumer.schema is not None and "schema" not in self.reported:
            self.reported.add("schema")
            return "notify schema"
        if self.consumer.ended and "end" not in self.reported:
            self.reported.add("end")
            try:
                self.consumer.raise_error()
            except (Error, MemoryError) as error:
                self.codes.append(code_of(error))
                return f"notify error {self.codes[-1]}"
            return "notify end"
        if arriving is not None and self.state() == "streaming":
            return f"notify task {arriving.number}"
        return ""

    def reached(self, what: str, name: str) -> None:
        """Plays the steps within this call, when it is the last of its name."""
        self.happened(what)
        more = self.expects(name)
        while not more and (step := self.next()) and step.get("within") == name:
            self.one(step)

    def request(self, _: object, n: int) -> None:
        self.reached(f"request {n}", "request")

    def cancel(self, _: object) -> None:
        self.reached("cancel", "cancel")

    def extract(self, task: PeerTask, out: abi.ArrowDeviceArray | None) -> int:
        what = f"extract_data {task.number}" + ("" if out is not None else " drop")
        held = [each for each in self.running if each.task == task.number and not each.inside]
        code = 0
        if held:
            held[0].inside = True
            self.happened(what)
            held[0].answers.put(0)
            while (answer := held[0].orders.get()()) is None:
                pass
            code = answer
        else:
            task.fates.append("dropped" if out is None else "extracted")
            self.reached(what, "extract_data")
        if out is not None:
            self.fill(task, out, code)
        return code

    def fill(self, task: PeerTask, out: abi.ArrowDeviceArray, code: int) -> None:
        """Also when the extraction fails: the consumer must not look at it then."""
        abi.implement(out.array, Freed(task, fate=""))
        out.device_type = 2 if task.is_wrong else 1
        if code:
            abi.withdraw(out.array)
        else:
            task.arrays += 1

    # --- The end ---

    def finish(self) -> None:
        for extraction in self.running:
            self.fail("a task is still being extracted")
            extraction.orders.put(lambda: errno.EIO)
        self.join()
        schema = "none"
        if self.refused:
            schema = "refused"
        elif self.known is not None:
            schema = self.known.fate("discarded") or "taken"  # the stream has it
        del self.consumer
        if self.failed:
            self.compare("", [], [])
        assert [task.arrays for task in self.tasks] == [task.released for task in self.tasks]
        self.compare(schema, [task.fate("freed") for task in self.tasks], self.codes)
        abi.withdraw(self.producer)
        abi.release(self.schema_keeper.schema)
        abi.release(self.schema_keeper.array)


@pytest.mark.parametrize("trace", REACHED, ids=lambda trace: trace["name"])
def test_traces_of_the_consumer(trace: Trace) -> None:
    player = Player(trace)
    while (step := player.next()) is not None:
        player.one(step)
    player.finish()


def test_traces_that_are_not_reached() -> None:
    """Each has an event that Python's consumer does not have; every other trace is replayed."""
    assert len(ALL) > 190
    assert len(ALL) - len(REACHED) <= 10
