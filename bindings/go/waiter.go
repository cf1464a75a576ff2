// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"fmt"
	"sync"
	"syscall"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Waiter is how to wait on the events of a device type that this package does not call itself: of
// SYCL, of Metal, of Vulkan, of ext_dev, of device types that are newer than the package.
//
// Embed [UnsupportedWaiter] for the methods that the runtime does not support. All may be called from
// any goroutine, several at once. Text: Arrow C device data interface, "Synchronization Events".
type Waiter interface {
	// Synchronize blocks until the event has happened. It may return ctx.Err() when the context ends
	// first; when it does not, [DeviceArray.Synchronize] does, and this runs on.
	Synchronize(ctx context.Context, event SyncEvent) error

	// WaitOn lets what is enqueued on the stream from now on wait for the event, and returns while it
	// is still pending.
	WaitOn(event SyncEvent, stream Stream) error

	// Ready reports whether the event has happened. It does not block.
	Ready(event SyncEvent) (bool, error)
}

// UnsupportedWaiter returns ENOTSUP from every method.
type UnsupportedWaiter struct{}

// Synchronize returns ENOTSUP.
func (UnsupportedWaiter) Synchronize(_ context.Context, event SyncEvent) error {
	return notOfWaiter("synchronize", event)
}

// WaitOn returns ENOTSUP.
func (UnsupportedWaiter) WaitOn(event SyncEvent, _ Stream) error {
	return notOfWaiter("wait_on", event)
}

// Ready returns ENOTSUP.
func (UnsupportedWaiter) Ready(event SyncEvent) (bool, error) {
	return false, notOfWaiter("ready", event)
}

func notOfWaiter(operation string, event SyncEvent) error {
	return unsupported("%s of an event of %v: not supported by the registered waiter", operation, event.DeviceType)
}

func unsupported(format string, values ...any) error {
	return NewError(syscall.ENOTSUP, fmt.Sprintf(format, values...), nil)
}

var waiters sync.Map // of Waiter by abi.DeviceType

// RegisterWaiter registers how to wait on the events of a device type, for this process. A waiter
// that was there is replaced; calls that have begun finish with it. From any goroutine.
//
// Errors: EINVAL for nil, and for a device type that is waited on without one: of CUDA, HIP and
// OpenCL.
func RegisterWaiter(deviceType abi.DeviceType, waiter Waiter) error {
	if waiter == nil {
		return invalid("register_waiter: waiter is nil: expected a waiter")
	}
	if vendorOf(deviceType) != nil {
		return invalid("register_waiter: %v needs no waiter: expected a device type without a runtime in Fletching", deviceType)
	}
	waiters.Store(deviceType, waiter)
	return nil
}

// UnregisterWaiter removes the waiter of a device type. It returns false when there was none.
func UnregisterWaiter(deviceType abi.DeviceType) bool {
	_, found := waiters.LoadAndDelete(deviceType)
	return found
}

// waiterOf is the runtime of a device type, or the waiter that was registered. Errors: ENOTSUP, with
// the reason why there is no way to wait.
func waiterOf(operation string, deviceType abi.DeviceType) (Waiter, error) {
	if ours := vendorOf(deviceType); ours != nil {
		return ours, nil
	}
	if found, _ := waiters.Load(deviceType); found != nil {
		return found.(Waiter), nil
	}
	info, known := deviceType.Info()
	switch {
	case runtimeOf(deviceType) == vulkanRuntime:
		return nil, unsupported("%s: VkEvent without its VkDevice and VkQueue; hint: pass a VulkanContext, or register "+
			"a waiter", operation)
	case known && info.EventPointer == abi.EventNone:
		return nil, unsupported("%s: no way to wait on an event of %v: expected sync_event NULL on this device type",
			operation, deviceType)
	}
	return nil, unsupported("%s: no way to wait on an event of %v; hint: register a waiter for this device type",
		operation, deviceType)
}
