// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "events.h"
import "C"

import (
	"context"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Stream is a stream or queue owned by the caller, with its device and its behavior during a capture.
type Stream struct {
	deviceType abi.DeviceType
	handle     uintptr
	device     int64 // plus 1, so that the zero value means the array's device
	onCapture  OnCapture
}

// NewStream returns a stream. The handle is the CUstream, cudaStream_t, hipStream_t or
// cl_command_queue, or a stream that the waiter of another device type accepts.
//
// CUDA and HIP have default streams on each device: 0 and 1 are the legacy stream, 2 is the per-thread stream of the
// calling thread. They belong to the array's device, independent of the current device.
func NewStream(deviceType abi.DeviceType, handle uintptr) Stream {
	return Stream{deviceType: deviceType, handle: handle}
}

// DeviceType returns the device type of the stream.
func (s Stream) DeviceType() abi.DeviceType { return s.deviceType }

// Handle returns the handle.
func (s Stream) Handle() uintptr { return s.handle }

// OnDevice returns the stream with its device, for a default stream of another device than the array's.
// The driver knows the device of any other stream.
func (s Stream) OnDevice(deviceID int64) Stream {
	s.device = deviceID + 1
	return s
}

// With returns the stream with a capture option.
func (s Stream) With(choice OnCapture) Stream {
	s.onCapture = choice
	return s
}

// OnCapture selects the behavior of an operation on a stream that is being captured into a CUDA or HIP
// graph. It has no effect on other streams and with other runtimes.
type OnCapture int

const (
	// RefuseCapture returns EBUSY before a call that would invalidate the capture.
	RefuseCapture OnCapture = C.FLETCHING_CAPTURE_REFUSE

	// ExternalEvent makes the graph record the event, or wait for it, at each launch. The graph does not keep the
	// event alive: the array must not be released until the graph and all its instances are destroyed. Before the
	// first launch a recorded event counts as complete. ENOTSUP before CUDA 11.1 and ROCm 7.0.
	ExternalEvent OnCapture = C.FLETCHING_CAPTURE_EXTERNAL_EVENT

	// KeepArray is for ReleaseAfter and an array that the graph does not read. The array is kept until the capture
	// has ended and the stream has passed. The stream must live until then. An array that the graph reads must
	// outlive the graph, since launches may come later. Other operations behave as with RefuseCapture.
	KeepArray OnCapture = C.FLETCHING_CAPTURE_KEEP
)

// numbers converts the stream for an operation on an array of this device type. For the core,
// FLETCHING_RUNTIME_NONE means the array's runtime; -1 makes it reject a stream without a runtime.
func (s Stream) numbers(array abi.DeviceType) C.struct_StreamNumbers {
	runtime := runtimeOf(s.deviceType)
	if runtime == C.FLETCHING_RUNTIME_NONE && runtimeOf(array) != C.FLETCHING_RUNTIME_NONE {
		runtime = -1
	}
	return C.struct_StreamNumbers{
		handle: C.uintptr_t(s.handle), device_id: C.int64_t(s.device - 1), runtime: runtime, on_capture: C.int(s.onCapture),
	}
}

// SyncEvent is the event of a live device array, passed to a [Waiter]. The producer owns it.
type SyncEvent struct {
	// DeviceType is the device type of the array.
	DeviceType abi.DeviceType

	// DeviceID is the ID of the device.
	DeviceID int64

	// Address is the value of sync_event, never 0.
	Address uintptr
}

// waiting returns the struct of an array with an event, and the waiter registered for its device type. It returns
// no struct if there is no event and after an error.
func (a *DeviceArray) waiting(operation string) (*abi.ArrowDeviceArray, Waiter, error) {
	if a.IsReleased() {
		return nil, nil, closed(operation)
	}
	raw := a.get()
	if raw.SyncEvent == 0 {
		return nil, nil, nil
	}
	return raw, waiterOf(raw.DeviceType), nil
}

func eventOf(raw *abi.ArrowDeviceArray) SyncEvent {
	return SyncEvent{DeviceType: raw.DeviceType, DeviceID: raw.DeviceID, Address: raw.SyncEvent}
}

func cDeviceArray(raw *abi.ArrowDeviceArray) *C.struct_ArrowDeviceArray {
	return (*C.struct_ArrowDeviceArray)(unsafe.Pointer(raw))
}

// optionNames replaces the options in the core's messages with their Go names.
var optionNames = strings.NewReplacer("FLETCHING_CAPTURE_EXTERNAL_EVENT", "stream.With(ExternalEvent)",
	"as_storage", "AsStorage", "event_handled", "EventHandled")

// errorOf puts the operation in front of the core's message, which names no function.
func errorOf(operation string, outcome C.struct_Outcome) error {
	if outcome.code == 0 {
		return nil
	}
	defer C.free(unsafe.Pointer(outcome.text))
	return NewError(abi.SystemError(int32(outcome.code)), operation+": "+optionNames.Replace(C.GoString(outcome.text)), nil)
}

func readyOf(operation string, outcome C.struct_Outcome) (bool, error) {
	return outcome.is_ready != 0, errorOf(operation, outcome)
}

// Synchronize blocks until the event completes. The host may then read the buffers that it can access. If
// sync_event is NULL, it returns at once.
//
// If the context ends first, the error is ECANCELED with its cause, or the errno value of the cause. A wait in a
// runtime cannot be interrupted: if the context can end, Synchronize queries the event with pauses of up to a
// millisecond and occupies no thread. Otherwise the thread waits in the runtime.
//
// Events of CUDA, HIP and OpenCL are waited on through the vendor's library, which the first operation loads. Vulkan
// needs a [VulkanContext], every other device type a [Waiter]. An operation fails if the event cannot be waited on; the
// wait is never skipped.
//
// Errors of this and the other operations: ENOENT if the library of the runtime is not found, ENOSYS if it lacks a
// function, ENOTSUP if the runtime does not support the operation, EINVAL for a closed array or an invalid event or
// stream handle, EBUSY for a capturing stream, EIO for another error of the runtime, which the message names, and the
// errors of a waiter. After an error the contents of the buffers are unspecified.
//
// CUDA contexts: an operation on a stream uses the stream's context. No operation creates a context, and each restores
// the thread's current context, or the thread's HIP device. A goroutine that has made a context current must lock its
// thread (runtime.LockOSThread). While another thread captures a graph, the operations neither fail nor disturb the
// capture; HIP before ROCm 7.2 may reject a query while any thread captures in global mode, and invalidate that
// capture.
//
// Synchronize may be called concurrently from any goroutine. See "Synchronization Events" in the Arrow C device data
// interface.
func (a *DeviceArray) Synchronize(ctx context.Context) error {
	const operation = "Synchronize"
	raw, waiter, err := a.waiting(operation)
	if raw == nil {
		return err
	}
	defer runtime.KeepAlive(a)
	if waiter != nil {
		return waitWith(ctx, waiter, eventOf(raw))
	}
	return waitUntil(ctx, operation, func() (bool, error) { return readyOf(operation, C.ready(cDeviceArray(raw))) },
		func() error { return errorOf(operation, C.synchronize(cDeviceArray(raw))) })
}

const (
	shortestPause = 20 * time.Microsecond
	longestPause  = time.Millisecond
)

// waitUntil ends with a wait in the runtime, because a query does not make the data visible to the host. It polls
// first if the context can end.
func waitUntil(ctx context.Context, operation string, ready func() (bool, error), synchronize func() error) error {
	if err := pollUntil(ctx, operation, ready); err != nil {
		return err
	}
	return synchronize()
}

// pollUntil returns when the event has completed, and at once if the context cannot end.
func pollUntil(ctx context.Context, operation string, ready func() (bool, error)) error {
	if ctx == nil {
		return noContext(operation)
	}
	if ctx.Err() != nil {
		return canceled(operation, ctx)
	}
	if ctx.Done() == nil {
		return nil
	}
	timer := time.NewTimer(longestPause)
	defer timer.Stop()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		if done, err := ready(); done || err != nil {
			return err
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return canceled(operation, ctx)
		}
	}
}

