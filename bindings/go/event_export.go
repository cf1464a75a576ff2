// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "events.h"
import "C"

import (
	"runtime"
	"sync"
)

// ExportWithEvent sets a sync_event that happens when everything is done that is on the stream now:
// the work that fills the buffers has to be there already, and nothing on it may write to them later.
// Call Export afterwards.
//
// The event is created in the stream's context, without timing, and recorded. It lives, at the same
// address, until the array is released and the last child that was moved out of it too; the last of
// these releases destroys it, on whatever thread. It leaves the event alone if the context was destroyed,
// as far as the driver reports this (reliably for a primary context and CUDA 12.0 or later), and in a child of fork.
//
// Errors: as for Synchronize; ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
// EBUSY for a stream that is being captured; EINVAL when the array is closed or has an event, and when
// it or an array below it is malformed. The array is then as it was. One call at a time for an array.
func (a *DeviceArray) ExportWithEvent(stream Stream) error {
	if a.IsReleased() {
		return closed("export_with_event")
	}
	defer runtime.KeepAlive(a)
	return errorOf(C.export_with_event(cDeviceArray(a.get()), stream.numbers(a.get().DeviceType)))
}

// ReleaseAfter closes the array when everything is done that is on the stream now. For a consumer
// whose own kernels still read the buffers: Close would free the memory under them.
//
// It takes the array in every case, and never releases it early:
//
//   - It returns at once. The release callback is called later, on a goroutine of this package, with the
//     stream's context current. Up to 64 callbacks may block without delaying the others. They may free memory
//     while another thread captures. A child that was moved out before is not included.
//   - Without a thread, memory or event, it waits for the stream and releases the array.
//   - If it cannot wait either, it leaks the array, counts it ([PendingReleases]) and returns the reason:
//     EBUSY for a stream that is being captured (see [KeepArray]), ECHILD in a child of fork, ENOTSUP for a
//     runtime that records no events.
//   - It releases an array at once whose device type has no runtime, such as the CPU, with a stream of handle 0.
//
// A driver error about the event does not show that the work is done: the array stays pending. If the driver reports
// that the device or context is lost, the array is released. Pending arrays are not released when the process exits.
//
// Errors: as for Synchronize. The array is closed after an error too.
func (a *DeviceArray) ReleaseAfter(stream Stream) error {
	slot, err := a.take("release_after")
	if err != nil {
		return err
	}
	setReleaseStarter()
	err = errorOf(C.release_after(cDeviceArray(slot.raw), stream.numbers(slot.raw.DeviceType)))
	slot.free()
	return err
}

var setReleaseStarter = sync.OnceFunc(func() { C.set_release_starter() })

var releases = make(room, mostReleases)

// startRelease is called by the core, for a release that is due.
func startRelease(release *C.struct_FletchingRelease) {
	releases.enter(func() { C.FletchingReleaseRun(release) })
}

// ReleaseCounts are counts of the arrays that [DeviceArray.ReleaseAfter] has taken.
type ReleaseCounts struct {
	Pending         int64  // arrays whose stream has not reached their point yet
	Refused         int64  // pending arrays whose last query failed
	Running         int64  // arrays whose release callback is due, or has not returned
	Leaked          int64  // arrays that could neither be deferred nor waited for
	LastRefusal     string // the driver's last error about an event, or ""
	InheritedEvents int64  // events that a release in a child of fork left alone
}

// PendingReleases returns the counts as of now, in this process.
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
