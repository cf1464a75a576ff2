// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

func TestStandinWorksWithoutAContext(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		array, parents, _ := countedArray(t, api.Type)
		gpu.OnThread(func() {
			none := api.Current()
			for _, err := range []error{
				array.ExportWithEvent(streamOf(api, gated.Producer)),
				array.WaitOn(streamOf(api, gated.Consumer)),
				array.WaitOn(streamOf(api, 0)),
				array.WaitOn(streamOf(api, 1)),
				array.WaitOn(streamOf(api, 2)),
			} {
				if err != nil {
					t.Error(err)
				}
			}
			expectReady(t, array, false)
			if api.Current() != none {
				t.Error("the context of the thread has changed")
			}
		})
		if !gated.IsBlocked(gated.Consumer) || !gated.IsBlocked(0) {
			t.Error("a stream does not wait")
		}
		gated.OpenGate()
		gpu.OnThread(func() {
			none := api.Current()
			if err := array.Synchronize(background); err != nil {
				t.Error(err)
			}
			array.Close()
			if api.Current() != none {
				t.Error("the context of the thread has changed")
			}
		})
		expectCount(t, "parents", parents, 1)
		api.SynchronizeStream(0)
		gated.End()
	})
}

func TestStandinLeavesTheCurrentContextAlone(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		api.RecordEvent(event, gated.Producer)
		incoming := awaited(t, api.Type, event)
		first := api.Current()
		api.OpenDevice(1)
		second := api.Current()
		if first == second {
			t.Error("the contexts of two devices are the same")
		}
		other := api.MakeStream()
		array, _, _ := countedArray(t, api.Type)
		steps := []func() error{
			func() error { return incoming.WaitOn(streamOf(api, gated.Consumer)) },
			func() error { return incoming.WaitOn(streamOf(api, other)) },
			func() error { return incoming.Synchronize(background) },
			func() error { _, err := incoming.Ready(); return err },
			func() error { return array.ExportWithEvent(streamOf(api, gated.Producer)) },
			func() error { array.Close(); return nil },
		}
		for index, step := range steps {
			succeed(t, step())
			if got := api.Current(); got != second {
				t.Errorf("step %d: expected context %x, got %x", index, second, got)
			}
		}
		if api.Type == abi.DeviceROCM { // the way back fails, as it may with an earlier error
			api.SetFault("hipSetDevice:2:" + api.Error)
			expectCode(t, incoming.WaitOn(streamOf(api, gated.Consumer)), syscall.EIO, "hipSetDevice")
			api.ResetFaults()
			if got := api.Current(); got != second {
				t.Errorf("expected device %d, got %d", second, got)
			}
		}
		api.DestroyStream(other)
		api.CloseDevice(1)
		if api.Current() != first {
			t.Error("the stack of contexts is not as it was")
		}
		incoming.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}

// No context is current and the device has none that is active: none is created.
func TestStandinContextsAreNotCreated(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		before := api.Alive()
		for device, part := range map[int64]string{1: "not active", -1: "device_id", 1000: "cuDeviceGet"} {
			array := imported(t, abi.ArrowDeviceArray{Array: foreignArray(func() {}), DeviceType: api.Type, DeviceID: device, SyncEvent: event})
			gpu.OnThread(func() {
				_, err := array.Ready()
				for _, err := range []error{array.Synchronize(background), array.WaitOn(streamOf(api, 0)), err} {
					if err == nil {
						t.Errorf("device %d: expected an error with %q", device, part)
					} else {
						expectCode(t, err, err.(*fletching.Error).Code, part)
					}
				}
				if api.Current() != 0 {
					t.Error("there is a context")
				}
			})
			array.Close()
		}
		if after := api.Alive(); after != before {
			t.Errorf("expected %+v, got %+v", before, after)
		}
		api.DestroyEvent(event)
		gated.End()
	})
}

// The wait is on another thread, with the context of the caller's: one that is not primary.
func TestStandinWaitsInTheCallersContext(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		created := api.Get("cuCtxCreate_v4", 0, 0, 0, 0)
		event, stream := api.MakeEvent(), api.MakeStream()
		api.RecordEvent(event, stream)
		array := awaited(t, api.Type, event)
		ctx, cancel := context.WithCancel(background)
		succeed(t, array.Synchronize(ctx))
		cancel()
		if api.Current() != created {
			t.Error("the context of the thread has changed")
		}
		array.Close()
		api.DestroyEvent(event)
		api.DestroyStream(stream)
		api.OK("cuCtxDestroy_v2", created)
	})
}

// exportFromAContextThatGoes lets the last release of a primary context destroy the event, or a reset,
// which does so even when others have a reference. Its handle is not used any more, nor is the
// context's, which may be another one.
func exportFromAContextThatGoes(t *testing.T, api *gpu.API, comesBack bool) {
	stale := api.StaleHandles()
	api.OpenDevice(0) // another context is current when the event is let go
	api.OpenDevice(1)
	array, releases, _ := countedArray(t, api.Type)
	succeed(t, array.ExportWithEvent(streamOf(api, api.MakeStream())))
	if comesBack {
		api.OK("cuDevicePrimaryCtxReset_v2", 1)
		api.OpenDevice(1)
		array.Close()
		api.CloseDevice(1)
	}
	api.CloseDevice(1)
	array.Close()
	expectCount(t, "an array", releases, 1)
	api.CloseDevice(0)
	if got := api.StaleHandles(); got != stale {
		t.Errorf("stale handles: expected %d, got %d", stale, got)
	}
}

func TestStandinEventsOfAContextThatIsGone(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		exportFromAContextThatGoes(t, api, false)
		exportFromAContextThatGoes(t, api, true)

		// The reaper has a reference while it asks, so that the context does not go in between.
		stale := api.StaleHandles()
		api.OpenDevice(1)
		stream, word := api.MakeStream(), api.MakeWord() // go with the context
		*(*uint32)(gpu.At(word)) = 0
		api.WaitFor(stream, word)
		array, releases, _ := countedArray(t, api.Type)
		succeed(t, array.ReleaseAfter(streamOf(api, stream)))
		api.CloseDevice(1)
		releases.waitFor(1) // nothing runs in the context any more
		if got := api.StaleHandles(); got != stale {
			t.Errorf("stale handles: expected %d, got %d", stale, got)
		}
	})
}

// Without numbers of contexts, too.
func TestStandinOldEventsOfAContextThatIsGone(t *testing.T) {
	gpu.OnCUDA(t, "standin-old", func(t *testing.T, api *gpu.API) {
		exportFromAContextThatGoes(t, api, false)
	})
}

// The driver is not there in a child of fork.
func TestStandinChildOfForkLeavesTheEventAlone(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		array, err := (&fletching.ArrayBuilder{}).BuildOn(api.Type, 0, 0, nil) // released by C alone
		succeed(t, err)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		raw := gpu.Alloc(int(unsafe.Sizeof(abi.ArrowDeviceArray{})))
		defer gpu.Free(raw)
		succeed(t, array.Export(gpu.At(raw)))
		release := uintptr((*abi.ArrowDeviceArray)(gpu.At(raw)).Array.Release)
		if !api.IsLeftAlone("cuEventDestroy", release, gpu.At(raw)) {
			t.Error("the event of the parent is destroyed, or the child has crashed")
		}
		if inherited := fletching.PendingReleases().InheritedEvents; inherited != 0 {
			t.Errorf("inherited events of the parent: %d", inherited)
		}
		imported(t, *(*abi.ArrowDeviceArray)(gpu.At(raw))).Close()
		gated.End()
	})
}
