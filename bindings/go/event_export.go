// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "runtime.h"
import "C"

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// ExportWithEvent sets a sync_event that happens when everything is done that is on the stream now:
// the work that fills the buffers has to be there already, and nothing on it may write to them later.
// Call Export afterwards.
//
// The event is created in the stream's context, without timing, and recorded. It lives, at the same
// address, until the array is released and the last child that was moved out of it too; the last of
// these releases destroys it, on whatever thread. A context that was destroyed has destroyed the
// event; then the release leaves it alone, as far as the driver reports this: reliably with a primary
// context and CUDA 12.0 or later. In a child of fork it does as well, with a warning on stderr.
//
// Errors: as for Synchronize; ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
// EBUSY for a stream that is being captured; EINVAL when the array is closed or has an event, and when
// it or an array below it is malformed. The array is then as it was. One call at a time for an array.
func (a *DeviceArray) ExportWithEvent(stream Stream) error {
	const operation = "export_with_event"
	defer runtime.KeepAlive(a)
	raw, own, err := a.recording(operation)
	if err != nil {
		return err
	}
	if raw.SyncEvent != 0 {
		return invalid("%s: sync_event is set: expected NULL", operation)
	}
	if err := stream.check(operation, raw.DeviceType); err != nil {
		return err
	}
	targets, err := liveStructs(operation, &raw.Array)
	if err != nil {
		return err
	}
	recorded, err := own.record(stream, raw.DeviceID)
	if err != nil {
		return withCaptureHint(operation, err,
			"export before the capture begins, or pass stream.With(ExternalEvent) for an event that each launch of "+
				"the graph records")
	}
	first := (*C.uintptr_t)(unsafe.Pointer(&targets[0]))
	if C.fletching_attach_event(first, C.size_t(len(targets)), &recorded.share) != 0 {
		C.fletching_end_event(recorded, nil)
		return noMemory(operation)
	}
	raw.SyncEvent = uintptr(unsafe.Pointer(&recorded.event))
	return nil
}

// ReleaseAfter closes the array when everything is done that is on the stream now. For a consumer
// whose own kernels still read the buffers: Close would free the memory under them.
//
// It returns at once, and the array is closed. The release callback is called later, on a goroutine of
// this package, never within a callback of a driver. A slow callback delays no other release, and may
// free memory while another thread captures. A child that was moved out before is not waited for.
//
// An event whose state the driver does not report does not count for passed, however often it is
// asked: the array is released when the driver answers, see [PendingReleases]. When the driver says that the
// device or the context is lost, nothing reads the array any more, and it is released. When the
// process exits, what is still pending is left alone.
//
// Errors: as for Synchronize; ENOTSUP for device types other than those of CUDA, HIP and OpenCL; EBUSY
// for a stream that is being captured, because the buffers are read whenever the graph is launched.
// After an error the array is as it was, and not closed: work may still read it, so close it when the
// stream has passed.
func (a *DeviceArray) ReleaseAfter(stream Stream) error {
	const operation = "release_after"
	raw, own, err := a.recording(operation)
	if err != nil {
		return err
	}
	if err := stream.check(operation, raw.DeviceType); err != nil {
		return err
	}
	recorded, err := own.record(stream.With(RefuseCapture), raw.DeviceID)
	if err != nil {
		return withCaptureHint(operation, err,
			"keep the array until the graph is destroyed, and call ReleaseAfter with the stream of its last launch")
	}
	slot, err := a.take(operation)
	if err != nil { // closed in between
		C.fletching_end_event(recorded, nil)
		return err
	}
	theReaper.add(&deferred{recorded: recorded, array: slot.raw.Array})
	slot.free()
	return nil
}

// recording is for a producer's operation. Errors: EINVAL for a closed array, ENOTSUP for a device
// type whose events cannot be recorded, with the reason.
func (a *DeviceArray) recording(operation string) (*abi.ArrowDeviceArray, *vendor, error) {
	if a.IsReleased() {
		return nil, nil, closed(operation)
	}
	raw := a.get()
	if found := vendorOf(raw.DeviceType); found != nil {
		return raw, found, nil
	}
	why := "no runtime that records events"
	switch runtimeOf(raw.DeviceType) {
	case vulkanRuntime:
		why = "not supported by Vulkan: a VkEvent is set by a command buffer, which the caller records"
	case syclRuntime:
		why = "not supported for SYCL: a sycl::event is a C++ object of the SYCL implementation"
	case metalRuntime:
		why = "not supported by Metal: an MTLEvent is signaled by a command buffer, which the caller encodes"
	}
	return nil, nil, unsupported("%s on %v: %s", operation, raw.DeviceType, why)
}

// withCaptureHint lets an error of a captured stream say what to do. Any other one is as it was.
func withCaptureHint(operation string, err error, hint string) error {
	if !errors.Is(err, syscall.EBUSY) {
		return err
	}
	return NewError(syscall.EBUSY, operation+": "+err.Error()+"; hint: "+hint, nil)
}

// liveStructs are the addresses of an array and of every one below it that is not released.
func liveStructs(operation string, root *abi.ArrowArray) ([]uintptr, error) {
	var found []uintptr
	err := walk(operation, root, func(node *abi.ArrowArray) error {
		if node.Release != 0 {
			found = append(found, uintptr(unsafe.Pointer(node)))
		}
		return nil
	})
	return found, err
}

// --- Uses of an event ---------------------------------------------------------------------------

// eventUse keeps the event of an array alive, after its release too.
type eventUse struct {
	share *C.struct_FletchingShare
}

// Several waits may begin at once, and each may change the array.
var holding sync.Mutex

func holdEvent(array *abi.ArrowArray) (eventUse, error) {
	holding.Lock()
	defer holding.Unlock()
	if share := C.fletching_hold_event(cArray(array)); share != nil {
		return eventUse{share}, nil
	}
	return eventUse{}, noMemory("synchronize")
}

func (u eventUse) end() { C.fletching_leave_event(u.share) }
