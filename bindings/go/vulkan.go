// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

/*
#include <stddef.h>
#include <stdint.h>

// FletchingVulkanWaitContext of fletching/c_api.h.
struct VulkanWaitContext {
  void* device;
  void* producer_queue;
  void* queue;
  uint32_t set_stages;
  void (*get_device_proc_addr)(void);
};

typedef int (*Simple)(const void*, const struct VulkanWaitContext*, char*);
typedef int (*With)(const void*, const struct VulkanWaitContext*, void*, char*);

// `extra` is the command buffer, or `ready` where that is not NULL. Handles are numbers in Go.
static int call(void* function, void* array, const uintptr_t handles[4], uint32_t stages,
                uintptr_t extra, int* ready, char* text) {
  const struct VulkanWaitContext context = {(void*)handles[0], (void*)handles[1], (void*)handles[2],
                                            stages, (void (*)(void))handles[3]};
  if (ready != NULL) return ((With)function)(array, &context, ready, text);
  if (extra != 0) return ((With)function)(array, &context, (void*)extra, text);
  return ((Simple)function)(array, &context, text);
}
*/
import "C"

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// VulkanContext is what a wait on a VkEvent needs: the interface does not hand over what the event
// belongs to, so the producer has to pass it separately. The handles live as long as the value is
// used, and as long as a command buffer with the wait is pending.
type VulkanContext struct {
	// Device is the VkDevice with which the producer created the event.
	Device uintptr

	// ProducerQueue is the VkQueue on which the producer sets the event, Queue the one to which the
	// caller submits. Only WaitOnVulkan needs them.
	ProducerQueue, Queue uintptr

	// SetStages are the VkPipelineStageFlags with which the producer sets the event, 0 for all
	// commands. Only WaitOnVulkan needs them.
	SetStages uint32

	// GetDeviceProcAddr is the vkGetDeviceProcAddr of the device, 0 for the functions of the loader.
	GetDeviceProcAddr uintptr
}

// The names of libfletching by GOOS.
var libfletching = map[string][]string{
	"linux":   {"libfletching.so.0.1", "libfletching.so"},
	"windows": {"fletching.dll"},
	"darwin":  {"libfletching.0.1.dylib", "libfletching.dylib"},
}

// vulkanEvent is a copy of an array with an event of Vulkan; nil without an event.
func (a *DeviceArray) vulkanEvent(operation string) (*abi.ArrowDeviceArray, error) {
	event, err := a.event(operation)
	if err != nil || event.Address == 0 {
		return nil, err
	}
	if event.DeviceType != abi.DeviceVulkan {
		return nil, invalid("VulkanContext: expected an event of Vulkan, got one of %v", event.DeviceType)
	}
	raw := *a.get()
	return &raw, nil
}

// call calls a function of libfletching.
func (c VulkanContext) call(name string, array *abi.ArrowDeviceArray, commandBuffer uintptr, ready *C.int) error {
	library, err := openLibrary("Vulkan events through libfletching", libfletching[runtime.GOOS])
	if err != nil {
		return err
	}
	function, err := library.symbol(name)
	if err != nil {
		return err
	}
	handles := [4]C.uintptr_t{C.uintptr_t(c.Device), C.uintptr_t(c.ProducerQueue), C.uintptr_t(c.Queue),
		C.uintptr_t(c.GetDeviceProcAddr)}
	var text [1024]C.char
	code := C.call(function, unsafe.Pointer(array), &handles[0], C.uint32_t(c.SetStages), C.uintptr_t(commandBuffer), ready, &text[0])
	if code != 0 {
		return foreign(int32(code), printable(C.GoString(&text[0])))
	}
	return nil
}

// SynchronizeVulkan is Synchronize for Vulkan, through libfletching, which is loaded at run time.
// Vulkan has no host wait for a VkEvent: it is asked again and again, with sleeps of up to a
// millisecond in between. The event must not be one that only the device can use.
//
// Errors: as for Synchronize; ENOENT without libfletching.
func (a *DeviceArray) SynchronizeVulkan(ctx context.Context, of VulkanContext) error {
	array, err := a.vulkanEvent("synchronize")
	if err != nil || array == nil {
		return err
	}
	return a.waitUntil(ctx, func() error {
		return of.call("FletchingDeviceArraySynchronizeVulkan", array, 0, nil)
	})
}

// WaitOnVulkan records a wait for the event into a command buffer: commands behind it see what was
// written before the event. It has to be submitted to the producer's queue, since a VkEvent orders the
// commands of one queue only; ENOTSUP for another one. It does not block.
//
// The command buffer is a VkCommandBuffer in the recording state and outside of a render pass, used by
// this thread alone. The array lives until the command buffer is done.
func (a *DeviceArray) WaitOnVulkan(of VulkanContext, commandBuffer uintptr) error {
	array, err := a.vulkanEvent("wait_on")
	if err != nil || array == nil {
		return err
	}
	if commandBuffer == 0 {
		return invalid("wait_on: command buffer is NULL: expected a VkCommandBuffer")
	}
	defer runtime.KeepAlive(a)
	return of.call("FletchingDeviceArrayWaitOnVulkan", array, commandBuffer, nil)
}

// ReadyVulkan reports whether the event has happened. It does not block. The event must not be one
// that only the device can use.
func (a *DeviceArray) ReadyVulkan(of VulkanContext) (bool, error) {
	array, err := a.vulkanEvent("ready")
	if err != nil || array == nil {
		return err == nil, err
	}
	defer runtime.KeepAlive(a)
	var ready C.int
	err = of.call("FletchingDeviceArrayReadyVulkan", array, 0, &ready)
	return err == nil && ready != 0, err
}
