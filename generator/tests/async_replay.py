# ruff: noqa: PLR0912 -- one branch for each event, or for each reason
"""Replays traces against a producer or a consumer, as tests/conformance/README.md describes."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

PATIENCE = 120  # seconds after which a waiting thread counts as hung
EINVAL = 22
INVALID = -1  # for extract_data: it returns 0 and an invalid array
Step = dict[str, Any]


class DifferenceError(Exception):
    """The side under test differs from the trace."""


def in_thread(work: Callable[[], Any]) -> Any:
    """Runs the work on another thread and waits for its result."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise DifferenceError("hangs on another thread")
    if errors:
        raise errors[0]
    return results[0]


class TrackedObject:
    """A schema or a batch, and its fate."""

    def __init__(self, errno: Callable[[], int] = lambda: 0) -> None:
        self.fates: list[str] = []
        self.number = 0
        self._errno = errno

    def read(self) -> int:
        errno = self._errno()
        self.fates.append("failed" if errno else "extracted")
        return errno

    def free(self) -> None:
        self.fates.append("freed")

    def take(self) -> None:
        self.fates.append("taken")


class Replay:
    """The cursor over the steps and the comparison of calls, for both sides."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.trace = trace
        self.steps: list[Step] = trace["steps"]
        self.cursor = 0
        self.expected: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()

    def fail(self, text: str) -> DifferenceError:
        at = self.cursor - 1
        return DifferenceError(
            f"{self.trace['name']}: step {at}, {self.steps[at]['event']}: {text}"
        )

    def happened(self, call: dict[str, Any]) -> None:
        """Compares a call or a notification made by the side under test."""
        if not self.expected or self.expected[0] != call:
            wanted = self.expected[0] if self.expected else "nothing"
            raise self.fail(f"{call} instead of {wanted}")
        self.expected.pop(0)
        name = call.get("call", "")
        self.counts["end" if call == {"call": "on_next_task", "task": None} else name] += 1

    def next(self) -> Step | None:
        return self.steps[self.cursor] if self.cursor < len(self.steps) else None

    def perform(self, step: Step, work: Callable[[], Any]) -> None:
        """Runs one step, from its event to its result."""
        self.cursor += 1
        outer, self.expected = (
            self.expected,
            [*step.get("calls", ()), *step.get("notifications", ())],
        )
        result = work()
        if self.expected:
            raise self.fail(f"did not {self.expected[0]}")
        self.expected = outer
        if "result" in step and result != step["result"]:
            raise self.fail(f"returned {result} instead of {step['result']}")

    def compare_final(self, schema: str, tasks: list[str]) -> None:
        final = self.trace["finally"]
        if {name: self.counts[name] for name in final["calls"]} != final["calls"]:
            raise DifferenceError(
                f"{self.trace['name']}: {dict(self.counts)}, not {final['calls']}"
            )
        if schema != final["schema"] or tasks != final["tasks"]:
            raise DifferenceError(f"{self.trace['name']}: {schema}, {tasks}, not as in {final}")


class ProducerReplay(Replay):
    """Plays the source, the executor and the consumer of a producer."""

    def __init__(self, trace: dict[str, Any], make: Callable[..., Any]) -> None:
        super().__init__(trace)
        self.jobs: list[Callable[[], None]] = []
        self.errno = 0
        self.schema: TrackedObject | None = None
        self.batches: list[TrackedObject] = []
        self.tasks: dict[int, Any] = {}
        self.dropped: set[int] = set()
        self.codes: list[int] = []
        self.producer = make(self, self.jobs.append)

    def run(self) -> None:
        while step := self.next():
            self.one(step)
        self.compare_final(self._schema_fate(), [self._fate(b) for b in self.batches])
        if self.codes != [c for c in [self.trace["finally"]["code"]] if c is not None]:
            raise DifferenceError(f"{self.trace['name']}: codes {self.codes}")

    def one(self, step: Step) -> None:
        work = lambda: self._act(step)  # noqa: E731
        if "beside" in step:
            self.perform(step, lambda: in_thread(work))
        else:
            self.perform(step, work)

    def _act(self, step: Step) -> Any:
        match step["event"]:
            case "schema_ready":
                self.schema = TrackedObject()
                self.producer.schema_ready(self.schema)
            case "batch_ready":
                self.batches.append(TrackedObject(lambda: self.errno))
                self.batches[-1].number = len(self.batches) - 1
                self.producer.batch_ready(self.batches[-1])
            case "end_reached":
                self.producer.end_reached()
            case "failure":
                self.producer.fail(step["errno"])
            case "request" | "request_invalid":
                self.producer.request(step["n"])
            case "cancel":
                self.producer.cancel()
            case "step":
                jobs, self.jobs[:] = list(self.jobs), []
                for number, job in enumerate(jobs):
                    before = len(self.expected)
                    job()
                    if len(self.expected) != before:  # this was the only call of this step
                        self.jobs[:0] = jobs[number + 1 :]
                        break
            case "extract" | "extract_fails" | "extract_again":
                self.errno = step.get("errno", 0)
                return self.tasks[step["task"]].extract_data(True)
            case "extract_drop":
                self.dropped.add(step["task"])
                return self.tasks[step["task"]].extract_data(False)

    # The handler.

    def on_schema(self, _: Any) -> int:
        return self._called({"call": "on_schema"})

    def on_next_task(self, task: Any) -> int:
        if task is not None:
            self.tasks[task.batch.number] = task
        return self._called(
            {"call": "on_next_task", "task": None if task is None else task.batch.number}
        )

    def on_error(self, code: int, message: str) -> None:
        if not message:
            raise self.fail("on_error without a text")
        self.codes.append(code)
        self._called({"call": "on_error", "code": code})

    def release(self) -> None:
        self._called({"call": "release"})

    def _called(self, call: dict[str, Any]) -> int:
        """Plays the steps that happen until this call returns."""
        self.happened(call)
        while step := self.next():
            if step["event"].startswith("returns"):
                if step["call"] != call["call"]:
                    raise self.fail(f"{call['call']} runs, not {step['call']}")
                self.perform(step, lambda: None)
                if call["call"] == "on_schema" and not step.get("errno"):
                    assert self.schema is not None
                    self.schema.take()
                return int(step.get("errno", 0))
            self.one(step)
        raise self.fail(f"{call['call']} never returns")

    def _schema_fate(self) -> str:
        if self.schema is None:
            return "none"
        return {"freed": "discarded"}.get(",".join(self.schema.fates), self.schema.fates[0])

    def _fate(self, batch: TrackedObject) -> str:
        if len(batch.fates) != 1:
            return f"batch {batch.number}: {batch.fates}"
        if batch.fates == ["freed"]:
            return "dropped" if batch.number in self.dropped else "discarded"
        return batch.fates[0]


class Extraction(threading.Thread):
    """An extraction by the application on a separate thread, blocked inside extract_data."""

    def __init__(self, take: Callable[[], int]) -> None:
        super().__init__(daemon=True)
        self._take = take
        self.orders: queue.Queue[Callable[[], Any] | int] = queue.Queue()
        self.answers: queue.Queue[Any] = queue.Queue()
        self.task = -1

    def run(self) -> None:
        try:
            self.answers.put(("done", self._take()))
        except BaseException as error:
            self.answers.put(("error", error))

    def inside(self) -> int:
        """The body of extract_data: follows orders until it gets a result to return."""
        self.answers.put(("inside", None))
        while callable(order := self.orders.get()):
            try:
                self.answers.put(("result", order()))
            except BaseException as error:
                self.answers.put(("error", error))
        assert isinstance(order, int)
        return order

    def answer(self, wanted: str) -> Any:
        try:
            kind, value = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise DifferenceError("the extracting thread hangs") from None
        if kind == "error":
            raise value
        if kind != wanted:
            raise DifferenceError(f"the extracting thread is {kind}, not {wanted}")
        return value


class PeerTask:
    def __init__(self, replay: ConsumerReplay, number: int) -> None:
        self._replay = replay
        self.number = number

    def extract_data(self, out: bool) -> int:
        return self._replay.extract_data(self.number, out)


class ConsumerReplay(Replay):
    """Plays the producer and the application of a consumer."""

    def __init__(self, trace: dict[str, Any], make: Callable[..., Any]) -> None:
        super().__init__(trace)
        self.schema = TrackedObject()
        self.schema_refused = False
        self.fates: dict[int, list[str]] = {}
        self.extractions: list[Extraction] = []
        self.waiting: threading.Event = threading.Event()
        self.released: list[threading.Thread] = []
        self.codes: list[int] = []
        self.consumer = make(self, self.notify, self.waiting.set)

    def run(self) -> None:
        while step := self.next():
            self.one(step)
        for extraction in self.extractions:
            raise DifferenceError(f"task {extraction.task} is still being extracted")
        schema = "refused" if self.schema_refused else "none"
        if self.schema.fates:
            schema = {"freed": "discarded"}.get(self.schema.fates[0], self.schema.fates[0])
        tasks = [self._fate(number) for number in sorted(self.fates)]
        self.compare_final(schema, tasks)
        wanted = self.trace["finally"]["code"]
        if self.codes != ([] if wanted is None else [wanted]):
            raise DifferenceError(
                f"{self.trace['name']}: notified of {self.codes}, expected {wanted}"
            )

    def _fate(self, number: int) -> str:
        fates = self.fates[number]
        return fates[0] if len(fates) == 1 else f"task {number}: {fates}"

    def one(self, step: Step) -> None:
        if step.get("within") == "extract_data" and self.extractions:
            self.perform(step, lambda: self._on_extracting_thread(step))
        elif "beside" in step:
            self.perform(step, lambda: in_thread(lambda: self._act(step)))
        else:
            self.perform(step, lambda: self._act(step))
        if step.get("then_returns") == "release":
            for thread in self.released:
                thread.join(PATIENCE)
                if thread.is_alive():
                    raise self.fail("release does not return")
            self.released = []

    def _on_extracting_thread(self, step: Step) -> Any:
        extraction = self.extractions[0]
        extraction.orders.put(lambda: self._act(step))
        return extraction.answer("result")

    def _act(self, step: Step) -> Any:
        consumer = self.consumer
        match step["event"]:
            case "on_schema" | "on_schema_refused":
                return self._on_schema(step)
            case "on_task" | "on_task_refused" | "overlap":
                number = step["task"]
                self.fates[number] = []
                refusal = step.get("errno", 0)
                result = consumer.on_next_task(PeerTask(self, number), refusal)
                if result:
                    self.fates[number].append("refused")
                return result
            case "on_end":
                return consumer.on_next_task(None)
            case "on_error" | "on_error_foreign_code":
                consumer.on_error(step["errno"], "the peer has failed")
            case "release" if step.get("returns") is False:
                self._release_that_waits()
            case "release" | "release_inside":
                consumer.release()
            case "request":
                consumer.request(step["n"])
            case "cancel":
                consumer.cancel()
            case "drop":
                consumer.drop()
            case "take":
                extraction = Extraction(consumer.take)
                extraction.task = step["task"]
                self.extractions.append(extraction)
                extraction.start()
                extraction.answer("inside")
            case "extract_ok" | "extract_fails" | "extract_invalid":
                invalid = step["event"] == "extract_invalid"
                errno = EINVAL if invalid else step.get("errno", 0)
                extraction = next(e for e in self.extractions if e.task == step["task"])
                self.extractions.remove(extraction)
                self.fates[step["task"]].append("failed" if errno else "extracted")
                extraction.orders.put(INVALID if invalid else errno)
                if extraction.answer("done") != errno:
                    raise self.fail("take returned something else")

    def _on_schema(self, step: Step) -> int:
        schema = self.schema if not self.schema.fates else TrackedObject()
        result: int = self.consumer.on_schema(schema, step.get("errno", 0))
        if result and schema.fates:
            raise self.fail("the schema was taken and refused")
        self.schema_refused = self.schema_refused or (result != 0 and not self.schema.fates)
        return result

    def _release_that_waits(self) -> None:
        self.waiting.clear()
        errors: list[BaseException] = []

        def release() -> None:
            try:
                self.consumer.release()
            except BaseException as error:
                errors.append(error)
                self.waiting.set()

        thread = threading.Thread(target=release, daemon=True)
        self.released.append(thread)
        thread.start()
        if not self.waiting.wait(PATIENCE):
            raise self.fail("release does not wait")
        if errors:
            raise errors[0]

    # The producer and the application.

    def request(self, n: int) -> None:
        self._reached({"call": "request", "n": n}, "request")

    def cancel(self) -> None:
        self._reached({"call": "cancel"}, "cancel")

    def extract_data(self, task: int, out: bool) -> int:
        call = {"call": "extract_data", "task": task, "out": out}
        extraction = threading.current_thread()
        if isinstance(extraction, Extraction) and extraction.task == task:
            self.happened(call)
            return extraction.inside()
        self.fates[task].append("extracted" if out else "dropped")
        self._reached(call, "extract_data")
        return 0

    def notify(self, what: str, value: int | None = None) -> None:
        notification: dict[str, Any] = {"notify": what}
        if what == "task":
            notification["task"] = value
        elif what == "error":
            notification["code"] = value
            assert value is not None
            self.codes.append(value)
        self._reached(notification, "notify")

    def _reached(self, what: dict[str, Any], name: str) -> None:
        """Plays the steps nested in this call, if it is the last call of its name."""
        self.happened(what)
        kind = "notify" if name == "notify" else "call"
        if any(
            kind in more and (kind == "notify" or more["call"] == name) for more in self.expected
        ):
            return
        while (step := self.next()) and step.get("within") == name:
            self.one(step)
