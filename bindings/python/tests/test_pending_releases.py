"""Releases that wait for a stream, and the end of the interpreter."""

from __future__ import annotations

import os
import sys
import threading

import pytest

import fletching
from capsules import ProducedOnDevice
from fletching import DeviceArray, pending_releases
from standin import Gpu, settled
from test_buffers import run

PINNED = 3


def test_pending_releases_counts_until_work_is_done(gpu: Gpu) -> None:
    before = settled()
    source = ProducedOnDevice(device_type=PINNED, device_id=0)
    stream = gpu.gated()
    array = DeviceArray.from_arrow(source)
    array.release_after(stream)
    assert pending_releases().pending == before.pending + 1
    gpu.open()
    while pending_releases().pending != before.pending:
        pass
    assert repr(before).startswith("PendingReleases(pending=")
    del array


def test_pending_releases_counts_running_callback(gpu: Gpu) -> None:
    inside, go = threading.Event(), threading.Event()

    class Slow(ProducedOnDevice):
        """An array whose memory is slow to release."""

        class Releases(list[str]):
            def append(self, what: str) -> None:
                if what == "array":
                    inside.set()
                    go.wait()

    source = Slow(device_type=PINNED, device_id=0)
    source.releases = Slow.Releases()
    before = settled()
    array = DeviceArray.from_arrow(source)
    array.release_after(gpu.gated())
    del array
    gpu.open()
    inside.wait()
    found = pending_releases()
    go.set()
    assert (found.pending, found.running) == (before.pending, before.running + 1)
    while pending_releases().running != before.running:
        pass


def test_pending_releases_counts_leak_by_captured_stream(gpu: Gpu) -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=PINNED, device_id=0))
    before, stream = settled(), gpu.stream()
    with stream.captured() as graph, pytest.raises(fletching.Error, match="captur"):
        array.release_after(stream)
    graph.destroy()
    assert pending_releases() == before._replace(leaked=before.leaked + 1)


def test_interpreter_end_waits_for_releases() -> None:
    """The releasing thread waits for the GIL, which is held when the program ends."""
    done = run(
        """
    import gc, sys, threading
    import standin
    from fletching import from_cuda_array_interface

    class Owner:
        def __del__(self):
            print("released", flush=True)

    def main():
        interface = {"shape": (4,), "typestr": "|u1", "data": (gpu.memory, False), "version": 3}
        array = from_cuda_array_interface(interface, owner=Owner())
        array.release_after(gpu.stream())

    gpu = standin.Gpu()
    sys.setswitchinterval(1000)
    main()
    """,
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "released\n", "")
    assert fletching.pending_releases().pending >= 0
