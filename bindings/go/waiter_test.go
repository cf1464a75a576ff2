// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

const event, queue = 0x1234, 0x5678

// checkingWaiter records its calls.
type checkingWaiter struct {
	t     *testing.T
	calls atomic.Int32
}

func (c *checkingWaiter) check(got fletching.SyncEvent) {
	c.calls.Add(1)
	if (got != fletching.SyncEvent{DeviceType: got.DeviceType, DeviceID: 7, Address: event}) {
		c.t.Errorf("event %+v", got)
	}
}

func (c *checkingWaiter) Synchronize(_ context.Context, event fletching.SyncEvent) error {
	c.check(event)
	return nil
}

func (c *checkingWaiter) WaitOn(event fletching.SyncEvent, stream fletching.Stream) error {
	c.check(event)
	if stream.Handle() != queue || stream.DeviceType() != event.DeviceType {
		c.t.Errorf("stream %+v", stream)
	}
	return fletching.NewError(syscall.EAGAIN, "queue full", nil)
}

func (c *checkingWaiter) Ready(event fletching.SyncEvent) (bool, error) {
	c.check(event)
	return false, nil
}

func waiterArray(t *testing.T, deviceType abi.DeviceType, onRelease func()) *fletching.DeviceArray {
	return imported(t, abi.ArrowDeviceArray{Array: foreignArray(onRelease), DeviceType: deviceType, DeviceID: 7, SyncEvent: event})
}

func TestWaiterReceivesEvent(t *testing.T) {
	waiter := &checkingWaiter{t: t}
	succeed(t, fletching.RegisterWaiter(abi.DeviceExtDev, waiter))
	array := waiterArray(t, abi.DeviceExtDev, func() {})
	defer array.Close()
	succeed(t, array.Synchronize(background))
	expectReady(t, array, false)
	expectCode(t, array.WaitOn(fletching.NewStream(abi.DeviceExtDev, queue)), syscall.EAGAIN, "queue full")
	if got := waiter.calls.Load(); got != 3 {
		t.Errorf("calls: %d", got)
	}
	expectCode(t, array.WaitOn(fletching.NewStream(abi.DeviceMetal, queue)), syscall.EINVAL, "expected one of ext_dev, got one of metal")
	nothing := awaited(t, abi.DeviceExtDev, 0)
	defer nothing.Close()
	succeed(t, nothing.Synchronize(background))
	if got := waiter.calls.Load(); got != 3 {
		t.Errorf("calls: %d", got)
	}
	if !fletching.UnregisterWaiter(abi.DeviceExtDev) || fletching.UnregisterWaiter(abi.DeviceExtDev) {
		t.Error("the waiter is removed once")
	}
	expectCode(t, array.Synchronize(background), syscall.ENOTSUP, "Synchronize: ")
}

// A wait whose context can end queries the event, and keeps no reference to the array if it ends early.
func TestWaiterIsPolledUntilContextEnds(t *testing.T) {
	waiter := &checkingWaiter{t: t}
	succeed(t, fletching.RegisterWaiter(abi.DeviceExtDev, waiter))
	defer fletching.UnregisterWaiter(abi.DeviceExtDev)
	released := newReleases()
	array := waiterArray(t, abi.DeviceExtDev, released.add)
	ctx, cancel := context.WithCancelCause(background)
	given := make(chan error)
	go func() { given <- array.Synchronize(ctx) }()
	for waiter.calls.Load() < 2 {
		runtime.Gosched()
	}
	cancel(syscall.EINTR)
	if err := <-given; !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.EINTR) {
		t.Errorf("expected context.Canceled, got %v", err)
	}
	calls := waiter.calls.Load()
	if err := array.Synchronize(ctx); !errors.Is(err, context.Canceled) || waiter.calls.Load() != calls {
		t.Errorf("expected context.Canceled without a call, got %v", err)
	}
	array.Close()
	expectCount(t, "an array", released, 1)
}

