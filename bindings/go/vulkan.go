// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "events.h"
import "C"

import (
	"context"
	"runtime"
)

// VulkanContext contains the objects for a wait on a VkEvent. The interface does not pass them with the
// event, so the producer must pass them separately. The handles must be valid while the value is
// used, and while a command buffer with the wait is pending.
type VulkanContext struct {
	// Device is the VkDevice on which the producer created the event.
	Device uintptr

	// ProducerQueue is the VkQueue on which the producer sets the event, Queue the VkQueue to which the
	// caller submits. Only WaitOnVulkan needs them.
	ProducerQueue, Queue uintptr

	// SetStages are the VkPipelineStageFlags with which the producer sets the event, 0 for all
	// commands. Only WaitOnVulkan needs them.
	SetStages uint32

	// GetDeviceProcAddr is the device's vkGetDeviceProcAddr, 0 for the functions of the loader.
	GetDeviceProcAddr uintptr
}

func (c VulkanContext) numbers() C.struct_VulkanNumbers {
	return C.struct_VulkanNumbers{
		device: C.uintptr_t(c.Device), producer_queue: C.uintptr_t(c.ProducerQueue), queue: C.uintptr_t(c.Queue),
		get_device_proc_addr: C.uintptr_t(c.GetDeviceProcAddr), set_stages: C.uint32_t(c.SetStages),
	}
}

// SynchronizeVulkan is Synchronize for Vulkan. Vulkan has no host wait for a VkEvent, so the event is queried with pauses
// of up to a millisecond. It must not be a device-only event. Errors: as for Synchronize.
func (a *DeviceArray) SynchronizeVulkan(ctx context.Context, of VulkanContext) error {
	const operation = "SynchronizeVulkan"
	raw, _, err := a.waiting(operation)
	if raw == nil {
		return err
	}
	defer runtime.KeepAlive(a)
	return waitUntil(ctx, operation, func() (bool, error) { return readyOf(operation, C.ready_vulkan(cDeviceArray(raw), of.numbers())) },
		func() error { return errorOf(operation, C.synchronize_vulkan(cDeviceArray(raw), of.numbers())) })
}

// WaitOnVulkan records a wait for the event into a VkCommandBuffer in the recording state and outside of a render pass,
// which no other thread may use during the call. Later commands see the producer's writes. It does not block. ENOTSUP
// unless Queue is ProducerQueue, because a VkEvent orders the commands of one queue. The array must outlive the
// execution.
func (a *DeviceArray) WaitOnVulkan(of VulkanContext, commandBuffer uintptr) error {
	raw, _, err := a.waiting("WaitOnVulkan")
	if raw == nil {
		return err
	}
	defer runtime.KeepAlive(a)
	return errorOf("WaitOnVulkan", C.wait_on_vulkan(cDeviceArray(raw), of.numbers(), C.uintptr_t(commandBuffer)))
}

// ReadyVulkan is Ready for Vulkan. The event must not be a device-only event.
func (a *DeviceArray) ReadyVulkan(of VulkanContext) (bool, error) {
	raw, _, err := a.waiting("ReadyVulkan")
	if raw == nil {
		return err == nil, err
	}
	defer runtime.KeepAlive(a)
	return readyOf("ReadyVulkan", C.ready_vulkan(cDeviceArray(raw), of.numbers()))
}
