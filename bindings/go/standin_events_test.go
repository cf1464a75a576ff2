// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

var background = context.Background()

func streamOf(api *gpu.API, handle uintptr) fletching.Stream {
	return fletching.NewStream(api.Type, handle)
}

func TestStandinDefaultStreams(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		api.RecordEvent(event, gated.Producer)
		array := awaited(t, api.Type, event)
		for handle := range uintptr(3) {
			succeed(t, array.WaitOn(streamOf(api, handle)))
			api.SynchronizeStream(handle & 2)
		}
		array.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}

func TestRuleSyncEventTypeOfTable(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		handle := *(*uintptr)(gpu.At(event))
		null := gpu.Alloc(8)
		defer gpu.Free(null)
		for address, part := range map[uintptr]string{handle: "address", 42: "aligned address", event + 1: "aligned address", null: "the handle is NULL"} {
			array := awaited(t, api.Type, address)
			_, err := array.Ready()
			for _, err := range []error{array.Synchronize(background), array.WaitOn(streamOf(api, gated.Consumer)), err} {
				expectCode(t, err, syscall.EINVAL, part)
			}
			array.Close()
		}
		api.DestroyEvent(event)
		gated.End()
	})
}

func TestRuleSyncEventDataReadyWhenTriggered(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		array, _, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		expectReady(t, array, false)
		succeed(t, array.WaitOn(streamOf(api, gated.Consumer)))
		if !gated.IsBlocked(gated.Consumer) {
			t.Error("the consumer does not wait")
		}
		gated.OpenGate()
		succeed(t, array.Synchronize(background))
		if !api.IsIdle(gated.Producer) {
			t.Error("the work is not done")
		}
		array.Close()
		gated.End()
	})
}

func TestStandinEventOutlivesTheParent(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		events := api.Alive().Events
		gated.Shut()
		array, parents, children := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		expectCode(t, array.ExportWithEvent(streamOf(api, gated.Producer)), syscall.EINVAL, "sync_event is set")
		var raw abi.ArrowDeviceArray
		succeed(t, array.Export(unsafe.Pointer(&raw)))
		var child abi.ArrowArray // a consumer moves it out without asking us
		raw.Array.Child(0).MoveTo(&child)
		callbacks.ReleaseArrowDeviceArray(&raw)
		expectCount(t, "parents", parents, 1)
		other := awaited(t, api.Type, raw.SyncEvent)
		expectReady(t, other, false)
		gated.OpenGate()
		succeed(t, other.Synchronize(background))
		other.Close()
		if got := api.Alive().Events; got != events+1 {
			t.Errorf("events: expected %d, got %d", events+1, got)
		}
		gpu.OnThread(func() { callbacks.ReleaseArrowArray(&child) })
		expectCount(t, "children", children, 2)
		if got := api.Alive().Events; got != events {
			t.Errorf("events: expected %d, got %d", events, got)
		}
		gated.End()
	})
}

func TestStandinTakenChildKeepsTheEvent(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		array, parents, children := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		child, err := array.TakeChild(0)
		succeed(t, err)
		array.Close()
		expectCount(t, "parents", parents, 1)
		expectCount(t, "children", children, 1)
		expectReady(t, child, false)
		gated.OpenGate()
		succeed(t, child.Synchronize(background))
		child.Close()
		expectCount(t, "children", children, 2)
		gated.End()
	})
}

func TestStandinReleaseAfter(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		behind, behindReleases, _ := countedArray(t, api.Type)
		succeed(t, behind.ReleaseAfter(streamOf(api, gated.Producer)))
		if !behind.IsReleased() {
			t.Error("the array is not closed")
		}
		// One that need not wait overtakes the other: the reaper has looked at both by then.
		free, freeReleases, _ := countedArray(t, api.Type)
		succeed(t, free.ReleaseAfter(streamOf(api, gated.Consumer)))
		freeReleases.waitFor(1)
		expectCount(t, "what is behind the gate", behindReleases, 0)
		if pending := fletching.PendingReleases(); pending.Pending != 1 {
			t.Errorf("pending: %+v", pending)
		}
		gated.OpenGate()
		behindReleases.waitFor(1)
		gated.End()
	})
}

// What ReleaseAfter has taken is not leaked when the array is collected.
func TestStandinReleaseAfterACollection(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated, releases := releaseBehindGate(t, api)
		for range 5 {
			collected := make(chan struct{})
			runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, collected)
			runtime.GC()
			<-collected
		}
		expectCount(t, "what is behind the gate", releases, 0)
		if leaks := fletching.Leaks(); leaks != 0 {
			t.Errorf("%d leaks", leaks)
		}
		gated.OpenGate()
		releases.waitFor(1)
		gated.End()
	})
}

func TestStandinSlowCallbackDelaysNoOther(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		var barrier sync.WaitGroup // each waits for all the others to begin, and for the test
		barrier.Add(41)
		done := newReleases()
		for range 40 {
			slow := plainArray(t, api.Type, func() {
				barrier.Done()
				barrier.Wait()
				done.add()
			})
			succeed(t, slow.ReleaseAfter(streamOf(api, gated.Consumer)))
		}
		quick, quickReleases, _ := countedArray(t, api.Type)
		succeed(t, quick.ReleaseAfter(streamOf(api, gated.Consumer)))
		quickReleases.waitFor(1)
		expectCount(t, "the slow ones", done, 0)
		barrier.Done()
		done.waitFor(40)
		gated.End()
	})
}