// readyWaiter is the waiter of an event that has completed.
type readyWaiter struct{ fletching.UnsupportedWaiter }

func (readyWaiter) Ready(fletching.SyncEvent) (bool, error) { return true, nil }

func TestSynchronizeReturnsIfWaiterIsReady(t *testing.T) {
	succeed(t, fletching.RegisterWaiter(abi.DeviceOneAPI, readyWaiter{}))
	defer fletching.UnregisterWaiter(abi.DeviceOneAPI)
	array := waiterArray(t, abi.DeviceOneAPI, func() {})
	defer array.Close()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	succeed(t, array.Synchronize(ctx))
	expectCode(t, array.Synchronize(background), syscall.ENOTSUP, "oneapi: not supported")
}

// threadWaiter records the thread on which it waits.
type threadWaiter struct {
	fletching.UnsupportedWaiter
	waited int
}

func (w *threadWaiter) Synchronize(context.Context, fletching.SyncEvent) error {
	w.waited = syscall.Gettid()
	return nil
}

// A wait that cannot be interrupted runs on the caller's thread.
func TestSynchronizeRunsOnCallerThread(t *testing.T) {
	waiter := &threadWaiter{}
	succeed(t, fletching.RegisterWaiter(abi.DeviceExtDev, waiter))
	defer fletching.UnregisterWaiter(abi.DeviceExtDev)
	array := waiterArray(t, abi.DeviceExtDev, func() {})
	defer array.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	succeed(t, array.Synchronize(background))
	if own := syscall.Gettid(); waiter.waited != own {
		t.Errorf("thread: expected %d, got %d", own, waiter.waited)
	}
}

func TestUnsupportedWaiterReturnsENOTSUP(t *testing.T) {
	succeed(t, fletching.RegisterWaiter(abi.DeviceOneAPI, &checkingWaiter{t: t}))
	succeed(t, fletching.RegisterWaiter(abi.DeviceOneAPI, fletching.UnsupportedWaiter{})) // replaces the waiter
	defer fletching.UnregisterWaiter(abi.DeviceOneAPI)
	array := waiterArray(t, abi.DeviceOneAPI, func() {})
	defer array.Close()
	_, err := array.Ready()
	for _, err := range []error{array.Synchronize(background), array.WaitOn(fletching.NewStream(abi.DeviceOneAPI, queue)), err} {
		expectCode(t, err, syscall.ENOTSUP, "oneapi: not supported")
	}
}

func TestRuleSyncEventWaitedBeforeAccess(t *testing.T) {
	for device, why := range map[abi.DeviceType]string{
		abi.DeviceMetal:  "hint: register a waiter",
		abi.DeviceVulkan: "VkEvent without its VkDevice",
		abi.DeviceCPU:    "expected sync_event NULL",
		9999:             "unknown(9999); hint: register a waiter",
	} {
		array := waiterArray(t, device, func() {})
		_, err := array.Ready()
		expectCode(t, err, syscall.ENOTSUP, why)
		if err == nil || !strings.HasPrefix(err.Error(), "Ready: ") {
			t.Errorf("%v", err)
		}
		expectCode(t, array.Synchronize(background), syscall.ENOTSUP, why)
		expectCode(t, array.WaitOn(fletching.NewStream(device, 0)), syscall.ENOTSUP, why)
		array.Close()
	}
}

func TestRuleSyncEventNullAccepted(t *testing.T) {
	for device := range abi.DeviceType(30) {
		array := awaited(t, device, 0)
		succeed(t, array.Synchronize(background))
		succeed(t, array.WaitOn(fletching.NewStream(device, queue)))
		expectReady(t, array, true)
		array.Close()
	}
}

