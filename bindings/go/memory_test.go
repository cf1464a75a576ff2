// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"math"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
	"weak"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// withoutMemory runs the operation repeatedly, with a different one of its C allocations failing each time. After
// ENOMEM the operation must succeed when it is repeated.
func withoutMemory(t *testing.T, operation func() error) {
	t.Helper()
	for nth := 0; ; nth++ {
		var err error
		failed, can := peer.WithoutMemory(nth, func() { err = operation() })
		if !can {
			t.Skip("no allocation can be made to fail with this C library")
		}
		if !failed {
			succeed(t, err)
			if nth == 0 {
				t.Error("nothing was allocated: the test is blind")
			}
			return
		}
		expectError(t, err, syscall.ENOMEM, "no memory")
	}
}

func TestBuildersWithoutMemory(t *testing.T) {
	var log log
	owner := &note{&log, "owner"}
	withoutMemory(t, func() error {
		array, err := batch(2).Build(owner)
		if err == nil {
			array.Close()
		} else if array != nil {
			t.Error("an array with an error")
		}
		return err
	})
	log.expect(t, "owner")
	withoutMemory(t, func() error {
		array, err := batch(2).BuildOn(abi.DeviceCUDA, 0, 0, owner)
		if err == nil {
			array.Close()
		}
		return err
	})
	log.expect(t, "owner")
	withoutMemory(t, func() error {
		schema, err := (&fletching.SchemaBuilder{Format: "i", Name: "a"}).Build()
		if err == nil {
			schema.Close()
		}
		return err
	})
}

// After an error the builder does not keep the owner alive.
func TestOwnerIsCollectedAfterENOMEM(t *testing.T) {
	withoutMemory(t, func() error {
		owner := &[1000]int{}
		kept := weak.Make(owner)
		array, err := batch(2).Build(owner)
		if err == nil {
			array.Close()
		}
		owner = nil
		if runtime.GC(); kept.Value() != nil {
			t.Errorf("kept after %v", err)
		}
		return err
	})
	schema := intSchema()
	defer schema.Close()
	withoutMemory(t, func() error {
		reader := &listReader[*fletching.Array]{}
		kept := weak.Make(reader)
		stream, err := fletching.NewArrayStreamFrom(schema, reader)
		if err == nil {
			stream.Close()
		}
		reader = nil
		if runtime.GC(); kept.Value() != nil {
			t.Errorf("the reader is kept after %v", err)
		}
		return err
	})
}

// A schema that cannot be exported is a released one.
func TestGetSchemaWithoutMemory(t *testing.T) {
	raw := peer.New[abi.ArrowDeviceArrayStream](1)
	defer peer.Free(raw)
	succeed(t, newStream(emptyBatches).Export(unsafe.Pointer(&raw[0])))
	defer callbacks.ReleaseArrowDeviceArrayStream(&raw[0])
	out := peer.New[abi.ArrowSchema](1)
	defer peer.Free(out)
	failed, can := peer.WithoutMemory(0, func() {
		out[0].Release = 1 // a stale value
		if code, _ := callbacks.CallArrowDeviceArrayStreamGetSchema(&raw[0], &out[0]); code != int32(syscall.ENOMEM) {
			t.Errorf("code %d", code)
		}
	})
	if !can {
		t.Skip("no allocation can be made to fail with this C library")
	}
	if !failed || out[0].Release != 0 {
		t.Errorf("failed: %t, release %#x", failed, out[0].Release)
	}
}

// The Go runtime terminates a process that leaks a pin when it detects the leak.
func TestValuesWithoutMemory(t *testing.T) {
	values := []int64{1, 2, 3}
	withoutMemory(t, func() error {
		array, err := fletching.FromValues(values)
		if err == nil {
			array.Close()
		}
		return err
	})
	for range 3 {
		collected := make(chan struct{})
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(collected) })
		runtime.GC()
		<-collected
	}
}

func TestAttachAndSharesWithoutMemory(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 1, false))
	withoutMemory(t, func() error { return array.Attach(&note{&log, "attached"}) })
	var shared *fletching.Shared[*fletching.Array]
	withoutMemory(t, func() (err error) { shared, err = array.Share(); return err })
	log.expect(t)
	var view *fletching.Array
	withoutMemory(t, func() (err error) { view, err = shared.View(); return err })
	shared.Close()
	log.expect(t)
	view.Close()
	log.expect(t, "a0", "a", "attached")
}

func TestChildrenWithoutMemory(t *testing.T) {
	var log log
	array := importDeviceArray(t, rawDeviceArray(&log, "a", 2, true))
	var taken [3]*fletching.DeviceArray
	withoutMemory(t, func() (err error) { taken[0], err = array.TakeChild(0); return err })
	withoutMemory(t, func() (err error) { taken[1], err = array.TakeChild(1); return err })
	withoutMemory(t, func() (err error) { taken[2], err = array.TakeDictionary(); return err })
	array.Close()
	log.expect(t)
	for _, child := range taken {
		child.Close()
	}
	log.expect(t, "a0", "a1", "ad", "a", "event")
}

