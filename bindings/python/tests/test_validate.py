"""validate(), validate_handler() and report_live(): the validation layer of libfletching."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator

import pyarrow
import pytest

from capsules import Produced, ProducedOnDevice
from fletching import (
    Array,
    ArrayStream,
    AsyncDeviceArrayStream,
    AsyncHandler,
    DeviceArray,
    DeviceArrayStream,
    Error,
    Stress,
    _validate,
    abi,
    from_capsule,
    report_live,
    validate,
    validate_handler,
)
from fletching._finding import Finding
from libraries import library_path
from producer import Producer

ALL = Stress.POISON | Stress.MOVE | Stress.PRIVATE_DATA | Stress.THREAD | Stress.DELAY


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loads libfletching from the build, and clears the cached library after each test."""
    monkeypatch.setenv("FLETCHING_LIBRARY", str(library_path("libfletching.so")))
    _validate._load.cache_clear()
    yield
    _validate._load.cache_clear()


def array_stream(n_buffers: int) -> ArrayStream:
    source = Produced()
    source.array.n_buffers = n_buffers
    batch = Array.from_arrow(source)
    return ArrayStream.from_batches(batch.schema, [batch])


def device_stream(n_buffers: int) -> DeviceArrayStream:
    source = ProducedOnDevice()
    source.array.n_buffers = n_buffers
    batch = DeviceArray.from_arrow(source)
    return DeviceArrayStream.from_batches(batch.schema, 1, [batch])


@pytest.mark.parametrize("make", [array_stream, device_stream])
def test_validate_reports_broken_array(
    make: Callable[[int], ArrayStream | DeviceArrayStream],
) -> None:
    for n_buffers, rules in (2, []), (1, ["array.n-buffers-of-type"]):
        found: list[Finding] = []
        stream = make(n_buffers)
        validated = validate(stream, found.append)
        assert type(validated) is type(stream)
        assert validated.schema.format == "i"
        assert [len(batch) for batch in validated] == [3]
        assert [finding.rule for finding in found] == rules
        assert all(one.party == "producer" and "get_next" in one.history for one in found)


def test_validate_protocol_reads_no_array() -> None:
    found: list[Finding] = []
    validated = validate(array_stream(1), found.append, "protocol")
    assert (validated.schema.format, len(list(validated)), found) == ("i", 1, [])


def test_validate_correct_stream_under_stress_has_no_findings() -> None:
    found: list[Finding] = []
    table = pyarrow.table({"n": [1, None], "t": ["a", "b"]})
    assert pyarrow.table(validate(table, found.append, "data", ALL)).equals(table)
    assert found == []


def test_validate_stress_invalidates_private_data() -> None:
    for stress in Stress.NONE, Stress.PRIVATE_DATA:
        validated = validate(array_stream(2), print, stress=stress)
        assert isinstance(validated, ArrayStream)
        raw = from_capsule(validated.__arrow_c_stream__(), abi.ArrowArrayStream)
        assert ((raw.private_data or 0) >> 63 == 1) == (stress is Stress.PRIVATE_DATA)
        abi.release(raw)


def test_validate_handler_of_correct_stream_has_no_findings() -> None:
    found: list[Finding] = []

    def start(handler: AsyncHandler) -> None:
        Producer().run_async("int32", 2, -1, validate_handler(handler, found.append).take())

    async def lengths() -> list[int]:
        return [len(batch) async for batch in AsyncDeviceArrayStream.connect(start)]

    assert asyncio.run(lengths()) == [4, 4]
    assert found == []


def test_validate_handler_reports_task_before_schema() -> None:
    found: list[Finding] = []

    def start(handler: AsyncHandler) -> None:
        address = validate_handler(handler, found.append).take()
        raw = abi.ArrowAsyncDeviceStreamHandler.from_address(address)
        assert raw.on_next_task(raw, None, None) == errno.EINVAL
        abi.release(raw)

    async def run() -> None:
        AsyncDeviceArrayStream.connect(start)

    asyncio.run(run())
    assert "async-schema.first-and-once" in {finding.rule for finding in found}


def test_validate_exception_in_report_is_not_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda hook: raised.append(hook.exc_type))

    def report(finding: Finding) -> None:
        raise LookupError

    validated = validate(array_stream(1), report)
    assert (validated.schema.format, len(list(validated))) == ("i", 1)
    assert raised == [LookupError]


def test_report_live_counts_batch_of_caller() -> None:
    found: list[Finding] = []
    batch = next(validate(array_stream(2), found.append))
    assert report_live() >= 1
    assert {finding.path for finding in found} == {"get_schema[0].schema", "get_next[0].array"}
    del batch


def test_validate_rejects_wrong_arguments() -> None:
    stream = array_stream(2)
    with pytest.raises(Error, match="level: expected one of 'protocol'") as raised:
        validate(stream, print, "all")  # type: ignore[arg-type]
    assert raised.value.errno == errno.EINVAL
    assert len(list(stream)) == 1
    with pytest.raises(TypeError, match="validate: expected a stream, got Array"):
        validate(Produced(), print)


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("libfletching_missing.so", errno.ENOENT, "libfletching_missing.so.*; hint: install it"),
        ("libfletching_corpus.so", errno.ENOSYS, "has no FletchingCheckLayout; hint"),
    ],
)
def test_validate_without_library_raises(
    monkeypatch: pytest.MonkeyPatch, name: str, code: int, text: str
) -> None:
    monkeypatch.setenv("FLETCHING_LIBRARY", str(library_path(name)))
    with pytest.raises(Error, match=text) as raised:
        report_live()
    assert raised.value.errno == code


def test_validate_rejects_library_with_other_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_validate, "layout", int)
    with pytest.raises(Error, match="layout: expected the structs of version") as raised:
        report_live()
    assert raised.value.errno == errno.EINVAL


def test_validate_handler_rejected_handler_stays_usable() -> None:
    found: list[Finding] = []
    handlers: list[AsyncHandler] = []

    async def run() -> None:
        stream = AsyncDeviceArrayStream.connect(handlers.append)
        with pytest.raises(Error, match="level"):
            validate_handler(handlers[0], found.append, "all")  # type: ignore[arg-type]
        Producer().run_async("int32", 1, -1, handlers[0].take())
        assert [len(batch) async for batch in stream] == [4]

    asyncio.run(run())
