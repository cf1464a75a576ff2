"""check() of arrays: the rules that they break."""

from __future__ import annotations

import ctypes
import errno

import pytest

import corpus
from capsules import GivenStructs, Produced, ProducedOnDevice
from corpus import Case, each
from fletching import Array, DeviceArray, Error, abi
from fletching._finding import Finding


def imported(case: Case) -> DeviceArray | None:
    """Returns the array, or None if the import rejects it."""
    with GivenStructs("device_array", corpus.schema_of(case), corpus.array_of(case)) as given:
        try:
            return DeviceArray.from_arrow(given)
        except (Error, TypeError):
            return None


@each(corpus.ARRAY)
def test_check_corpus_case_finds_rule(case: Case) -> None:
    array = imported(case)
    if array is None:
        assert not case.accepted
        return
    found = array.check("data")
    rules = {finding.rule for finding in found}
    assert bool(rules) != case.accepted, found
    assert not case.rule or case.rule in rules
    assert {finding.rule for finding in array.check()} <= rules


def test_check_finding_has_path_and_message() -> None:
    source = Produced(format="g")
    source.array.n_buffers = 1
    array = Array.from_arrow(source)
    [finding] = array.check()
    assert isinstance(finding, Finding)
    assert finding.rule == "array.n-buffers-of-type"
    assert str(finding) == (
        "array: n_buffers is wrong: expected 2, got 1 (rule array.n-buffers-of-type)"
    )
    assert array.check("data") == [finding]


def test_check_shape_does_not_read_data() -> None:
    bits = ctypes.create_string_buffer(b"\5")
    source = Produced()
    source.array.null_count, source.array.buffers[0] = 2, ctypes.addressof(bits)
    array = Array.from_arrow(source)
    assert array.check() == array.check("shape") == []
    assert [finding.rule for finding in array.check("data")] == ["array.null-count-correct"]
    with pytest.raises(Error, match="level: expected 'shape' or 'data', got \"all\""):
        array.check("all")  # type: ignore[arg-type]


def test_check_failed_wait_raises() -> None:
    source = ProducedOnDevice(device_type=abi.ARROW_DEVICE_EXT_DEV, sync_event=16)
    array = DeviceArray.from_arrow(source)
    assert array.check() == []
    with pytest.raises(Error) as raised:
        array.check("data")
    assert raised.value.errno == errno.ENOTSUP
