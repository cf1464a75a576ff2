"""Every trace of producer.json against the producer of async streams, as far as it can be reached
from Python: the test plays the source and, in ctypes, the consumer.

The calls are made on the one thread of the module's executor. Between the steps a handler of
another stream, a Gate, holds that thread, so that what the producer has to do waits for the step.
The executor lets a producer that has more calls to make do so at once: such a call waits in the
handler for its step. A trace in which something else comes before that step cannot be played.
"""

from __future__ import annotations

import ctypes
import errno
import queue
import threading
from collections.abc import Callable
from typing import Any

from capsules import Source, capsule_of
from fletching import DeviceArray, Schema, abi
from fletching._core import AsyncProducer
from replay import Freed, Replay, Step, Thing, Trace, call, text_of, traces

STATES = (
    *("created", "schema", "in_schema", "streaming", "in_task", "in_end", "stopping"),
    *("error_in_call", "error_pending", "in_error", "ended", "failed", "cancelled", "refused"),
    *("in_release", "released"),
)
# A batch of Python's is there when it is sent: its extraction cannot fail.
NOT_REACHED = {"extract_fails"}

# What happens before the step of a call that waits has no influence on the call.
DOES_NOT_MATTER = {
    *("extract", "extract_drop", "extract_again", "request", "schema_ready", "batch_ready"),
    "end_reached",
}

ALL = traces("producer")
REACHED = [t for t in ALL if not any(step["event"] in NOT_REACHED for step in t["steps"])]
INT32 = Schema.from_arrow(Source())


class Gate:
    """Holds the executor's thread from the time that it gets here until it is opened."""

    def __init__(self, entered: Callable[[], object]) -> None:
        self._entered, self._opened = entered, threading.Event()
        self.gone = threading.Event()
        self._handler = abi.ArrowAsyncDeviceStreamHandler()
        abi.implement(self._handler, self)
        address = ctypes.addressof(self._handler)
        # Of an older producer only what is queued is still called.
        self._producer = AsyncProducer.start(address, 1, {}, int, int, self.gone.set)
        self._producer.schema(INT32)

    def on_schema(self, *_: object) -> int:
        self._entered()
        self._opened.wait()
        return errno.EPROTO

    def on_next_task(self, *_: object) -> int:
        return errno.EPROTO

    def on_error(self, *_: object) -> None:
        pass

    def open(self) -> None:
        self._opened.set()