// expectNoGrowth repeats an operation and reports C memory leaks.
func expectNoGrowth(t *testing.T, what string, operation func()) {
	t.Helper()
	if err := peer.Growth(operation); err == peer.ErrNotReported {
		t.Skip(err)
	} else if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestOperationsFreeCMemory(t *testing.T) {
	background := context.Background()
	expectNoGrowth(t, "a shared array", func() {
		array := must((&fletching.ArrayBuilder{Buffers: []uintptr{0}}).Build(&note{new(log), "owner"}))
		succeed(t, array.Attach(&note{new(log), "attached"}))
		shared := must(array.Share())
		must(shared.View()).Close()
		shared.Close()
	})
	expectNoGrowth(t, "a schema", func() {
		schema := must((&fletching.SchemaBuilder{Format: "i", Name: "a"}).Build())
		shared := must(schema.Share())
		must(shared.View()).Close()
		shared.Close()
	})
	expectNoGrowth(t, "a stream", func() {
		stream := newStream(func(yield func(*fletching.DeviceArray, error) bool) { yield(nil, syscall.EIO) })
		_, err := stream.Next()
		expectError(t, err, syscall.EIO, "")
		stream.Close()
	})
	expectNoGrowth(t, "an async stream", func() {
		stream := fletching.NewAsyncStream(background, fletching.AsyncOptions{})
		batches := func(yield func(*fletching.DeviceArray, error) bool) {
			yield(must(must(fletching.FromValues([]int32{1})).ToDevice()), nil)
		}
		sent := make(chan error)
		go func() { sent <- fletching.Send(background, intSchema(), abi.DeviceCPU, batches, stream.Handler()) }()
		for batch, err := range stream.All(background) {
			succeed(t, err)
			batch.Close()
		}
		stream.Close()
		succeed(t, <-sent)
	})
	expectNoGrowth(t, "an async stream that fails", func() {
		stream := fletching.NewAsyncStream(background, fletching.AsyncOptions{})
		batches := func(yield func(*fletching.DeviceArray, error) bool) {
			yield(nil, fletching.NewError(syscall.EIO, "a text of more than sixteen bytes", nil))
		}
		sent := make(chan error)
		go func() { sent <- fletching.Send(background, intSchema(), abi.DeviceCPU, batches, stream.Handler()) }()
		for _, err := range stream.All(background) {
			expectError(t, err, syscall.EIO, "a text of more")
		}
		stream.Close()
		expectError(t, <-sent, syscall.EIO, "a text of more")
	})
	expectNoGrowth(t, "the text of a panic", func() {
		raw := peer.New[abi.ArrowArrayStream](1)
		raw[0] = abi.ArrowArrayStream{
			GetNext: callbacks.ArrowArrayStreamGetNextStub(), PrivateData: callbacks.NewHandle("not a stream"),
		}
		if code, called := callbacks.CallArrowArrayStreamGetNext(&raw[0], new(abi.ArrowArray)); code == 0 || !called {
			t.Error("no panic")
		}
		callbacks.DeleteHandle(raw[0].PrivateData)
		peer.Free(raw)
	})
	expectNoGrowth(t, "a missing library", func() {
		handle := peer.New[uint64](1)
		handle[0] = 1
		array := awaited(t, abi.DeviceVulkan, uintptr(unsafe.Pointer(&handle[0])))
		if err := array.Synchronize(background); err == nil {
			t.Error("no error")
		}
		array.Close()
		peer.Free(handle)
	})
}

// The library is loaded once. Its name is a C string.
func TestStandinWaitFreesCMemory(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		array, _, _ := countedArray(t, api.Type)
		succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
		api.SynchronizeStream(gated.Producer)
		expectNoGrowth(t, "a wait", func() { succeed(t, array.Synchronize(background)) })
		array.Close()
		gated.End()
	})
}

// --- Sizes beyond the address space ----------------------------------------------------------------

// Metadata that is too long is rejected before it is read.
func TestMetadataRejectsTooLongText(t *testing.T) {
	if unsafe.Sizeof(0) < 8 {
		t.Skip("no slice is that long on a 32-bit target")
	}
	most := math.MaxInt32 // a variable, because the constant most + 1 overflows 32 bits
	size := (most + 1) * int(unsafe.Sizeof(fletching.KeyValue{}))
	reserved, err := syscall.Mmap(-1, 0, size, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skipf("64 GiB of addresses: %v", err)
	}
	defer func() { succeed(t, syscall.Munmap(reserved)) }()
	pairs := unsafe.Slice((*fletching.KeyValue)(unsafe.Pointer(&reserved[0])), most+1)
	_, err = fletching.Metadata(pairs).Encode()
	expectError(t, err, syscall.EINVAL, "too many pairs")
	text := unsafe.String(&reserved[0], most+1)
	for _, pair := range []fletching.KeyValue{{Key: text, Value: ""}, {Key: "", Value: text}} {
		_, err = fletching.Metadata{pair}.Encode()
		expectError(t, err, syscall.EINVAL, "text too long")
		_, err = (&fletching.SchemaBuilder{Format: "i", Metadata: fletching.Metadata{pair}}).Build()
		expectError(t, err, syscall.EINVAL, "SchemaBuilder: metadata: text too long")
	}
}