// WaitOn makes later work on the stream wait for the event, and returns without waiting. Kernels enqueued on that
// stream afterwards may read the buffers. EBUSY for a capturing stream; see [Stream.With]. Errors and threads are as
// for Synchronize.
func (a *DeviceArray) WaitOn(stream Stream) error {
	raw, waiter, err := a.waiting("WaitOn")
	if raw == nil {
		return err
	}
	defer runtime.KeepAlive(a)
	if waiter == nil {
		return errorOf("WaitOn", C.wait_on(cDeviceArray(raw), stream.numbers(raw.DeviceType)))
	}
	if stream.deviceType != raw.DeviceType {
		return invalid("WaitOn: stream of another runtime: expected one of %v, got one of %v", raw.DeviceType, stream.deviceType)
	}
	return waiter.WaitOn(eventOf(raw), stream)
}

// Ready reports whether the event has completed, without blocking. Errors and threads are as for
// Synchronize.
func (a *DeviceArray) Ready() (bool, error) {
	raw, waiter, err := a.waiting("Ready")
	if raw == nil {
		return err == nil, err
	}
	defer runtime.KeepAlive(a)
	if waiter != nil {
		return waiter.Ready(eventOf(raw))
	}
	return readyOf("Ready", C.ready(cDeviceArray(raw)))
}
