// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "events.h"
import "C"

import (
	"runtime"
	"sync"
)

// ExportWithEvent sets a sync_event that completes when all work currently on the stream is done. The
// work that fills the buffers must already be enqueued, and later work on the stream must not write to
// them. Call Export afterwards.
//
// The event is created in the stream's context, without timing, and recorded. It is valid, at the same address, until
// the array and every child moved out of it are released. The last of these releases destroys it, on any thread, except
// in a child of fork and if the driver reports that the context was destroyed (reliable for a primary context and CUDA
// 12.0 or later).
//
// Errors: as for Synchronize; ENOTSUP for device types without CUDA, HIP or OpenCL streams; EBUSY for a capturing
// stream; EINVAL if the array is closed or has an event, and if it or a nested array is malformed. After an error the
// array is unchanged. An array may be used by one call at a time.
func (a *DeviceArray) ExportWithEvent(stream Stream) error {
	if a.IsReleased() {
		return closed("ExportWithEvent")
	}
	defer runtime.KeepAlive(a)
	return errorOf("ExportWithEvent", C.export_with_event(cDeviceArray(a.get()), stream.numbers(a.get().DeviceType)))
}

// ReleaseAfter closes the array when all work currently on the stream is done. It is for a consumer whose
// own kernels still read the buffers: Close would free the memory under them.
//
// It takes the array in every case, and never releases it early:
//
//   - It returns at once. The release callback is called later, on a goroutine of this package, with the
//     stream's context current. Up to 64 callbacks may block without delaying the others. They may free memory
//     while another thread captures. A child that was moved out before is not included.
//   - If there is no thread, memory or event, it waits for the stream and releases the array.
//   - If it cannot wait either, it leaks the array, counts it ([PendingReleases]) and returns the reason:
//     EBUSY for a capturing stream (see [KeepArray]), ECHILD in a child of fork, ENOTSUP for a runtime that
//     records no events.
//   - If the device type has no runtime, such as the CPU, and the stream has handle 0, it releases the array
//     at once.
//
// A driver error about the event does not show that the work is done: the array stays pending. If the driver reports
// that the device or context is lost, the array is released. Pending arrays are not released when the process exits.
//
// Errors: as for Synchronize. The array is closed after an error too.
func (a *DeviceArray) ReleaseAfter(stream Stream) error {
	slot, err := a.take("ReleaseAfter")
	if err != nil {
		return err
	}
	setReleaseStarter()
	err = errorOf("ReleaseAfter", C.release_after(cDeviceArray(slot.raw), stream.numbers(slot.raw.DeviceType)))
	slot.free()
	return err
}

var setReleaseStarter = sync.OnceFunc(func() { C.set_release_starter() })

var releases = make(room, mostReleases)

// startRelease is called by the core when a release is due.
func startRelease(release *C.struct_FletchingRelease) {
	releases.enter(func() { C.FletchingReleaseRun(release) })
}

// ReleaseCounts counts the arrays taken by [DeviceArray.ReleaseAfter].
type ReleaseCounts struct {
	Pending         int64  // arrays whose stream has not reached their point yet
	Refused         int64  // pending arrays whose last query failed
	Running         int64  // arrays whose release callback is due or running
	Leaked          int64  // arrays that could neither be deferred nor waited for
	LastRefusal     string // the driver's last error about an event, or ""
	InheritedEvents int64  // events that a release in a child of fork did not destroy
}

// PendingReleases returns the current counts of this process.
func PendingReleases() ReleaseCounts {
	var counts C.struct_FletchingReleaseCounts
	var refusal C.struct_FletchingMessage
	C.FletchingPendingReleases(&counts, &refusal)
	return ReleaseCounts{
		Pending: int64(counts.pending), Refused: int64(counts.refused), Running: int64(counts.running),
		Leaked: int64(counts.leaked), LastRefusal: C.GoString(&refusal.text[0]),
		InheritedEvents: int64(counts.inherited_events),
	}
}