func TestVulkanContextRejectsOtherDevices(t *testing.T) {
	of := fletching.VulkanContext{Device: queue}
	array := waiterArray(t, abi.DeviceExtDev, func() {})
	defer array.Close()
	_, err := array.ReadyVulkan(of)
	for _, err := range []error{err, array.SynchronizeVulkan(background, of), array.WaitOnVulkan(of, queue)} {
		expectCode(t, err, syscall.EINVAL, "expected an event of Vulkan, got one of ext_dev")
	}
	nothing := awaited(t, abi.DeviceVulkan, 0)
	defer nothing.Close()
	ready, err := nothing.ReadyVulkan(of)
	if err != nil || !ready {
		t.Errorf("ready: %v, %v", ready, err)
	}
	succeed(t, nothing.SynchronizeVulkan(background, of))
	other := waiterArray(t, abi.DeviceVulkan, func() {})
	defer other.Close()
	expectCode(t, other.WaitOnVulkan(of, 0), syscall.EINVAL, "command buffer is NULL")
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := other.SynchronizeVulkan(ctx, of); !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ECANCELED) {
		t.Errorf("expected context.Canceled, got %v", err)
	}
	array.Close()
	_, err = array.ReadyVulkan(of)
	for _, err := range []error{err, array.SynchronizeVulkan(background, of), array.WaitOnVulkan(of, queue)} {
		expectCode(t, err, syscall.EINVAL, "closed")
	}
}

func TestRegisterWaiterRejectsDevicesWithRuntime(t *testing.T) {
	for _, device := range []abi.DeviceType{abi.DeviceCUDA, abi.DeviceROCMHost, abi.DeviceOpenCL} {
		expectCode(t, fletching.RegisterWaiter(device, fletching.UnsupportedWaiter{}), syscall.EINVAL, "needs no waiter")
		if fletching.UnregisterWaiter(device) {
			t.Errorf("a waiter of %v", device)
		}
	}
	expectCode(t, fletching.RegisterWaiter(abi.DeviceMetal, nil), syscall.EINVAL, "waiter is nil")
}

// pendingWaiter has an event that never completes.
type pendingWaiter struct {
	fletching.UnsupportedWaiter
	waits *int
}

func (pendingWaiter) Ready(fletching.SyncEvent) (bool, error) { return false, nil }

func (w pendingWaiter) Synchronize(context.Context, fletching.SyncEvent) error {
	*w.waits++
	return nil
}

func TestContextCauseIsNotWaiterResult(t *testing.T) {
	waits := 0
	succeed(t, fletching.RegisterWaiter(abi.DeviceMetal, pendingWaiter{waits: &waits}))
	defer fletching.UnregisterWaiter(abi.DeviceMetal)
	array := waiterArray(t, abi.DeviceMetal, func() {})
	defer array.Close()
	ctx, cancel := context.WithCancelCause(background)
	cancel(syscall.ENOTSUP)
	expectCode(t, array.Synchronize(ctx), syscall.ENOTSUP, "Synchronize")
	if waits != 0 {
		t.Errorf("the waiter was called %d times for an event that is pending", waits)
	}
}

// contextWaiter does not support Ready. Its Synchronize returns the error of the context, which ends during the wait.
type contextWaiter struct {
	fletching.UnsupportedWaiter
	end func()
}

func (w contextWaiter) Synchronize(ctx context.Context, _ fletching.SyncEvent) error {
	w.end()
	return ctx.Err()
}

func TestWaiterReturningContextErrorIsCanceledWithCause(t *testing.T) {
	cause := errors.New("closing")
	ctx, cancel := context.WithCancelCause(background)
	succeed(t, fletching.RegisterWaiter(abi.DeviceMetal, contextWaiter{end: func() { cancel(cause) }}))
	defer fletching.UnregisterWaiter(abi.DeviceMetal)
	array := waiterArray(t, abi.DeviceMetal, func() {})
	defer array.Close()
	err := array.Synchronize(ctx)
	expectCode(t, err, syscall.ECANCELED, "closing")
	if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
}
