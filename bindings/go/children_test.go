// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
	"weak"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

func expectError(t *testing.T, err error, code syscall.Errno, text string) {
	t.Helper()
	var ours *fletching.Error
	if !errors.As(err, &ours) || !errors.Is(err, code) || !strings.Contains(err.Error(), text) {
		t.Errorf("expected %v with %q, got %v", code, text, err)
	}
}

func TestTakeChild(t *testing.T) {
	var log log
	parent := importArray(t, rawArray(&log, "a", 2, true))
	child, dictionary := must(parent.TakeChild(1)), must(parent.TakeDictionary())
	for _, index := range []int{-1, 2} {
		_, err := parent.TakeChild(index)
		expectError(t, err, syscall.EINVAL, fmt.Sprintf("TakeChild: child %d: no such child: expected an index below 2", index))
	}
	_, err := parent.TakeChild(1)
	expectError(t, err, syscall.EINVAL, "TakeChild: child 1: released or moved out: expected a live struct")
	_, err = parent.TakeDictionary()
	expectError(t, err, syscall.EINVAL, "TakeDictionary: released or moved out")
	_, err = child.TakeDictionary()
	expectError(t, err, syscall.EINVAL, "TakeDictionary: NULL: expected a struct")
	if !parent.Child(1).IsReleased() || parent.Child(0).IsReleased() {
		t.Error("the parent lists another child as moved out")
	}
	parent.Close()
	log.expect(t, "a0", "a")
	child.Close()
	dictionary.Close()
	log.expect(t, "a1", "ad")
}

// The event is valid until the parent and every taken child are released, in any order.
func TestRuleSyncEventDestroyedByRelease(t *testing.T) {
	for _, order := range permutations(4) {
		var log log
		parent := importDeviceArray(t, rawDeviceArray(&log, "a", 3, true))
		event := parent.SyncEvent()
		parts := []*fletching.DeviceArray{
			parent, must(parent.TakeChild(0)), must(parent.TakeChild(2)), must(parent.TakeDictionary()),
		}
		closes := map[int][]string{0: {"a1"}, 1: {"a0"}, 2: {"a2"}, 3: {"ad"}}
		for i, part := range order {
			if parts[part].SyncEvent() != event || parts[part].DeviceID() != 3 || parts[part].DeviceType() != abi.DeviceCUDA {
				t.Error("a child is on another device")
			}
			parts[part].Close()
			expected := closes[part]
			if i == 3 {
				expected = append(expected, "a", "event")
			}
			log.expect(t, expected...)
		}
	}
}

func permutations(count int) [][]int {
	if count == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(count - 1) {
		for at := range count {
			next := append(append(append([]int{}, shorter[:at]...), count-1), shorter[at:]...)
			all = append(all, next)
		}
	}
	return all
}

// The taken child keeps the event alive, but not the other structs of the parent.
func TestTakenChildDoesNotKeepDictionary(t *testing.T) {
	var log log
	array := importDeviceArray(t, rawDeviceArray(&log, "a", 2, true))
	taken := must(array.TakeChild(0))
	array.Close()
	log.expect(t, "a1", "ad")
	taken.Close()
	log.expect(t, "a0", "a", "event")
}

func TestAttach(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 1, false))
	for _, text := range []string{"first", "second"} {
		if err := array.Attach(&note{&log, text}); err != nil {
			t.Fatal(err)
		}
	}
	child := must(array.TakeChild(0))
	raw := peer.New[abi.ArrowArray](1)
	defer peer.Free(raw)
	if err := array.Export(unsafe.Pointer(&raw[0])); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	peer.Release(&raw[0], 3)
	log.expect(t, "a", "first", "second")
	child.Close()
	log.expect(t, "a0")

	schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	if err := schema.Attach(&note{&log, "schema"}); err != nil {
		t.Fatal(err)
	}
	schema.Close()
	log.expect(t, "schema")
}

func TestManyAttachedValuesAreClosed(t *testing.T) {
	const most = 1 << 18
	var log log
	array := importDeviceArray(t, rawDeviceArray(&log, "a", 2, false))
	closed := 0
	for i := range most {
		if i == most/2 || i == most/2+1 { // the second child reuses the reference to the event
			must(array.TakeChild(i - most/2)).Close()
		}
		if err := array.Attach(onClose(func() { closed++ })); err != nil {
			t.Fatal(err)
		}
	}
	array.Close()
	log.expect(t, "a0", "a1", "a", "event")
	if closed != most {
		t.Errorf("closed: expected %d, got %d", most, closed)
	}
}

type onClose func()

func (f onClose) Close() { f() }

// Views below a moved-out struct read as released.
func TestViewsBelowMovedChildAreReleased(t *testing.T) {
	var log log
	raw := rawArray(&log, "a", 1, false)
	callbacks.ReleaseArrowArray(raw.Child(0))
	log.expect(t, "a0")
	*raw.Child(0) = rawArray(&log, "b", 1, true)
	array := importArray(t, raw)
	below := []fletching.ArrayView{array.Child(0).Child(0), array.Child(0).Dictionary()}
	if below[0].Length() != 1 || below[1].Length() != 1 {
		t.Error("expected two arrays of one value")
	}
	taken := must(array.TakeChild(0))
	for i, view := range below {
		if !view.IsReleased() || view.Length() != 0 {
			t.Errorf("view %d: expected a released struct", i)
		}
	}
	taken.Close()
	array.Close()
	log.expect(t, "b0", "bd", "b", "a")
}

// The table of handles does not keep a value after its release.
func TestAttachedValueIsCollectedAfterRelease(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 0, false))
	value := &[1000]int{}
	kept := weak.Make(value)
	if err := array.Attach(value); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if kept.Value() == nil {
		t.Error("collected before the release")
	}
	array.Close()
	runtime.GC()
	if kept.Value() != nil {
		t.Error("kept after the release")
	}
}

