"""Streams under capture into a graph, on the stand-in for CUDA."""

from __future__ import annotations

import pytest

import fletching
import standin
from capsules import ProducedOnDevice
from fletching import DeviceArray, OnCapture, pending_releases
from standin import Gpu, settled


def produced() -> DeviceArray:
    return DeviceArray.from_arrow(ProducedOnDevice(device_type=2, device_id=0))


def test_captured_stream_returns_ebusy(gpu: Gpu) -> None:
    array, stream = produced(), gpu.stream()
    awaited = array.export_with_event(gpu.stream())
    with stream.captured() as graph:
        for method in (awaited.wait_on, array.export_with_event, array.release_after):
            with pytest.raises(fletching.Error, match="captur") as caught:
                method(stream)
            assert caught.value.errno == 16
            name = "OnCapture.EXTERNAL"  # Python's name, not C++'s
            assert (name in str(caught.value)) == (method.__name__ != "release_after")
    graph.destroy()


def test_kept_array_is_released_after_capture(gpu: Gpu) -> None:
    array, stream = produced(), gpu.stream()
    before = settled()
    with stream.captured() as graph:
        array.release_after(stream, on_capture=OnCapture.KEEP)
        assert pending_releases().pending == before.pending + 1
    while pending_releases().pending != before.pending:
        pass
    graph.destroy()


def test_external_events_follow_each_launch(gpu: Gpu) -> None:
    """A graph that waits for an event and records an array's event."""
    stream = gpu.stream()
    awaited = produced().export_with_event(gpu.gated())
    with stream.captured() as graph:
        awaited.wait_on(stream, on_capture=OnCapture.EXTERNAL)
        array = produced().export_with_event(stream, on_capture=OnCapture.EXTERNAL)
    assert array.ready()  # not recorded yet
    graph.launch()
    assert standin.is_pending(array)
    gpu.open()
    array.synchronize()
    graph.launch()
    array.synchronize()
    graph.destroy()


def test_on_capture_has_no_effect_on_other_streams(gpu: Gpu) -> None:
    stream = gpu.stream()
    for on_capture in OnCapture:
        array = produced().export_with_event(stream, on_capture=on_capture)
        array.wait_on(stream, on_capture=on_capture)
        array.synchronize()


@pytest.mark.parametrize("value", [1, "EXTERNAL", None])
def test_on_capture_rejects_other_types(gpu: Gpu, value: object) -> None:
    array, stream = produced(), gpu.stream()
    for method in (array.wait_on, array.export_with_event, array.release_after):
        with pytest.raises(TypeError):
            method(stream, on_capture=value)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        array.wait_on(stream, OnCapture.EXTERNAL)  # type: ignore[call-arg]
