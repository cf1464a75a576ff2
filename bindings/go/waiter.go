// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "fletching_core.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Waiter waits on the events of a device type whose runtime this package does not support, such as SYCL, Metal and
// ext_dev. Embed [UnsupportedWaiter] for the methods that the runtime does not support. The methods may be called
// concurrently from any goroutine. See "Synchronization Events" in the Arrow C device data interface.
type Waiter interface {
	// Synchronize blocks until the event completes. [DeviceArray.Synchronize] calls it with a context that
	// cannot end; if the context can end, it polls Ready instead. If Ready returns ENOTSUP, it calls Synchronize
	// with a context that can end, and Synchronize must return ctx.Err() when the context ends.
	Synchronize(ctx context.Context, event SyncEvent) error

	// WaitOn makes later work on the stream wait for the event, and returns without waiting.
	WaitOn(event SyncEvent, stream Stream) error

	// Ready reports whether the event has completed. It does not block.
	Ready(event SyncEvent) (bool, error)
}

// UnsupportedWaiter returns ENOTSUP from every method.
type UnsupportedWaiter struct{}

// Synchronize returns ENOTSUP.
func (UnsupportedWaiter) Synchronize(_ context.Context, event SyncEvent) error {
	return notOfWaiter("Synchronize", event)
}

// WaitOn returns ENOTSUP.
func (UnsupportedWaiter) WaitOn(event SyncEvent, _ Stream) error {
	return notOfWaiter("WaitOn", event)
}

// Ready returns ENOTSUP.
func (UnsupportedWaiter) Ready(event SyncEvent) (bool, error) {
	return false, notOfWaiter("Ready", event)
}

func notOfWaiter(operation string, event SyncEvent) error {
	text := fmt.Sprintf("%s: event of %v: not supported by the registered waiter", operation, event.DeviceType)
	return NewError(syscall.ENOTSUP, text, nil)
}

var waiters sync.Map // Waiter by abi.DeviceType

// RegisterWaiter registers the waiter of a device type for this process. It replaces a previous waiter;
// running calls finish with the previous one. It may be called from any goroutine.
//
// Errors: EINVAL for nil, and for a device type of CUDA, HIP or OpenCL, which needs no waiter.
func RegisterWaiter(deviceType abi.DeviceType, waiter Waiter) error {
	if waiter == nil {
		return invalid("RegisterWaiter: waiter is nil: expected a waiter")
	}
	if hasOwnWaits(deviceType) {
		return invalid("RegisterWaiter: %v needs no waiter: expected a device type without a runtime in Fletching", deviceType)
	}
	waiters.Store(deviceType, waiter)
	return nil
}

// UnregisterWaiter removes the waiter of a device type. It returns false if there is none.
func UnregisterWaiter(deviceType abi.DeviceType) bool {
	_, found := waiters.LoadAndDelete(deviceType)
	return found
}

// waiterOf returns the registered waiter of a device type; nil if the core waits, or reports why it cannot.
func waiterOf(deviceType abi.DeviceType) Waiter {
	if found, _ := waiters.Load(deviceType); found != nil {
		return found.(Waiter)
	}
	return nil
}

// hasOwnWaits reports whether the core itself waits on the events of a device type.
func hasOwnWaits(deviceType abi.DeviceType) bool {
	switch runtimeOf(deviceType) {
	case C.FLETCHING_RUNTIME_CUDA, C.FLETCHING_RUNTIME_HIP, C.FLETCHING_RUNTIME_OPENCL:
		return true
	default:
		return false
	}
}

// waitWith waits through a waiter.
func waitWith(ctx context.Context, waiter Waiter, event SyncEvent) error {
	const operation = "Synchronize"
	canAsk := true // tracked separately, because the cause of an ended context may be ENOTSUP too
	err := pollUntil(ctx, operation, func() (bool, error) {
		isReady, err := waiter.Ready(event)
		canAsk = !errors.Is(err, syscall.ENOTSUP)
		return isReady, err
	})
	if canAsk && (err != nil || ctx.Done() != nil) {
		return err
	}
	err = waiter.Synchronize(ctx, event)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return canceled(operation, ctx)
	}
	return err
}