func TestInvalidBufferCountReadsAsZero(t *testing.T) {
	var log log
	buffers := peer.New[uintptr](1 << 22)
	defer peer.Free(buffers)
	for count, expected := range map[int64]int{-1: 0, math.MaxInt64: 0, 1<<22 + 1: 0, 1 << 22: 1 << 22} {
		raw := rawArray(&log, "a", 0, false)
		raw.NBuffers, raw.Buffers = count, uintptr(unsafe.Pointer(&buffers[0]))
		array := importArray(t, raw)
		if found := array.NumBuffers(); found != expected || len(array.BufferAddresses()) != expected || array.Buffer(0) != 0 {
			t.Errorf("%d buffers: expected %d, got %d", count, expected, found)
		}
		array.Close()
	}
}

// Nests an array of 256 levels in one more level.
func TestViewRejectsTooDeepArray(t *testing.T) {
	var log log
	deep := fletching.ArrayBuilder{}
	for range 255 {
		deep = fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{deep}}
	}
	raw := rawArray(&log, "a", 1, false)
	callbacks.ReleaseArrowArray(raw.Child(0))
	child := must(deep.Build(nil))
	if err := child.Export(abi.Pointer(raw.ChildAddresses()[0])); err != nil {
		t.Fatal(err)
	}
	shared := must(importArray(t, raw).Share())
	must(shared.Column(0)).Close()
	_, err := shared.View()
	expectError(t, err, syscall.EINVAL, "View: the struct or a descendant is nested too deep: expected at most 256 levels")
	shared.Close()
	log.expect(t, "a0", "a")
}

type panicOnClose struct{}

func (panicOnClose) Close() { panic("in Close") }

func TestPanicInCloseIsCaught(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 0, false))
	if err := array.Attach(panicOnClose{}); err != nil {
		t.Fatal(err)
	}
	array.Close()
	log.expect(t, "a")
	must((&fletching.ArrayBuilder{}).Build(panicOnClose{})).Close()
}

func TestShare(t *testing.T) {
	var log log
	array := importDeviceArray(t, rawDeviceArray(&log, "a", 2, true))
	event := array.SyncEvent()
	shared := must(array.Share())
	expectClosed(t, "share", second(array.Share()))
	first, again, whole := must(shared.Column(0)), must(shared.Column(0)), must(shared.View())
	_, err := shared.Column(2)
	expectError(t, err, syscall.EINVAL, "Column: child 2: no such child: expected an index below 2")
	if first.Length() != 1 || first.SyncEvent() != event || whole.NumChildren() != 2 || whole.Dictionary().IsReleased() ||
		whole.Child(1).Buffer(0) != 0 || shared.NumColumns() != 2 {
		t.Error("a view reads other values")
	}
	moved := must(whole.TakeChild(1))
	shared.Close()
	expectClosed(t, "view", second(shared.View()))
	expectClosed(t, "column", second(shared.Column(0)))
	for _, part := range []*fletching.DeviceArray{first, again, whole} {
		part.Close()
		log.expect(t)
	}
	if moved.Length() != 1 {
		t.Error("a child of a view reads other values")
	}
	moved.Close()
	log.expect(t, "a0", "a1", "ad", "a", "event")
}

func TestColumnRejectsInvalidChildren(t *testing.T) {
	var log log
	raw := rawArray(&log, "a", 3, false)
	raw.Child(1).NChildren = -1
	array := importArray(t, raw)
	must(array.TakeChild(0)).Close()
	log.expect(t, "a0")
	shared := must(array.Share())
	for index, text := range []string{
		"Column: the struct or a descendant is released or moved out",
		"Column: the struct or a descendant has n_children out of range: expected 0 to 4194304, got -1",
	} {
		_, err := shared.Column(index)
		expectError(t, err, syscall.EINVAL, text)
	}
	_, err := shared.View()
	expectError(t, err, syscall.EINVAL, "View: the struct or a descendant is released or moved out")
	must(shared.Column(2)).Close()
	shared.Close()
	log.expect(t, "a1", "a2", "a")
}

func TestSharedSchema(t *testing.T) {
	builder := fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{
		{Format: "i", Name: "key", Metadata: fletching.Metadata{{Key: "unit", Value: "m"}}},
	}}
	shared := must(must(builder.Build()).Share())
	column := must(shared.Column(0))
	shared.Close()
	metadata := must(column.Metadata())
	if unit, _ := metadata.Get("unit"); column.Format() != "i" || column.Name() != "key" || unit != "m" {
		t.Error("a column reads other values")
	}
	column.Close()
}

func TestToHostAndToDevice(t *testing.T) {
	var log log
	device := must(importArray(t, rawArray(&log, "a", 0, false)).ToDevice())
	if device.DeviceType() != abi.DeviceCPU || device.DeviceID() != -1 || device.SyncEvent() != 0 {
		t.Error("another device than the CPU")
	}
	must(device.ToHost()).Close()
	log.expect(t, "a")
	cuda := importDeviceArray(t, rawDeviceArray(&log, "a", 0, false))
	_, err := cuda.ToHost()
	expectError(t, err, syscall.EINVAL, "ToHost: wrong device type: expected cpu, got cuda")
	cuda.Close()
	log.expect(t, "a", "event")
	raw := rawDeviceArray(&log, "a", 0, false)
	raw.DeviceType = abi.DeviceCPU
	withEvent := importDeviceArray(t, raw)
	_, err = withEvent.ToHost()
	expectError(t, err, syscall.EINVAL, "ToHost: sync_event not NULL: expected none on cpu")
	withEvent.Close()
}
