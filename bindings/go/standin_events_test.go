// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
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

// A default stream belongs to the array's device, even if another device is current.
func TestStandinDefaultStreamUsesArrayDevice(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		api.OpenDevice(1)
		api.CloseDevice(1)
		waits := func(device int) bool {
			api.OpenDevice(device)
			defer api.CloseDevice(device)
			return gated.IsBlocked(0)
		}
		api.OpenDevice(1) // its context stays open
		api.OpenDevice(0)
		for device, stream := range []fletching.Stream{streamOf(api, 0).OnDevice(0), streamOf(api, 0)} {
			gated.Shut()
			api.RecordEvent(event, gated.Producer)
			array := imported(t, abi.ArrowDeviceArray{
				Array: foreignArray(func() {}), DeviceType: api.Type, DeviceID: 1, SyncEvent: event})
			succeed(t, array.WaitOn(stream))
			array.Close()
			if first, second := waits(0), waits(1); first != (device == 0) || second != (device == 1) {
				t.Errorf("stream of device %d: device 0 waits: %t, device 1 waits: %t", device, first, second)
			}
			gated.OpenGate()
			api.SynchronizeStream(gated.Producer)
			for _, device := range []int{0, 1} {
				api.OpenDevice(device)
				api.SynchronizeStream(0)
				api.CloseDevice(device)
			}
		}
		api.CloseDevice(0)
		api.CloseDevice(1)
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

func TestStandinEventOutlivesParent(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		events := api.Alive().Events
		gated.Shut()
		array, parents, children := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		expectCode(t, array.ExportWithEvent(streamOf(api, gated.Producer)), syscall.EINVAL, "sync_event is set")
		var raw abi.ArrowDeviceArray
		succeed(t, array.Export(unsafe.Pointer(&raw)))
		var child abi.ArrowArray // a consumer moves it out without the package
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

func TestStandinReleaseAfter(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		behind, behindReleases, _ := countedArray(t, api.Type)
		succeed(t, behind.ReleaseAfter(streamOf(api, gated.Producer)))
		if !behind.IsReleased() {
			t.Error("the array is not closed")
		}
		// An array that need not wait overtakes the other: the reaper has queried both by then.
		freeReleases := newReleases()
		free := plainArray(t, api.Type, func() {
			if stack := string(debug.Stack()); !strings.Contains(stack, "room.enter") {
				t.Errorf("expected a release on a goroutine of the package, got\n%s", stack)
			}
			freeReleases.add()
		})
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

// The garbage collector does not count an array as leaked after ReleaseAfter.
func TestStandinReleaseAfterIsNotCollected(t *testing.T) {
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

func TestStandinSlowReleaseDoesNotDelayOthers(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		var barrier sync.WaitGroup // each release waits until all others and the test have arrived
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

func TestStandinSeveralGoroutinesWait(t *testing.T) {
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

// The context ends while the event is behind the producer's gate. The wait leaves the array unchanged and keeps no
// reference to it.
func TestStandinContextEndsDuringWait(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		array, parents, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		queries := api.Calls(api.Query)
		ctx, cancel := context.WithCancel(background)
		go func() {
			for api.Calls(api.Query) < queries+3 {
				runtime.Gosched()
			}
			cancel()
		}()
		if err := array.Synchronize(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, syscall.ECANCELED) {
			t.Errorf("expected context.Canceled, got %v", err)
		}
		queries = api.Calls(api.Query)
		if err := array.Synchronize(ctx); !errors.Is(err, context.Canceled) || api.Calls(api.Query) != queries {
			t.Errorf("expected context.Canceled without a call, got %v", err)
		}
		expectReady(t, array, false)
		array.Close()
		expectCount(t, "parents", parents, 1)
		gated.End()
	})
}

// lateCanceledContext is a context that has ended when it is queried for the second time.
type lateCanceledContext struct {
	context.Context
	done  chan struct{}
	asked int
}

func (e *lateCanceledContext) Done() <-chan struct{} { return e.done }

func (e *lateCanceledContext) Err() error {
	if e.asked++; e.asked == 1 {
		return nil
	}
	return context.Canceled
}

// A loop of waits that end early occupies no thread.
func TestStandinCanceledWaitsKeepNoThread(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		array, _, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		threads := func() int {
			found, err := os.ReadDir("/proc/self/task")
			succeed(t, err)
			return len(found)
		}
		done := make(chan struct{})
		close(done)
		before := threads()
		for range 20_000 {
			if err := array.Synchronize(&lateCanceledContext{Context: background, done: done}); !errors.Is(err, context.Canceled) {
				t.Fatalf("expected context.Canceled, got %v", err)
			}
		}
		if after := threads(); after > before+8 {
			t.Errorf("threads: %d, then %d", before, after)
		}
		array.Close()
		gated.End()
	})
}

// A wait with a context that is never canceled waits in the runtime. It keeps no reference, so Close releases the
// array.
func TestStandinOpenContextWaitsInRuntime(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		array, parents, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		waits := api.Calls(api.Wait)
		succeed(t, array.Synchronize(ctx))
		succeed(t, array.Synchronize(ctx))
		if found := api.Calls(api.Wait); found != waits+2 {
			t.Errorf("waits in the runtime: expected 2, got %d", found-waits)
		}
		array.Close()
		expectCount(t, "parents", parents, 1)
		gated.End()
	})
}

// releaseBehindGate passes an array to ReleaseAfter with a stream behind a closed gate.
func releaseBehindGate(t *testing.T, api *gpu.API) (*gpu.Gated, *releaseCount) {
	t.Helper()
	gated := api.NewGated()
	gated.Shut()
	array, releases, _ := countedArray(t, api.Type)
	succeed(t, array.ReleaseAfter(streamOf(api, gated.Producer)))
	return gated, releases
}

// A stream of another runtime is never passed to the driver. ReleaseAfter then leaks the array, because its work may
// still be running.
func TestStandinRejectsStreamOfOtherRuntime(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		gated.Shut()
		api.RecordEvent(event, gated.Producer)
		other := abi.DeviceROCM
		if api.Type == other {
			other = abi.DeviceCUDA
		}
		for _, device := range []abi.DeviceType{other, abi.DeviceMetal, abi.DeviceExtDev, abi.DeviceCPU, 0} {
			stream := fletching.NewStream(device, gated.Consumer)
			array := awaited(t, api.Type, event)
			expectCode(t, array.WaitOn(stream), syscall.EINVAL, "stream of another runtime")
			array.Close()
			produced, _, _ := countedArray(t, api.Type)
			expectCode(t, produced.ExportWithEvent(stream), syscall.EINVAL, "stream of another runtime")
			produced.Close()
			before := fletching.PendingReleases().Leaked
			kept, releases, _ := countedArray(t, api.Type)
			expectCode(t, kept.ReleaseAfter(fletching.NewStream(device, 0)), syscall.EINVAL, "ReleaseAfter: stream of another runtime")
			expectCount(t, "releases", releases, 0)
			if after := fletching.PendingReleases().Leaked; after != before+1 || !kept.IsReleased() {
				t.Errorf("leaked: %d, then %d", before, after)
			}
		}
		gated.OpenGate()
		api.SynchronizeStream(gated.Producer)
		api.DestroyEvent(event)
		gated.End()
	})
}
