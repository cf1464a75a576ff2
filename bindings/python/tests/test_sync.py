"""The host waits for data that it reads, without the GIL: in each test another Python thread opens
the gate. If the wait held the GIL, that thread could not run and the test would hang."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from signal import SIGINT
from typing import Any

import pytest

import standin
from capsules import ProducedOnDevice, TensorProducer, tensor_in
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, from_dlpack
from standin import Gpu
from test_dlpack_table import export

PINNED, MANAGED = 3, 13

READS: dict[str, Callable[[DeviceArray], object]] = {
    "synchronize": lambda array: array.synchronize(),
    "Array.from_arrow": lambda array: Array.from_arrow(DeviceOnly(array)),
    "__arrow_c_array__": lambda array: array.__arrow_c_array__(),
    "to_numpy": lambda array: array.to_numpy(),
    "__dlpack__": lambda array: array.__dlpack__(max_version=(1, 0)),
    "a copy": lambda array: array.__dlpack__(max_version=(1, 0), copy=True),
    "for the CPU": lambda array: array.__dlpack__(max_version=(1, 0), dl_device=(1, 0)),
    "the function table": lambda array: export(array).deleter,
    "from_dlpack": from_dlpack,
    "a stream": lambda array: next(ArrayStream.from_arrow(stream_of(array))),
    "an exported stream": lambda array: next(ArrayStream.from_arrow(StreamOnly(stream_of(array)))),
}


class DeviceOnly:
    """Has no CPU method."""

    def __init__(self, array: DeviceArray) -> None:
        self.__arrow_c_device_array__ = array.__arrow_c_device_array__


class StreamOnly:
    """Has no device method."""

    def __init__(self, stream: Any) -> None:
        self.__arrow_c_stream__ = stream.__arrow_c_stream__


def stream_of(array: DeviceArray) -> DeviceArrayStream:
    return DeviceArrayStream.from_batches(array.schema, array.device_type, [array])


def after(event: threading.Event, call: Callable[[], object]) -> None:
    event.wait()
    call()


@pytest.mark.usefixtures("no_switches")
@pytest.mark.parametrize("name", READS)
def test_host_read_wait_releases_gil(gpu: Gpu, name: str) -> None:
    array = DeviceArray.from_arrow(ProducedOnDevice(device_type=PINNED, device_id=0))
    array = array.export_with_event(gpu.gated())
    reading = threading.Event()

    opener = threading.Thread(target=after, args=(reading, gpu.open))
    opener.start()
    before = standin.calls("cuEventSynchronize")
    reading.set()
    found = READS[name](array)
    assert standin.calls("cuEventSynchronize") == before + 1
    assert array.ready()
    opener.join()
    del found


USES: dict[str, Callable[[Any], object]] = {
    "repr": repr,
    "schema": lambda stream: stream.schema,
    "next": lambda stream: next(stream, None),
    "close": lambda stream: stream.close(),
    "export": lambda stream: stream.__arrow_c_device_stream__(),
}


@pytest.mark.usefixtures("no_switches")
@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
@pytest.mark.parametrize("name", USES)
def test_wait_for_stream_in_use_releases_gil(kind: Any, name: str) -> None:
    source = DeviceArray.from_arrow(ProducedOnDevice())
    inside, using, go = threading.Event(), threading.Event(), threading.Event()

    def batches() -> Iterator[DeviceArray]:
        inside.set()
        go.wait()
        yield source

    arguments = (source.schema,) if kind is ArrayStream else (source.schema, 1)
    stream = kind.from_batches(*arguments, batches())
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(next(stream)))
    reader.start()
    inside.wait()
    opener = threading.Thread(target=after, args=(using, go.set))
    opener.start()
    using.set()
    USES[name](stream)
    reader.join()
    opener.join()
    assert len(found) == 1


def test_cpu_stream_from_pinned_and_managed_memory() -> None:
    for device in (PINNED, MANAGED):
        source = DeviceArray.from_arrow(ProducedOnDevice(device_type=device, device_id=0))
        stream = stream_of(source)
        assert hasattr(stream, "__arrow_c_stream__")
        assert len(next(ArrayStream.from_arrow(StreamOnly(stream)))) == 3


@pytest.mark.usefixtures("no_switches")
def test_strided_copy_wait_releases_gil(gpu: Gpu) -> None:
    """The wait is for the consumer's stream, which the producer has synchronized with its work."""
    array = DeviceArray.from_arrow(ProducedOnDevice((1, 2, 3), device_type=PINNED, device_id=0))
    capsule = array.__dlpack__(max_version=(1, 0), stream=-1)
    tensor = tensor_in(capsule).dl_tensor
    tensor.shape[0], tensor.strides[0] = 2, 2
    stream, reading = gpu.gated(), threading.Event()
    opener = threading.Thread(target=after, args=(reading, gpu.open))
    opener.start()
    reading.set()
    found = from_dlpack(TensorProducer(capsule, (PINNED, 0)), stream=stream.number)
    assert stream.is_idle()
    assert found.to_numpy().tolist() == [1, 3]
    opener.join()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Installs Python's SIGINT handler, which a background job of a shell does not have."""
    before = signal.signal(SIGINT, signal.default_int_handler)
    yield
    signal.signal(SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_synchronize_ctrl_c_interrupts(gpu: Gpu) -> None:
    """The wait itself continues, and keeps the array until the gate is open."""
    source = ProducedOnDevice(device_type=PINNED, device_id=0)
    array = DeviceArray.from_arrow(source).export_with_event(gpu.gated())
    waiting = threading.Event()
    interrupt = threading.Thread(target=after, args=(waiting, lambda: signal.raise_signal(SIGINT)))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        waiting.set()
        array.synchronize()
    interrupt.join()
    assert not array.ready()
    gpu.open()
    array.synchronize()
    assert array.ready()
