# ruff: noqa: E501 -- one line for each example
"""Tests that the traces can be replayed against a reference, and that wrong ones fail."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import async_reference
import async_replay
import pytest
from async_replay import ConsumerReplay, DifferenceError, ProducerReplay, in_thread
from conftest import trace_texts

SOURCE = Path(async_reference.__file__).read_text(encoding="utf-8")
REPLAYS = {"producer": ProducerReplay, "consumer": ConsumerReplay}


@cache
def traces(side: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(trace_texts()[f"{side}.json"])["traces"]
    return found


def replay(side: str, module: ModuleType) -> None:
    make = module.Producer if side == "producer" else module.Consumer
    for trace in traces(side):
        in_thread(REPLAYS[side](trace, make).run)


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_reference_replays_every_trace(side: str) -> None:
    replay(side, async_reference)


# Side, code of the reference, and a plausible bug as its replacement.
WRONG = [
    ("producer", "if producer is None:", "if False:"),
    ("producer", "errno: int = self.batch.read() if out else 0", "errno: int = self.batch.read()"),
    ("producer", "        if not out:\n            self.batch.free()", "        pass"),
    ("producer", "if n <= 0:", "if n < 0:"),
    ("producer", "self._finish(EINVAL)\n            return", "return"),
    ("producer", "self._finish(EINVAL)", "self._finish(EIO)"),
    ("producer", "self._open -= 1\n        if errno", "pass\n        if errno"),
    ("producer", "if errno:\n            self._finish(errno)", "pass"),
    ("producer", "self._demand = min(self._demand + n, INT64_MAX)\n        self._submit", "self._demand = n\n        self._submit"),
    ("producer", "self._demand -= 1\n            self._open", "self._open"),
    ("producer", "if self._busy or self._release_called", "if self._release_called"),
    ("producer", "return None if self._open else self._call_release", "return self._call_release"),
    ("producer", "return self._call_end if self._no_more", "return self._call_end if self._demand"),
    ("producer", "if self._ready:", "if self._ready and self._demand:"),
    ("producer", "return self._call_on_error\n", "pass\n"),
    ("producer", "            schema.free()\n            self._refused()", "            self._refused()"),
    ("producer", "if task.open:", "if True:"),
    ("producer", "task.take_back()\n                with self._lock:", "with self._lock:"),
    ("producer", "self._over = True\n            self._error = None", "self._over = True"),
    ("producer", "        self._free_rest()\n        self._submit", "        self._submit"),
    ("producer", "            if self._over:\n                return", "            pass"),
    ("producer", "self._release_called = True", "pass"),
    ("producer", "        self._finish(None)", "        self._handler.release()"),
    ("producer", "with self._lock:\n            self._over = True\n        if", "if True:\n            pass\n        if"),
    ("consumer", "return self._refuse(EINVAL) if overlapping else handle()", "return handle()"),
    ("consumer", "self._over or self._gone or not self._demand", "self._over or self._gone"),
    ("consumer", "self._demand -= 1\n                is_live", "is_live"),
    ("consumer", "            self._demand = 0 if is_cancelled else n\n", ""),
    ("consumer", "self._producer.cancel()\n            return 0", "return 0"),
    ("consumer", "        schema.take()\n", ""),
    ("consumer", "            task.extract_data(False)\n        return 0", "            pass\n        return 0"),
    ("consumer", 'self._over = "error" if self._lost else "end"', "pass"),
    ("consumer", "code if code > 0 else EIO", "code"),
    ("consumer", 'task.extract_data(self._over == "end")', "task.extract_data(False)"),
    ("consumer", "if self._running and threading.get_ident() not in self._running:", "if False:"),
    ("consumer", "            if self._gone:\n                return\n", ""),
    ("consumer", "        if is_live:\n            self._notify(\"error\", EIO)\n", ""),
    ("consumer", "live and known:\n            self._producer.request(n)", "known:\n            self._producer.request(n)"),
    ("consumer", "self._cancelled = self._cancelled or live", "pass"),
    ("consumer", "if live and self._has_schema:\n            self._producer.cancel()", "if live:\n            self._producer.cancel()"),
    ("consumer", "        if lost:\n            self._drop_queue()\n", ""),
    ("consumer", "self._lost = self._lost or bool(lost)", "pass"),
    ("consumer", "if lost and result == INVALID:", "if lost:"),
    ("consumer", "if lost and result == INVALID:", "if result == INVALID:"),
    ("consumer", "if lost and result == INVALID:", "if False:"),
    ("consumer", "self._producer.cancel()\n        self._drop_queue()", "self._producer.cancel()"),
    ("consumer", "self._wanted = min(self._wanted + n, INT64_MAX)", "self._wanted = n"),
    ("consumer", "        if n:\n            self._producer.request(n)", "        self._producer.request(n)"),
]  # fmt: skip


@pytest.mark.parametrize(("side", "old", "new"), WRONG)
def test_wrong_reference_differs(
    side: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SOURCE.count(old) == 1, f"found {SOURCE.count(old)} times"
    monkeypatch.setattr(async_replay, "PATIENCE", 1)
    module = ModuleType("wrong_reference")
    exec(compile(SOURCE.replace(old, new), "wrong_reference", "exec"), module.__dict__)
    with pytest.raises((DifferenceError, IndexError, AttributeError)):
        replay(side, module)
