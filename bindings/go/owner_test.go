// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

func expectClosed(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, fletching.ErrClosed) || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%s: expected ErrClosed and EINVAL, got %v", what, err)
	}
}

func TestCloseReleasesOnce(t *testing.T) {
	var log log
	array := importDeviceArray(t, rawDeviceArray(&log, "a", 2, true))
	if array.Length() != 1 || array.NumBuffers() != 2 || array.NumChildren() != 2 || array.DeviceID() != 3 ||
		array.DeviceType() != abi.DeviceCUDA || array.SyncEvent() == 0 || array.IsReleased() {
		t.Error("the accessors read other values")
	}
	view := array.Child(1)
	array.Close()
	log.expect(t, "a0", "a1", "ad", "a", "event")
	array.Close()
	log.expect(t)
	if !array.IsReleased() || array.Length() != 0 || array.DeviceID() != -1 || array.SyncEvent() != 0 {
		t.Error("a closed array is read as another than an empty one")
	}
	if !view.IsReleased() || view.Length() != 0 || view.BufferAddresses() != nil {
		t.Error("a view of a closed array reads something")
	}
}

// Slots are reused. A closed owner must not reach the next struct in its slot.
func TestClosedOwnerDoesNotReadReusedSlot(t *testing.T) {
	var log log
	first := importArray(t, rawArray(&log, "a", 1, false))
	root, child := first.Root(), first.Child(0)
	first.Close()
	log.expect(t, "a0", "a")
	var others []*fletching.Array
	for range 8 {
		others = append(others, importArray(t, rawArray(&log, "b", 1, false)))
	}
	first.Close()
	if _, err := first.TakeChild(0); err == nil || root.Length() != 0 || child.Length() != 0 || first.NumChildren() != 0 {
		t.Error("a closed array reaches another one")
	}
	log.expect(t)
	for _, other := range others {
		other.Close()
	}
}

func TestImportRejectsReleasedStructs(t *testing.T) {
	var released abi.ArrowDeviceArray
	releasedArray := abi.ArrowArray{NChildren: 1, Children: 1}
	for name, err := range map[string]error{
		"nil":      second(fletching.ImportSchema(nil)),
		"released": second(fletching.ImportDeviceArray(unsafe.Pointer(&released))),
		"array":    second(fletching.ImportArray(unsafe.Pointer(&releasedArray))),
	} {
		if !errors.Is(err, syscall.EINVAL) || errors.Is(err, fletching.ErrClosed) {
			t.Errorf("%s: expected EINVAL, got %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestExportMovesArray(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 0, false))
	if err := array.Export(nil); !errors.Is(err, syscall.EINVAL) || array.IsReleased() {
		t.Errorf("export to nil: %v", err)
	}
	out := peer.New[abi.ArrowArray](1)
	defer peer.Free(out)
	if err := array.Export(unsafe.Pointer(&out[0])); err != nil || !array.IsReleased() || out[0].Length != 1 {
		t.Fatalf("export: %v", err)
	}
	array.Close()
	log.expect(t)
	callbacks.ReleaseArrowArray(&out[0])
	log.expect(t, "a")
}

func TestCloseFromSeveralGoroutines(t *testing.T) {
	var log log
	for range 200 {
		array := importArray(t, rawArray(&log, "a", 0, false))
		var wait sync.WaitGroup
		for range 4 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				array.Close()
			}()
		}
		wait.Wait()
		log.expect(t, "a")
	}
}

func TestLeakWithoutObserverIsCounted(t *testing.T) {
	gpu.InProcess(t, func(t *testing.T) { // a process in which OnLeak was never called
		released := newReleases()
		plainArray(t, abi.DeviceCPU, released.add) // leaked
		for released.got() == 0 {
			runtime.GC()
		}
		for fletching.Leaks() != 1 {
			runtime.Gosched()
		}
		runtime.GC()
	})
}

func TestLeakIsReleasedAndCounted(t *testing.T) {
	var log log
	reported := make(chan fletching.Leak, 4)
	fletching.OnLeak(func(leak fletching.Leak) {
		if leak.Struct == "device array" { // other tests leak too
			select {
			case reported <- leak:
			default:
			}
		}
		panic("goes no further")
	})
	defer fletching.OnLeak(nil)
	before := fletching.Leaks()
	for range 100 {
		importArray(t, rawArray(&log, "closed", 0, false)).Close()
		log.expect(t, "closed")
	}
	for range 2 { // empties the pool of slots
		runtime.GC()
	}
	importDeviceArray(t, rawDeviceArray(&log, "a", 1, false)) // leaked
	var leak fletching.Leak
	for found := false; !found; {
		runtime.GC()
		select {
		case leak = <-reported:
			found = log.contains("event")
		case <-time.After(time.Millisecond):
		}
	}
	if leak.Struct != "device array" || fletching.Leaks() <= before {
		t.Errorf("%+v, %d leaks", leak, fletching.Leaks()-before)
	}
	log.expect(t, "a0", "a", "event")
}

//go:noinline
func forget(t *testing.T, onRelease func()) {
	raw := foreignArray(onRelease)
	if _, err := fletching.ImportArray(unsafe.Pointer(&raw)); err != nil {
		t.Error(err)
	}
}

// The releases of leaked owners may block without stalling other cleanups of the process.
func TestBlockingReleasesDoNotStallCleanups(t *testing.T) {
	const count = 32 // more than the runtime's goroutines for cleanups
	before, released, gate := fletching.Leaks(), newReleases(), make(chan struct{})
	for range count {
		forget(t, func() {
			<-gate
			released.add()
		})
	}
	for fletching.Leaks() < before+count {
		runtime.GC()
	}
	collected := make(chan struct{})
	runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, collected)
	for isOver := false; !isOver; {
		runtime.GC()
		select {
		case <-collected:
			isOver = true
		default:
		}
	}
	expectCount(t, "forgotten arrays", released, 0)
	close(gate)
	released.waitFor(count)
}