func TestStandinClosedArraysAreRefused(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		stream := streamOf(api, gated.Consumer)
		empty, _, _ := countedArray(t, api.Type)
		succeed(t, empty.Synchronize(background))
		succeed(t, empty.WaitOn(fletching.NewStream(abi.DeviceCPU, 0))) // nothing to wait for
		expectReady(t, empty, true)
		empty.Close()
		_, err := empty.Ready()
		for _, err := range []error{empty.Synchronize(background), empty.WaitOn(stream), err,
			empty.ExportWithEvent(stream), empty.ReleaseAfter(stream)} {
			expectCode(t, err, syscall.EINVAL, "closed")
			if !errors.Is(err, fletching.ErrClosed) {
				t.Errorf("%v is not ErrClosed", err)
			}
		}
		gated.End()
	})
}

func TestStandinExportThatIsRefused(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		alive := api.Alive()
		array, releases, _ := countedArray(t, api.Type)
		expectCode(t, array.ExportWithEvent(fletching.NewStream(abi.DeviceMetal, gated.Consumer)), syscall.EINVAL,
			"export_with_event: stream of another runtime")
		expectCode(t, array.ReleaseAfter(fletching.NewStream(abi.DeviceMetal, gated.Consumer)), syscall.EINVAL,
			"release_after: stream of another runtime")
		raw := abi.ArrowDeviceArray{Array: foreignArray(releases.add), DeviceType: api.Type}
		raw.Array.NChildren = -1
		malformed := imported(t, raw)
		expectCode(t, malformed.ExportWithEvent(streamOf(api, gated.Consumer)), syscall.EINVAL,
			"export_with_event: the struct or a descendant has n_children out of range")
		if array.SyncEvent() != 0 || malformed.SyncEvent() != 0 || api.Alive() != alive {
			t.Error("an event after an error")
		}
		array.Close()
		malformed.Close()
		expectCount(t, "arrays", releases, 2)
		gated.End()
	})
}

func TestStandinSeveralGoroutines(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		array, _, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		ctx, cancel := context.WithCancel(background)
		var group sync.WaitGroup
		for range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				if err := array.WaitOn(streamOf(api, gated.Consumer)); err != nil {
					t.Error(err)
				}
				if err := array.Synchronize(ctx); err != nil {
					t.Error(err)
				}
				expectReady(t, array, true)
			}()
		}
		group.Wait()
		cancel()
		array.Close()
		gated.End()
	})
}

// A context ends while the event is behind the producer's gate: the wait is given up, the array is as
// it was, and what the runtime still looks at lives until the gate is open.
func TestStandinContextEndsDuringAWait(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		goroutines := runtime.NumGoroutine()
		waits := api.Calls(api.Synchronize)
		array, parents, children := countedArray(t, api.Type)
		event := api.MakeEvent()
		api.RecordEvent(event, gated.Producer)
		var raw abi.ArrowDeviceArray
		succeed(t, array.Export(unsafe.Pointer(&raw)))
		raw.SyncEvent = event
		array = imported(t, raw)

		ctx, cancel := context.WithCancel(background)
		go func() {
			for api.Calls(api.Synchronize) == waits {
				runtime.Gosched()
			}
			cancel()
		}()
		if err := array.Synchronize(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ECANCELED) {
			t.Errorf("expected context.Canceled, got %v", err)
		}
		if err := array.Synchronize(ctx); !errors.Is(err, context.Canceled) || api.Calls(api.Synchronize) != waits+1 {
			t.Errorf("expected context.Canceled without a call, got %v", err)
		}
		expectReady(t, array, false)
		succeed(t, array.WaitOn(streamOf(api, gated.Consumer)))
		child, err := array.TakeChild(0)
		succeed(t, err)
		child.Close()
		array.Close()
		// The other child's data need not wait; the event does, and the wait has not ended.
		expectCount(t, "children", children, 2)
		expectCount(t, "parents", parents, 0)
		gated.OpenGate()
		parents.waitFor(1)
		for runtime.NumGoroutine() > goroutines {
			runtime.Gosched()
		}
		api.SynchronizeStream(gated.Consumer)
		api.DestroyEvent(event)
		gated.End()
	})
}

// The wait is over, and so is the hold of the array: Close releases it at once.
func TestStandinContextThatDoesNotEnd(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		array, parents, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		succeed(t, array.Synchronize(ctx))
		succeed(t, array.Synchronize(ctx))
		array.Close()
		expectCount(t, "parents", parents, 1)
		gated.End()
	})
}

// releaseBehindGate leaves an array to be released after work behind a gate that is shut.
func releaseBehindGate(t *testing.T, api *gpu.API) (*gpu.Gated, *releaseCount) {
	t.Helper()
	gated := api.NewGated()
	gated.Shut()
	array, releases, _ := countedArray(t, api.Type)
	succeed(t, array.ReleaseAfter(streamOf(api, gated.Producer)))
	return gated, releases
}
