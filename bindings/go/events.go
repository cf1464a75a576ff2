// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Stream is a stream or queue of a runtime, which is owned by the caller, and what to do when it is
// being captured. Its handle may be used on any thread, and is alive as long as the value is used.
type Stream struct {
	deviceType abi.DeviceType
	handle     uintptr
	onCapture  OnCapture
}

// NewStream returns a stream. The handle is the CUstream, cudaStream_t, hipStream_t or
// cl_command_queue, or what the waiter of another device type accepts. CUDA and HIP have default
// streams: 0 and 1 are the legacy one, 2 is that of the thread that the call happens to run on.
// OpenCL has none.
func NewStream(deviceType abi.DeviceType, handle uintptr) Stream {
	return Stream{deviceType: deviceType, handle: handle}
}

// DeviceType returns the type of the devices that the stream is for.
func (s Stream) DeviceType() abi.DeviceType { return s.deviceType }

// Handle returns the handle.
func (s Stream) Handle() uintptr { return s.handle }

// With returns the stream with a choice for captures.
func (s Stream) With(choice OnCapture) Stream {
	s.onCapture = choice
	return s
}

// OnCapture is what an operation does on a stream that is being captured into a CUDA or HIP graph.
// On any other stream, and with any other runtime, it makes no difference.
type OnCapture int

const (
	// RefuseCapture returns EBUSY, before a call that would invalidate the capture.
	RefuseCapture OnCapture = iota

	// ExternalEvent lets the graph record the event, or wait for it, each time it is launched. The
	// graph does not keep the event: the array must not be released before the graph and everything
	// instantiated from it are destroyed. Before the first launch an event that the graph records
	// counts as done, so that the array must not be handed on before. ENOTSUP for a runtime without
	// such events: CUDA has them from 11.1 on, ROCm from 7.0 on.
	ExternalEvent
)

// check refuses a stream of another runtime.
func (s Stream) check(operation string, deviceType abi.DeviceType) error {
	own, other := runtimeOf(s.deviceType), runtimeOf(deviceType)
	if own == other && (own != noRuntime || s.deviceType == deviceType) {
		return nil
	}
	return invalid("%s: stream of another runtime: expected one of %v, got one of %v", operation, deviceType, s.deviceType)
}

// SyncEvent is the event of a live device array, as a [Waiter] gets it. It belongs to the producer.
type SyncEvent struct {
	// DeviceType is the type of the device that the array is on.
	DeviceType abi.DeviceType

	// DeviceID is which device of that type.
	DeviceID int64

	// Address is sync_event as the struct has it, never 0.
	Address uintptr

	context uintptr // of the caller's thread, for a wait on another one
}

// event has the Address 0 for NULL.
func (a *DeviceArray) event(operation string) (SyncEvent, error) {
	if a.IsReleased() {
		return SyncEvent{}, closed(operation)
	}
	raw := a.get()
	return SyncEvent{DeviceType: raw.DeviceType, DeviceID: raw.DeviceID, Address: raw.SyncEvent}, nil
}

// waiter is nil for NULL and after an error.
func (a *DeviceArray) waiter(operation string) (event SyncEvent, waiter Waiter, err error) {
	if event, err = a.event(operation); err == nil && event.Address != 0 {
		waiter, err = waiterOf(operation, event.DeviceType)
	}
	return event, waiter, err
}

// handle is what sync_event points to. Errors: EINVAL for what is not the address of a handle, and for
// a handle that is NULL.
func (e SyncEvent) handle() (uintptr, error) {
	const lowest = 4096 // nothing is mapped below
	if e.Address < lowest || e.Address%unsafe.Alignof(e.Address) != 0 {
		return 0, invalid("sync_event of %v: not the address of a handle: expected an aligned address; "+
			"hint: pass the handle's address, not the handle", e.DeviceType)
	}
	if handle := *(*uintptr)(abi.Pointer(e.Address)); handle != 0 {
		return handle, nil
	}
	return 0, invalid("sync_event of %v: the handle is NULL: expected an event", e.DeviceType)
}