func TestTraceOwnersAddsStackToLeak(t *testing.T) {
	fletching.TraceOwners(true)
	defer fletching.TraceOwners(false)
	defer fletching.OnLeak(nil)
	for what, leak := range map[string]func(){
		"array": func() {
			closed := must(fletching.FromValues([]int32{1}))
			closed.Close()
			must(fletching.FromValues([]int32{1}))
		},
		"async stream": func() { fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{}) },
	} {
		reported := make(chan fletching.Leak, 64)
		fletching.OnLeak(func(leak fletching.Leak) {
			select {
			case reported <- leak:
			default:
			}
		})
		leak()
		for found := false; !found; {
			runtime.GC()
			select {
			case leak := <-reported: // other tests have leaked before
				found = leak.Struct == what && strings.Contains(leak.Stack, "TestTraceOwnersAddsStackToLeak") &&
					strings.Contains(leak.Stack, "owner_test.go:")
			default:
			}
		}
	}
}

func TestUntracedLeakHasNoStack(t *testing.T) {
	fletching.TraceOwners(true)
	must(fletching.FromValues([]int32{1})).Close()
	fletching.TraceOwners(false)
	defer fletching.OnLeak(nil)
	reported := make(chan fletching.Leak, 64)
	fletching.OnLeak(func(leak fletching.Leak) { reported <- leak })
	before := fletching.Leaks()
	for forget(t, func() {}); fletching.Leaks() == before; {
		runtime.GC()
	}
	if leak := <-reported; strings.Contains(leak.Stack, t.Name()) {
		t.Errorf("expected no stack, got that of an earlier owner: %s", leak.Stack)
	}
}

// A view and a taken child keep the structs that they need alive without the owner.
func TestViewsKeepOwnerAlive(t *testing.T) {
	var log log
	child := importArray(t, rawArray(&log, "a", 1, false)).Child(0)
	for range 5 {
		runtime.GC()
		if child.Length() != 1 {
			t.Fatal("the owner was collected below a view of it")
		}
	}
	log.expect(t)
	runtime.KeepAlive(child)
}

func TestImportAllocatesOnce(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("counters of coverage allocate")
	}
	var raw abi.ArrowDeviceArray
	count := testing.AllocsPerRun(1000, func() {
		peer.Leaf(&raw)
		must(fletching.ImportDeviceArray(unsafe.Pointer(&raw))).Close()
	})
	if count > 1 && !raceEnabled {
		t.Errorf("expected 1 allocation of Go for an import and a close, got %v", count)
	}
}
