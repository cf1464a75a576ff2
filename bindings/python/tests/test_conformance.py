"""Runs the conformance suite (tests/conformance) on the package, one test per group."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import subjects
from capsules import GivenStructs
from fletching import DeviceArrayStream
from subjects import SUBJECTS, Subject, Views

# Python lacks a batch whose extraction fails, and an application that rejects or discards a
# batch.
UNSUPPORTED = {"producer-traces": 17, "consumer-traces": 9}


@pytest.mark.parametrize("group", subjects.groups())
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_subject_passes_group(subject: Subject, group: str) -> None:
    results = subjects.play(subject, group)
    assert [text for verdict, text in results if verdict == "wrong"] == []
    counts = Counter(verdict for verdict, _ in results)
    del counts["absent"]  # this machine lacks the device
    assert counts["right"] > 0
    assert counts["not-supported"] == UNSUPPORTED.get(group, 0)


class Dropping(Views):
    """A subject that loses the first batch of a stream."""

    def device_stream(self, given: Any, out: Any) -> None:
        stream = DeviceArrayStream.from_arrow(GivenStructs("device_stream", given.contents))
        next(stream)
        through = DeviceArrayStream.from_batches(stream.schema, stream.device_type, stream)
        subjects.hand_out(through.__arrow_c_device_stream__(), out)


def test_lost_batch_is_reported() -> None:
    results = subjects.play(Subject("dropping", Dropping()), "device-streams")
    wrong = [text for verdict, text in results if verdict == "wrong"]
    assert any("stream.good: accepted: expected 3 batches, got 2" in text for text in wrong)
