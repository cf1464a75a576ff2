"""One backend of the producer, and how the package waits for its events."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_int, c_uint32, c_void_p

import fletching
from fletching import DeviceArray, VulkanContext, abi
from libraries import declare, load
from producer import Message


class _VulkanHandles(ctypes.Structure):
    """FletchingProducerVulkan"""

    _fields_ = (
        *((name, c_void_p) for name in ("instance", "physical_device", "device", "queue")),
        *((name, c_uint32) for name in ("queue_family", "set_stages")),
        ("get_device_proc_addr", c_void_p),
    )


def _vulkan_context() -> VulkanContext:
    handles, message = _VulkanHandles(), Message()
    function = declare(
        load("libfletching_producer.so"),
        "FletchingProducerVulkanHandles",
        c_int,
        POINTER(_VulkanHandles),
        POINTER(Message),
    )
    if function(handles, message) != 0:
        raise OSError(message.text.decode())
    return VulkanContext(
        device=handles.device,
        producer_queue=handles.queue,
        queue=handles.queue,
        set_stages=handles.set_stages,
        get_device_proc_addr=handles.get_device_proc_addr,
    )


class _ExtDevEvent(ctypes.Structure):
    """FletchingExtDevEvent"""

    _fields_ = (
        ("query", CFUNCTYPE(c_int, c_void_p)),
        ("synchronize", CFUNCTYPE(None, c_void_p)),
        ("wait_on", CFUNCTYPE(c_int, c_void_p, c_void_p)),
    )


class _ExtDevWaiter:
    """What a consumer of ext_dev registers."""

    def synchronize(self, event: int) -> None:
        _ExtDevEvent.from_address(event).synchronize(event)

    def wait_on(self, event: int, stream: int) -> None:
        code = _ExtDevEvent.from_address(event).wait_on(event, stream)
        if code != 0:
            raise OSError(code, "wait_on of ext_dev")

    def ready(self, event: int) -> bool:
        return bool(_ExtDevEvent.from_address(event).query(event))


class Device:
    """The three operations. cpu has no queues, hence no gate and no event."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.has_queues = backend != "cpu"
        self._vulkan = _vulkan_context() if backend == "vulkan" else None
        if backend == "ext_dev":
            fletching.register_waiter(abi.ARROW_DEVICE_EXT_DEV, _ExtDevWaiter())

    def synchronize(self, array: DeviceArray) -> None:
        if self._vulkan:
            self._vulkan.synchronize(array)
        else:
            array.synchronize()

    def wait_on(self, array: DeviceArray, handle: int) -> None:
        if self._vulkan:
            self._vulkan.wait_on(array, handle)
        else:
            array.wait_on(handle)

    def ready(self, array: DeviceArray) -> bool:
        return self._vulkan.ready(array) if self._vulkan else array.ready()