// Synchronize blocks until the event has happened: then the host may read what it can read of the
// buffers. NULL is nothing to wait for.
//
// Where the context ends first, the error is ECANCELED with its cause, or the errno value of that, and the array is
// as it was. No runtime can be
// interrupted: its wait goes on, on a goroutine that ends when the event has happened, and the event
// lives until then, also when the array is closed or exported in between; then the last of them
// releases it. Release and private_data of the array change for that. A context that cannot end adds
// no cost.
//
// Events of CUDA, HIP and OpenCL are waited on through the vendor's library, which the first
// operation loads; Vulkan needs a [VulkanContext], every other device type a [Waiter]. An event that
// there is no way to wait on is an error, never skipped.
//
// Errors of this and the other operations: ENOENT when the library of the runtime is not found,
// ENOSYS when it lacks a function, ENOTSUP when the runtime does not support the operation, EINVAL
// for a closed array and for what cannot be an event or does not fit, EBUSY for a stream that is being
// captured into a graph, EIO for what else the runtime reports, whose own name of it is in the text;
// what a waiter returns. After an error nothing is known of the buffers: do not read them.
//
// CUDA contexts: an operation on a stream happens in the stream's own context, every other one in the
// current one of the thread; when there is none, in the primary context of the device, if that is
// active already. None is created, and afterwards the thread has the one that it had before. With HIP
// the same holds for the thread's device. A goroutine that has made a context current locks its
// thread (runtime.LockOSThread). While another thread captures a graph, the operations neither fail
// nor disturb the capture; HIP before ROCm 7.2 may refuse to say whether an event has happened while
// any thread captures in global mode, and invalidate that capture.
//
// Any goroutine may call this, several at once. Text: Arrow C device data interface, "Synchronization
// Events".
func (a *DeviceArray) Synchronize(ctx context.Context) error {
	event, waiter, err := a.waiter("synchronize")
	if waiter == nil {
		return err
	}
	if ours, ok := waiter.(*vendor); ok && ctx != nil && ctx.Done() != nil {
		event.context = ours.current()
	}
	return a.waitUntil(ctx, func() error { return waiter.Synchronize(ctx, event) })
}

// waitUntil runs a wait that cannot be interrupted, on another goroutine where the context may end.
func (a *DeviceArray) waitUntil(ctx context.Context, wait func() error) error {
	defer runtime.KeepAlive(a)
	if ctx == nil {
		return noContext("synchronize")
	}
	if ctx.Err() != nil {
		return canceled("synchronize", ctx)
	}
	if ctx.Done() == nil {
		return wait()
	}
	use, err := holdEvent(&a.get().Array)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		var err error = NewError(syscall.EIO, "synchronize: the waiter has ended its goroutine", nil)
		defer func() {
			use.end() // so that Close releases the array at once, unless the context has ended
			done <- err
		}()
		err = guarded(wait)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return canceled("synchronize", ctx)
	}
}

// WaitOn lets what is enqueued on the stream from now on wait for the event, and returns while it is
// still pending: then kernels on that stream may read the buffers. A stream that is being captured
// into a graph is refused with EBUSY, and the capture continues; see [Stream.With].
//
// Errors and threads are as for Synchronize.
func (a *DeviceArray) WaitOn(stream Stream) error {
	event, waiter, err := a.waiter("wait_on")
	if waiter == nil {
		return err
	}
	if err := stream.check("wait_on", event.DeviceType); err != nil {
		return err
	}
	defer runtime.KeepAlive(a)
	return waiter.WaitOn(event, stream)
}

// Ready reports whether the event has happened. It does not block. Errors and threads are as for
// Synchronize.
func (a *DeviceArray) Ready() (bool, error) {
	event, waiter, err := a.waiter("ready")
	if waiter == nil {
		return err == nil, err
	}
	defer runtime.KeepAlive(a)
	return waiter.Ready(event)
}
