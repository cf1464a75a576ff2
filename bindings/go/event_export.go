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
// these releases destroys it, on whatever thread. A context that was destroyed has destroyed the
// event; then the release leaves it alone, as far as the driver reports this: reliably with a primary
// context and CUDA 12.0 or later. In a child of fork it does as well, with a warning on stderr.
//
// Errors: as for Synchronize; ENOTSUP for device types other than those of CUDA, HIP and OpenCL;
// EBUSY for a stream that is being captured; EINVAL when the array is closed or has an event, and when
// it or an array below it is malformed. The array is then as it was. One call at a time for an array.
func (a *DeviceArray) ExportWithEvent(stream Stream) error {
	if a.IsReleased() {
		return closed("export_with_event")
	}
	defer runtime.KeepAlive(a)
	return errorOf(C.export_with_event(cDeviceArray(a.get()), stream.numbers()))
}

// ReleaseAfter closes the array when everything is done that is on the stream now. For a consumer
// whose own kernels still read the buffers: Close would free the memory under them.
//
// It takes the array in every case, and never releases it early:
//
//   - It returns at once. The release callback is called later, on a goroutine of this package, never
//     within a callback of a driver. The stream's context is current then. A callback that blocks
//     delays no other release, and may free memory while another thread captures. A child that was
//     moved out before is not waited for.
//   - Where the release cannot be deferred (no thread, no memory, no event), this waits for the stream,
//     and releases the array.
//   - Where it cannot wait either, the array is leaked and counted ([PendingReleases]), and the error
//     says why: EBUSY for a stream that is being captured, because the buffers are read whenever the
//     graph is launched (see [KeepArray]); ECHILD in a child of fork; ENOTSUP for a stream of another runtime
//     than CUDA, HIP and OpenCL.
//   - An array on a device without a runtime, such as the CPU, with a stream of that type whose handle is 0 is
//     released at once.
//
// An event whose state the driver does not report does not count for passed, however often it is
// queried: the array is released when the driver answers. When the driver says that the
// device or the context is lost, nothing reads the array any more, and it is released. When the
// process exits, what is still pending is left alone.
//
// Errors: as for Synchronize. The array is closed after an error too.
func (a *DeviceArray) ReleaseAfter(stream Stream) error {
	slot, err := a.take("release_after")
	if err != nil {
		return err
	}
	setReleaseStarter()
	err = errorOf(C.release_after(cDeviceArray(slot.raw), stream.numbers()))
	slot.free()
	return err
}

var setReleaseStarter = sync.OnceFunc(func() { C.set_release_starter() })

// A room limits the goroutines whose callbacks may each block a thread.
type room chan struct{}

// enter runs the body on a new goroutine, when there is room.
func (r room) enter(body func()) {
	go func() {
		r <- struct{}{}
		defer func() { <-r }()
		body()
	}()
}

const mostReleases = 64 // as in the core

var releases = make(room, mostReleases)

// startRelease is called by the core, for a release that is due.
func startRelease(release *C.struct_FletchingRelease) {
	releases.enter(func() { C.FletchingReleaseRun(release) })
}

// ReleaseCounts are counts of the arrays that [DeviceArray.ReleaseAfter] has taken.
type ReleaseCounts struct {
	// Pending are arrays whose stream has not reached their point yet.
	Pending int64

	// Refused are, of these, those that the driver last said nothing about.
	Refused int64

	// Running are arrays whose release callback is due, or has not returned.
	Running int64

	// Leaked are arrays that could neither be deferred nor waited for.
	Leaked int64

	// LastRefusal is the driver's newest error about an event; empty when there was none.
	LastRefusal string

	// InheritedEvents are events that a release in a child of fork has left alone.
	InheritedEvents int64
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
