"""Events of real runtimes and of the stand-ins, behind the producer's gate."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import numpy
import pytest

import gates
from capsules import capsule_of
from fletching import DeviceArray, abi, from_dlpack
from gates import NEW, OLD, Gate, Queue, exported

BACKENDS = ["opencl", "cuda", "cuda_host", "cuda_managed", "rocm", "rocm_host"]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    reason = gates.absence(name)
    if reason:
        pytest.skip(f"{name}: {reason}")
    return name


@pytest.fixture
def gate(backend: str) -> Iterator[Gate]:
    with Gate(backend) as gate:
        yield gate


def test_the_three_operations(backend: str, gate: Gate) -> None:
    array = DeviceArray.from_arrow(gate)
    assert array.sync_event != 0
    with Queue(backend) as waiting, Queue(backend) as careless, gate.opened_at_the_end():
        assert not array.ready()
        assert repr(array).endswith("event pending>")
        array.wait_on(waiting.handle)
        struct = exported(array)
        careless.read(struct)
        assert careless.verify(OLD) > 0  # the negative control
        waiting.read(struct)
        assert not waiting.is_idle()
        gate.open()
        assert waiting.verify(NEW) > 0
        array.synchronize()
        assert array.ready()
        assert repr(array).endswith("event done>")
        abi.release(struct)


@pytest.mark.usefixtures("no_switches")
def test_the_gil_is_free_during_a_wait(gate: Gate) -> None:
    """Another Python thread opens the gate: with the GIL held this would not end."""
    array = DeviceArray.from_arrow(gate)
    waiting = threading.Event()

    def open_gate() -> None:
        assert waiting.wait(60)
        gate.open()

    opener = threading.Thread(target=open_gate)
    opener.start()
    waiting.set()
    array.synchronize()
    opener.join()
    assert array.ready()


def test_an_export_keeps_the_event(gate: Gate) -> None:
    struct = exported(DeviceArray.from_arrow(gate))
    gc.collect()
    again = DeviceArray.from_arrow(_Moved(struct))
    assert not again.ready()
    gate.open()
    again.synchronize()


class _Moved:
    def __init__(self, struct: abi.ArrowDeviceArray) -> None:
        self._struct, self._schema = struct, numpy.empty(0, "i4")

    def __arrow_c_device_array__(self, *_: object, **__: object) -> tuple[object, object]:
        schema = from_dlpack(self._schema).__arrow_c_device_array__()[0]
        return schema, capsule_of(self._struct)


def test_dlpack_waits(backend: str, gate: Gate) -> None:
    """The consumer's stream waits where there are streams, else the host."""
    array = DeviceArray.from_arrow(gate)
    if backend not in ("cuda", "rocm"):
        gate.open()
        array.__dlpack__(max_version=(1, 0))
        assert array.ready()
        return
    with Queue(backend) as queue, gate.opened_at_the_end():
        capsule = array.__dlpack__(max_version=(1, 0), stream=queue.handle)
        assert not array.ready()
        queue.read(gate_struct := exported(array))
        assert not queue.is_idle()
        gate.open()
        assert queue.verify(NEW) > 0
        abi.release(gate_struct)
        del capsule
