"""What the replays of both sides of the async stream share (tests/traces/README.md): the cursor
over the steps of a trace, and the comparison of what the side under test does."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from fletching import abi
from libraries import ROOT

TRACES = ROOT / "build" / "python" / "traces"
Step = dict[str, Any]
Trace = dict[str, Any]


def traces(side: str) -> list[Trace]:
    """Those of the last `fletching traces`, which is a step of `make test-python`."""
    path = TRACES / f"{side}.json"
    if not path.exists():
        program = str(ROOT / ".venv" / "bin" / "fletching")
        subprocess.run([program, "traces", "--output", str(TRACES)], check=True)
    found: list[Trace] = json.loads(path.read_text(encoding="utf-8"))["traces"]
    return found


class DifferenceError(AssertionError):
    """The first one ends the trace."""


class Thing:
    """A schema or a batch, and what becomes of it."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.fates: list[str] = []
        self.arrays = self.released = 0

    def fate(self, freed: str) -> str:
        return freed if self.fates == ["freed"] else ", ".join(self.fates)


def text_of(call: Step) -> str:
    """How a call and a notification are compared."""
    parts = [f"notify {call['notify']}" if "notify" in call else str(call["call"])]
    parts += [str(call["task"])] if call.get("task") is not None else []
    parts += ["drop"] if call.get("out") is False else []
    parts += [str(call[key]) for key in ("code", "n") if key in call]
    return " ".join(parts)


class Replay:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.failed = ""
        self._at = self._depth = 0
        self._expected: list[str] = []
        self._counts: Counter[str] = Counter()
        self._lock = threading.RLock()

    def fail(self, text: str) -> None:
        with self._lock:
            step = self.trace["steps"][max(self._at - 1, 0)]
            self.failed = self.failed or f"step {self._at - 1}, {step['event']}: {text}"

    def next(self) -> Step | None:
        with self._lock:
            steps: list[Step] = self.trace["steps"]
            return None if self.failed or self._at == len(steps) else steps[self._at]

    def expects(self, name: str = "") -> bool:
        """Whether another call of the name is expected in this step."""
        with self._lock:
            return any(f"{what} ".startswith(f"{name} " if name else "") for what in self._expected)

    def happened(self, what: str) -> None:
        """A call of the side under test, or a notification."""
        with self._lock:
            if not self._expected or self._expected[0] != what:
                self.fail(f"{what}: expected {self._expected}")
                return
            self._expected.pop(0)
            name = what.split(maxsplit=1)[0]
            self._counts["end" if what == "on_next_task" else name] += 1

    def perform(self, step: Step, work: Callable[[], int]) -> None:
        """One step, from its event to its result."""
        with self._lock:
            self._at += 1
            self._depth += 1
            calls = (*step.get("calls", ()), *step.get("notifications", ()))
            outer, self._expected = self._expected, [text_of(call) for call in calls]
        result = work()
        with self._lock:
            if self._expected:
                self.fail(f"expected {self._expected}")
            if step.get("result", result) != result:
                self.fail(f"expected to return {step['result']}, got {result}")
            self._expected = outer
            self._depth -= 1
            # A step that was played within this one has the later state.
            expected, got = self.trace["steps"][self._at - 1]["state"], self.state()
            if self._depth == 0 and got and got != expected:
                self.fail(f"expected the state {expected}, got {got}")

    def state(self) -> str:
        """Empty where it is ahead of the trace."""
        raise NotImplementedError

    def compare(self, schema: str, tasks: list[str], codes: list[int]) -> None:
        if self.failed:
            raise DifferenceError(self.failed)
        finally_: Step = self.trace["finally"]
        got = {name: self._counts[name] for name in finally_["calls"]}
        assert got == finally_["calls"]
        expected = [] if finally_["code"] is None else [finally_["code"]]
        assert (schema, tasks, codes) == (finally_["schema"], finally_["tasks"], expected)


class Freed:
    """The callbacks of a schema or an array that notes its release."""

    def __init__(self, thing: Thing, fate: str = "freed") -> None:
        self.thing, self.fate = thing, fate

    def release(self, _: object) -> None:
        self.thing.released += 1
        if self.fate:
            self.thing.fates.append(self.fate)


def call(function: abi.Callback, *arguments: Any) -> int:
    result = function(*arguments)
    return result if isinstance(result, int) else 0
