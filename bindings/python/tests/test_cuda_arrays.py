"""__cuda_array_interface__ both ways, events and releases, on the stand-in for CUDA."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy
import pytest

import fletching
import standin
from capsules import Produced, ProducedOnDevice, name_of
from fletching import Array, DeviceArray, check_cuda_array_interface, from_cuda_array_interface
from standin import Gpu

CUDA, PINNED, MANAGED = 2, 3, 13


class Peer:
    """An object of another library."""

    def __init__(self, gpu: Gpu, **changes: object) -> None:
        self.interface: dict[str, object] = {
            "shape": (3,),
            "typestr": "<i4",
            "data": (gpu.memory, False),
            "version": 3,
            **changes,
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return self.interface


def produced(gpu: Gpu, **fields: Any) -> ProducedOnDevice:
    """Returns three numbers in GPU memory."""
    source = ProducedOnDevice(device_type=CUDA, device_id=0, **fields)
    source._buffers[1] = gpu.memory
    return source


def dictionary_of(array: DeviceArray) -> dict[str, Any]:
    found: dict[str, Any] = array.__cuda_array_interface__
    assert check_cuda_array_interface(found) == []
    return found


# --- Import --------------------------------------------------------------------------------------


def test_rule_cai_entries(gpu: Gpu) -> None:
    array = from_cuda_array_interface(Peer(gpu))
    assert repr(array) == "<fletching.DeviceArray int32, length 3, cuda:0, no event>"
    assert set(dictionary_of(array)) >= {"shape", "typestr", "data", "version"}
    for key in ("shape", "typestr", "data", "version"):
        peer = Peer(gpu)
        del peer.interface[key]
        with pytest.raises(TypeError, match=f"got no {key} .*required-keys"):
            from_cuda_array_interface(peer)
    with pytest.raises(TypeError, match=r"got None .*interface\.dictionary"):
        peer.interface = None  # type: ignore[assignment]
        from_cuda_array_interface(peer)


def test_rule_cai_data_pair(gpu: Gpu) -> None:
    data = dictionary_of(from_cuda_array_interface(Peer(gpu)))["data"]
    assert data == (gpu.memory, False)
    assert [type(part) for part in data] == [int, bool]
    for wrong in (gpu.memory, [gpu.memory, False], (gpu.memory, 0), (None, False)):
        with pytest.raises(TypeError, match=r"\['data'\]: invalid: .*data-pair"):
            from_cuda_array_interface(Peer(gpu, data=wrong))


def test_rule_cai_version(gpu: Gpu) -> None:
    assert dictionary_of(from_cuda_array_interface(Peer(gpu, version=2)))["version"] == 3


def test_rule_cai_data_device_accessible(gpu: Gpu) -> None:
    local = numpy.zeros(3, "i4")
    with pytest.raises(fletching.Error, match="cuPointerGetAttribute"):
        from_cuda_array_interface(Peer(gpu, data=(local.ctypes.data, False)))


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [3]},
        {"typestr": b"<i4"},
        {"typestr": ">i4"},
        {"typestr": "<U4"},
        {"stream": 0},
        {"stream": True},
        {"strides": (8,)},
        {"strides": (4, 4)},
        {"shape": (-1,)},
        {"mask": 5},
        {"data": (0, False)},
        {"data": (-1, False)},
    ],
    ids=str,
)
def test_import_rejects_invalid_interface(gpu: Gpu, changes: dict[str, object]) -> None:
    peer = Peer(gpu, **changes)
    before = sys.getrefcount(peer)
    with pytest.raises(TypeError):
        from_cuda_array_interface(peer)
    gc.collect()
    assert sys.getrefcount(peer) == before


@pytest.mark.parametrize("key", ["stream", "version"])
def test_import_rejects_numbers_above_int64(gpu: Gpu, key: str) -> None:
    with pytest.raises(TypeError, match=r"number too large: expected at most 2\*\*63 - 1"):
        from_cuda_array_interface(Peer(gpu, **{key: 2**64 - 1}))


def test_import_rejects_object_without_interface() -> None:
    with pytest.raises(TypeError, match="has no __cuda_array_interface__"):
        from_cuda_array_interface(object())


def test_import_detects_pinned_and_managed_memory(gpu: Gpu) -> None:
    pinned = from_cuda_array_interface(Peer(gpu, data=(gpu.pinned, True)))
    assert (pinned.device_type, pinned.device_id) == (PINNED, 0)
    assert hasattr(pinned, "__cuda_array_interface__")
    assert hasattr(pinned, "__arrow_c_array__")
    managed = from_cuda_array_interface(Peer(gpu, data=(gpu.managed(), False)))
    assert managed.device_type == MANAGED


def test_rule_cai_zero_size_pointer(gpu: Gpu) -> None:
    empty = from_cuda_array_interface(Peer(gpu, shape=(0,), data=(0, False)))
    assert len(empty) == 0
    assert dictionary_of(empty)["data"] == (0, False)


def test_rule_cai_lifetime_owner_kept(gpu: Gpu) -> None:
    peer, owner = Peer(gpu), object()
    before = sys.getrefcount(peer), sys.getrefcount(owner)
    array = from_cuda_array_interface(peer)
    other = from_cuda_array_interface(peer.interface, owner)
    assert (sys.getrefcount(peer), sys.getrefcount(owner)) == (before[0] + 1, before[1] + 1)
    child = other.__arrow_c_device_array__()
    del array, other
    assert (sys.getrefcount(peer), sys.getrefcount(owner)) == (before[0], before[1] + 1)
    del child
    gc.collect()
    assert sys.getrefcount(owner) == before[1]


def test_import_keeps_mask(gpu: Gpu) -> None:
    mask, owner = Peer(gpu, typestr="<t1", data=(gpu.memory + 32, True)), object()
    before = sys.getrefcount(mask)
    array = from_cuda_array_interface(Peer(gpu, mask=mask).interface, owner)
    assert sys.getrefcount(mask) == before + 1
    del array
    gc.collect()
    assert sys.getrefcount(mask) == before


def test_rule_cai_sync_consumer_synchronizes(gpu: Gpu) -> None:
    """The import records an event after the producer's work; neither the import nor wait_on
    blocks."""
    producer = gpu.gated()
    array = from_cuda_array_interface(Peer(gpu, stream=producer.number))
    assert array.sync_event != 0
    assert standin.is_pending(array)
    assert "event pending" in repr(array)
    consumer = gpu.stream()
    array.wait_on(consumer)
    assert not consumer.is_idle()
    gpu.open()
    array.synchronize()
    consumer.finish()
    assert array.ready()
    assert "event done" in repr(array)


def test_rule_cai_sync_override_off_by_default(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer(gpu, stream=gpu.stream().number)
    name = "FLETCHING_CUDA_ARRAY_INTERFACE_SYNC"
    monkeypatch.delenv(name, raising=False)
    assert from_cuda_array_interface(peer).sync_event != 0
    assert from_cuda_array_interface(peer, sync=False).sync_event == 0
    for value, has_event in (("0", False), ("1", True), ("", True)):
        monkeypatch.setenv(name, value)
        assert (from_cuda_array_interface(peer).sync_event != 0) == has_event
        assert from_cuda_array_interface(peer, sync=False).sync_event == 0


def test_rule_cai_sync_blocks_producer_stream(gpu: Gpu) -> None:
    producer, consumer = gpu.stream(), gpu.gated()
    peer = Peer(gpu, stream=producer.number)
    array = from_cuda_array_interface(peer, stream=consumer)
    assert producer.is_idle()
    del array
    gc.collect()
    assert not producer.is_idle()
    gpu.open()
    producer.finish()


def test_rule_cai_stream_none_needs_no_sync(gpu: Gpu) -> None:
    before = standin.calls("cuEventRecord")
    assert from_cuda_array_interface(Peer(gpu, stream=None)).sync_event == 0
    assert standin.calls("cuEventRecord") == before


def test_import_driver_error_is_package_error(gpu: Gpu) -> None:
    standin.set_fault("cuEventRecord:1:CUDA_ERROR_LAUNCH_FAILED")
    peer = Peer(gpu, stream=gpu.stream().number)
    with pytest.raises(fletching.Error, match="cuEventRecord"):
        from_cuda_array_interface(peer)


# --- Export --------------------------------------------------------------------------------------


def test_attribute_exists_for_cuda_memory_only(gpu: Gpu) -> None:
    assert not hasattr(Array.from_arrow(Produced()), "__cuda_array_interface__")
    assert not hasattr(DeviceArray.from_arrow(Produced()), "__cuda_array_interface__")
    bits = ProducedOnDevice(format="b", device_type=CUDA, device_id=0)
    assert not hasattr(DeviceArray.from_arrow(bits), "__cuda_array_interface__")
    assert hasattr(DeviceArray.from_arrow(produced(gpu)), "__cuda_array_interface__")


def test_export_describes_array(gpu: Gpu) -> None:
    found = dictionary_of(DeviceArray.from_arrow(produced(gpu)))
    assert found == {
        "shape": (3,),
        "typestr": "<i4",
        "data": (gpu.memory, True),
        "version": 3,
        "strides": None,
        "stream": None,
    }


def test_exported_object_keeps_memory(gpu: Gpu) -> None:
    source = produced(gpu)
    array = DeviceArray.from_arrow(source)
    again = from_cuda_array_interface(array)
    assert again.__cuda_array_interface__["data"] == (gpu.memory, True)
    del array
    gc.collect()
    assert "array" not in source.releases
    del again
    gc.collect()
    assert sorted(source.releases) == ["array", "schema"]


def test_rule_cai_stream_covers_all_work(gpu: Gpu) -> None:
    """The named stream waits for the array's event."""
    array = DeviceArray.from_arrow(produced(gpu)).export_with_event(gpu.gated())
    named = array.__cuda_array_interface__["stream"]
    assert array.__cuda_array_interface__["stream"] == named
    mine = from_cuda_array_interface(array)
    assert standin.is_pending(mine)
    gpu.open()
    mine.synchronize()