class Player(Replay):
    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        # What the executor's thread has come to: a gate, or a call before its step.
        self.arrivals: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.early = ""
        self.go: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.gates: list[Gate] = []
        self.add_gate()
        self.arrivals.get()
        self.gone = threading.Event()
        self.handler = abi.ArrowAsyncDeviceStreamHandler()
        abi.implement(self.handler, self)
        address = ctypes.addressof(self.handler)
        self.producer = AsyncProducer.start(address, 1, {}, int, int, self.end)
        self.keeper = Source()
        self.known: Freed | None = None
        self.taken: list[Any] = []
        self.batches: list[Freed] = []
        self.tasks: list[abi.ArrowAsyncTask] = []
        self.codes: list[int] = []
        self.steps = self.has_called = self.gives_up = self.released = False

    def state(self) -> str:
        return "" if self.early else STATES[self.producer.state]

    # --- Steps ---

    def one(self, step: Step) -> None:
        self.perform(step, lambda: self.beside(step) if "beside" in step else self.act(step))

    def beside(self, step: Step) -> int:
        """On another thread. The executor has one thread, which is busy: a step has none to use."""
        results: list[int] = []
        if step["event"] == "step":
            return 0
        thread = threading.Thread(target=lambda: results.append(self.act(step)))
        thread.start()
        thread.join()
        return results[0]

    def act(self, step: Step) -> int:
        event = step["event"]
        if event == "step":
            self.run_jobs()
        elif event == "schema_ready":
            self.send_schema()
        elif event == "batch_ready":
            self.send_batch()
        elif event == "end_reached":
            self.producer.end()
        elif event == "failure":
            self.producer.fail(step["errno"], "the source has failed")
        elif event in ("request", "request_invalid"):
            producer = self.handler.producer
            producer.contents.request(producer, step["n"])
        elif event == "cancel":
            producer = self.handler.producer
            producer.contents.cancel(producer)
        else:
            return self.extract(step)
        return 0

    def add_gate(self) -> None:
        self.gates.append(Gate(lambda: self.arrivals.put("")))

    def run_jobs(self) -> None:
        """Until one has made a handler call; a job that makes none may queue another one."""
        self.steps, self.has_called = True, False
        for _ in range(3):
            if self.early:
                self.go.put(True)
            else:
                self.add_gate()
                self.gates[-2].open()
            self.early = self.arrivals.get()
            if self.has_called:
                return

    def end(self) -> None:
        self.gone.set()
        if self.gives_up:
            self.arrivals.put("")

    def can_play(self, step: Step) -> bool:
        if step["event"] in DOES_NOT_MATTER:
            return True
        return not self.early or [self.early] == [text_of(each) for each in step.get("calls", ())]

    def give_up(self) -> None:
        """Lets everything end: the calls return at once."""
        self.steps, self.gives_up = False, True
        if self.early:
            self.go.put(False)
        self.gates[-1].open()
        self.producer.fail(errno.EIO, "the trace has ended")
        while not self.gone.is_set():
            if self.arrivals.get():
                self.go.put(False)

    def send_schema(self) -> None:
        thing = Freed(Thing())
        self.known = self.known or thing
        raw = abi.ArrowSchema(format=self.keeper.schema.format)
        abi.implement(raw, thing)
        self.producer.schema(Schema.from_arrow(Given("schema", raw)))

    def send_batch(self) -> None:
        batch = Freed(Thing(len(self.batches)))
        self.batches.append(batch)
        schema = abi.ArrowSchema(format=self.keeper.schema.format)
        abi.implement(schema, Freed(Thing()))
        raw = abi.ArrowDeviceArray(device_type=1, device_id=-1)
        raw.array.length = batch.thing.number
        abi.implement(raw.array, batch)
        self.producer.push(DeviceArray.from_arrow(Given("device_array", schema, raw)), {})

    def extract(self, step: Step) -> int:
        task, batch = self.tasks[step["task"]], self.batches[step["task"]]
        out = abi.ArrowDeviceArray()
        drops = step["event"] == "extract_drop"
        if drops:
            batch.fate = "dropped"
        code = call(task.extract_data, task, None if drops else out)
        if (step["event"] == "extract") == abi.is_released(out.array):
            self.fail("extract_data: an array and an error, or neither")
        if not abi.is_released(out.array):
            if out.array.length != batch.thing.number:
                self.fail("extract_data: another batch")
            batch.fate = ""
            batch.thing.fates.append("extracted")
            abi.release(out.array)
        return code

    # --- What the producer calls ---

    def called(self, what: str) -> int:
        """Plays the steps until the call returns."""
        if not self.steps:
            self.arrivals.put(what)
            if not self.go.get():
                return errno.EIO
        self.steps, self.has_called = False, True
        self.happened(what)
        while (step := self.next()) is not None:
            if not step["event"].startswith("returns"):
                self.one(step)
                continue
            self.perform(step, int)
            return int(step.get("errno", 0))
        self.fail(f"{what} never returns")
        return errno.EIO

    def on_schema(self, _: object, schema: Any) -> int:
        code = self.called("on_schema")
        if code == 0 and self.known is not None:
            self.known.fate = ""
            self.known.thing.fates.append("taken")
            abi.release(schema.contents)
        return code

    def on_next_task(self, _: object, task: Any, __: object) -> int:
        if not task:
            return self.called("on_next_task")
        copy = abi.ArrowAsyncTask()
        ctypes.pointer(copy)[0] = task.contents
        self.tasks.append(copy)
        return self.called(f"on_next_task {len(self.tasks) - 1}")

    def on_error(self, _: object, code: int, message: int | None, __: object) -> None:
        if not abi.text(message):
            self.fail("on_error without a text")
        self.codes.append(code)
        self.called(f"on_error {code}")

    def release(self, _: object) -> None:
        self.called("release")
        self.released = True

    # --- The end ---

    def finish(self) -> None:
        if self.failed or not self.released:
            self.fail("not released")
            self.give_up()
            self.compare("", [], [])
        self.gates[-1].open()
        for gate in self.gates:
            gate.gone.wait()
        del self.producer
        schema = "none" if self.known is None else self.known.thing.fate("discarded")
        tasks = [batch.thing.fate("discarded") for batch in self.batches]
        self.compare(schema, tasks, self.codes)
        assert [batch.thing.released for batch in self.batches] == [1] * len(self.batches)
        abi.release(self.keeper.schema)
        abi.release(self.keeper.array)


class Given:
    def __init__(self, method: str, *structs: Any) -> None:
        capsules = tuple(capsule_of(struct) for struct in structs)
        result = capsules if len(capsules) > 1 else capsules[0]
        setattr(self, f"__arrow_c_{method}__", lambda *_, **__: result)


def play(trace: Trace) -> bool:
    """Whether it could be played to its end."""
    player = Player(trace)
    while (step := player.next()) is not None:
        if not player.can_play(step):
            player.give_up()
            return False
        player.one(step)
    player.finish()
    return True


def test_traces_of_the_producer() -> None:
    """17 have an extraction that fails; in 2 a cancel or a failure of the source is to come before
    a call that the executor has made already."""
    played = sum(play(trace) for trace in REACHED)
    assert len(ALL) > 240
    assert (len(ALL) - len(REACHED), len(REACHED) - played) == (17, 2)