def test_export_driver_failure_is_not_attribute_error(gpu: Gpu) -> None:
    array = DeviceArray.from_arrow(produced(gpu)).export_with_event(gpu.stream())
    standin.set_fault("cuStreamWaitEvent:1:CUDA_ERROR_LAUNCH_FAILED")
    with pytest.raises(fletching.Error, match="cuStreamWaitEvent"):
        hasattr(array, "__cuda_array_interface__")


def test_rule_cai_stream_none_without_work(gpu: Gpu) -> None:
    assert dictionary_of(DeviceArray.from_arrow(produced(gpu)))["stream"] is None


def test_rule_cai_stream_not_zero(gpu: Gpu) -> None:
    array = DeviceArray.from_arrow(produced(gpu)).export_with_event(1)
    assert array.__cuda_array_interface__["stream"] not in (0, None)


def test_rule_cai_mask(gpu: Gpu) -> None:
    source = produced(gpu)
    source._buffers[0], source.array.null_count = gpu.memory + 32, 1
    array = DeviceArray.from_arrow(source)
    mask = dictionary_of(array)["mask"]
    assert mask.__cuda_array_interface__["typestr"] == "<t1"
    assert mask.__cuda_array_interface__["data"] == (gpu.memory + 32, True)
    again = from_cuda_array_interface(array)
    assert again.null_count == -1
    before = sys.getrefcount(source)
    del array
    gc.collect()
    assert sys.getrefcount(source) == before
    assert "array" not in source.releases
    del again, mask
    gc.collect()
    assert "array" in source.releases


# --- Events and releases -------------------------------------------------------------------------


def test_export_with_event_after_own_work_waits_for_first_event(gpu: Gpu) -> None:
    """The second event follows the first, and remains valid after the first array is gone."""
    first = DeviceArray.from_arrow(produced(gpu)).export_with_event(gpu.gated())
    work = gpu.stream()
    second = first.export_with_event(work)
    assert second.sync_event not in (0, first.sync_event)
    del first
    gc.collect()
    assert standin.is_pending(second)
    gpu.open()
    second.synchronize()
    assert work.is_idle()


def test_writable_memory_is_exported_to_older_consumer(gpu: Gpu) -> None:
    """The struct from before DLPack 1.0 cannot mark memory as read-only."""
    writable = from_cuda_array_interface(Peer(gpu))
    assert name_of(writable.__dlpack__()) == b"dltensor"
    described = Peer(gpu, data=(gpu.memory, True))
    with pytest.raises(BufferError, match="expected memory that the CPU can read"):
        from_cuda_array_interface(described).__dlpack__()
