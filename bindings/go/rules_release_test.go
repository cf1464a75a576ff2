// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// arrayRelease is a foreign release callback.
type arrayRelease func(*abi.ArrowArray)

func (r arrayRelease) Release(self *abi.ArrowArray) { r(self) }

// withRelease sets the callback of an array that owns nothing. Its private_data is the handle.
func withRelease(t *testing.T, raw abi.ArrowArray, release arrayRelease) abi.ArrowArray {
	t.Helper()
	raw.Release, raw.PrivateData = callbacks.ArrowArrayReleaseStub(), callbacks.NewHandle(release)
	t.Cleanup(func() { callbacks.DeleteHandle(raw.PrivateData) })
	return raw
}

func TestRuleReleaseOnce(t *testing.T) {
	var log log
	raw := rawArray(&log, "a", 0, false)
	first := must(fletching.ImportArray(unsafe.Pointer(&raw)))
	if _, err := fletching.ImportArray(unsafe.Pointer(&raw)); err == nil {
		t.Error("imported twice")
	}
	for range 2 {
		first.Close()
	}
	log.expect(t, "a")
}

// A consumer may look at the struct after the release, and so may a second one.
func TestRuleReleaseMarksReleased(t *testing.T) {
	var log log
	raw := bits[abi.ArrowDeviceArray](t, must(batch(2).BuildOn(abi.DeviceCUDA, 0, 0, &note{&log, "dropped"})))
	peer.Release(&raw.Array, 2)
	if !raw.IsReleased() {
		t.Error("not marked")
	}
	log.expect(t, "dropped")
	schema := bits[abi.ArrowSchema](t, must(schemaTree().Build()))
	if callbacks.CallArrowSchemaRelease(schema); !schema.IsReleased() {
		t.Error("not marked")
	}
}

func TestRuleReleaseCheckBeforeUse(t *testing.T) {
	raw := abi.ArrowArray{
		Length: 5, NBuffers: 1, Buffers: nowhere, NChildren: 1, Children: nowhere, Dictionary: nowhere,
	}
	if raw.ChildAddresses() != nil || raw.BufferAddresses() != nil || raw.Child(0) != nil || raw.DictionaryStruct() != nil {
		t.Error("a released struct is read")
	}
	if _, err := fletching.ImportArray(unsafe.Pointer(&raw)); err == nil {
		t.Error("a released struct is imported")
	}
	// A child that is released already.
	var log log
	parent := rawArray(&log, "a", 1, false)
	child := parent.Child(0)
	callbacks.ReleaseArrowArray(child)
	child.NBuffers, child.Buffers, child.NChildren, child.Children = 1, nowhere, 1, nowhere
	array := importArray(t, parent)
	view := array.Child(0)
	if !view.IsReleased() || view.BufferAddresses() != nil || view.NumChildren() != 0 || view.Child(0).Length() != 0 {
		t.Error("a released child is read")
	}
	array.Close()
}

func TestRuleReleaseNotOnChildren(t *testing.T) {
	var log log
	parent := importArray(t, rawArray(&log, "a", 2, false))
	child := must(parent.TakeChild(0))
	log.expect(t)
	if !parent.Child(0).IsReleased() || parent.Child(1).IsReleased() {
		t.Error("the wrong child is released")
	}
	child.Close()
	log.expect(t, "a0")
	parent.Close()
	log.expect(t, "a1", "a")
}

func TestRuleReleaseNoAccessAfter(t *testing.T) {
	raw := withRelease(t, abi.ArrowArray{Length: 9}, func(self *abi.ArrowArray) {
		*self = abi.ArrowArray{
			Length: 9, NBuffers: 1, Buffers: nowhere, NChildren: 1, Children: nowhere, Dictionary: nowhere, PrivateData: nowhere,
		}
	})
	array := importArray(t, raw)
	view := array.Root()
	array.Close()
	if array.Length() != 0 || view.Length() != 0 || view.BufferAddresses() != nil || view.NumChildren() != 0 ||
		view.Child(0).Length() != 0 || !view.Dictionary().IsReleased() {
		t.Error("a released struct is read")
	}
	array.Close()
}

func TestRuleReleaseAddressIndependent(t *testing.T) {
	var log log
	first := bits[abi.ArrowDeviceArray](t, must(batch(2).BuildOn(abi.DeviceCUDA, 0, 0, &note{&log, "dropped"})))
	elsewhere := peer.New[abi.ArrowDeviceArray](1)
	defer peer.Free(elsewhere)
	elsewhere[0] = *first
	*first = abi.ArrowDeviceArray{Array: abi.ArrowArray{PrivateData: nowhere, Children: nowhere, NChildren: 1}}
	callbacks.ReleaseArrowArray(&elsewhere[0].Array)
	log.expect(t, "dropped")
}

func TestRuleReleaseWalksChildren(t *testing.T) {
	var log log
	array := must(batch(2).Build(&note{&log, "dropped"}))
	kept := must(array.TakeChild(0)) // the block, and the other child in it, lives on
	raw := bits[abi.ArrowArray](t, array)
	other := raw.Child(1)
	callbacks.ReleaseArrowArray(raw)
	if !other.IsReleased() {
		t.Error("a child is not released")
	}
	log.expect(t)
	kept.Close()
	log.expect(t, "dropped")
}

func TestRuleReleaseFreesData(t *testing.T) {
	var log log
	must(batch(2).Build(&note{&log, "dropped"})).Close()
	log.expect(t, "dropped")
}

func TestRuleDeviceArrayReleaseFreesDeviceData(t *testing.T) {
	var log log
	must(batch(3).BuildOn(abi.DeviceROCM, 0, 0x1000, &note{&log, "dropped"})).Close()
	log.expect(t, "dropped")
}

// dirty is room for a struct, full of what was there before.
func dirty[R any](t *testing.T) *R {
	t.Helper()
	room := peer.New[R](1)
	t.Cleanup(func() { peer.Free(room) })
	for i := range unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), unsafe.Sizeof(room[0])) {
		unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), unsafe.Sizeof(room[0]))[i] = 0xA5
	}
	return &room[0]
}

func TestRuleReleaseBaseAllocatedByConsumer(t *testing.T) {
	schema := dirty[abi.ArrowSchema](t)
	if err := must((&fletching.SchemaBuilder{Format: "i"}).Build()).Export(unsafe.Pointer(schema)); err != nil {
		t.Fatal(err)
	}
	if schema.FormatString() != "i" || schema.NChildren != 0 || schema.NameString() != "" || schema.Dictionary != 0 {
		t.Errorf("%+v", schema)
	}
	callbacks.ReleaseArrowSchema(schema)
}

func TestRuleDeviceArrayBaseAllocatedByConsumer(t *testing.T) {
	stream := rawStream(t, newStream(counted(new(log), 1)))
	for _, length := range []int64{1, 0} {
		room := dirty[abi.ArrowDeviceArray](t)
		if code, _ := callbacks.CallArrowDeviceArrayStreamGetNext(stream, room); code != 0 || room.Reserved != [3]int64{} ||
			room.SyncEvent != 0 || room.Array.Length != length || room.IsReleased() != (length == 0) {
			t.Errorf("%d %+v", code, room)
		}
		callbacks.ReleaseArrowArray(&room.Array)
	}
	callbacks.CallArrowDeviceArrayStreamRelease(stream)
}

// rawStream moves a stream into memory of C.
func rawStream(t *testing.T, stream *fletching.DeviceArrayStream) *abi.ArrowDeviceArrayStream {
	t.Helper()
	return bits[abi.ArrowDeviceArrayStream](t, stream)
}

// What the user has may change and be collected after the export.
func TestRuleReleaseMembersOwnedByProducer(t *testing.T) {
	name := strings.Repeat("n", 40)
	builder := &fletching.SchemaBuilder{Format: "+s", Name: name, Children: []fletching.SchemaBuilder{{Format: "i"}}}
	schema := bits[abi.ArrowSchema](t, must(builder.Build()))
	builder.Name, builder.Children[0].Format = "?", "?"
	values := []int64{1, 2, 3}
	array := bits[abi.ArrowArray](t, must(fletching.FromValues(slices.Clone(values))))
	for range 3 {
		runtime.GC()
		_ = make([]byte, 1<<16)
	}
	if schema.NameString() != name || schema.Child(0).FormatString() != "i" {
		t.Errorf("%q %q", schema.NameString(), schema.Child(0).FormatString())
	}
	if got := unsafe.Slice((*int64)(abi.Pointer(array.BufferAddresses()[1])), 3); !slices.Equal(got, values) {
		t.Error(got)
	}
}

func TestRuleDeviceArrayMembersOwnedByProducer(t *testing.T) {
	var log log
	raw := rawDeviceArray(&log, "a", 1, false)
	*(*uint64)(abi.Pointer(raw.SyncEvent)) = 7
	parent := importDeviceArray(t, raw)
	child := must(parent.TakeChild(0))
	parent.Close()
	if got := *(*uint64)(abi.Pointer(child.SyncEvent())); got != 7 {
		t.Error(got)
	}
	child.Close()
	log.expect(t, "a0", "a", "event")
}

// What a consumer received is what it returns, and nothing below was touched.
func TestRuleReleaseConsumerFreesNothing(t *testing.T) {
	children, list, buffers := peer.New[abi.ArrowArray](1), peer.New[uintptr](1), []uintptr{0, nowhere}
	defer peer.Free(children)
	defer peer.Free(list)
	calls := 0
	children[0] = withRelease(t, abi.ArrowArray{}, func(*abi.ArrowArray) { calls += 100 })
	list[0] = uintptr(unsafe.Pointer(&children[0]))
	expected := abi.ArrowArray{
		Length: 4, NBuffers: 2, Buffers: uintptr(unsafe.Pointer(&buffers[0])), NChildren: 1, Children: uintptr(unsafe.Pointer(&list[0])),
	}
	child := children[0]
	expected = withRelease(t, expected, func(self *abi.ArrowArray) {
		calls++
		found := *self
		if found.Release = expected.Release; found != expected { // the stub has marked it already
			t.Errorf("expected %+v, got %+v", expected, found)
		}
		self.Release = 0
	})
	shared := must(must(importArray(t, expected).ToDevice()).Share())
	column, view := must(shared.Column(0)), must(shared.View())
	column.Close()
	view.Close()
	if calls != 0 {
		t.Error(calls)
	}
	shared.Close()
	if calls != 1 || children[0] != child || list[0] != uintptr(unsafe.Pointer(&children[0])) || buffers[1] != nowhere {
		t.Error(calls, children[0], list)
	}
}

func TestRuleArrayPrivateDataUntouched(t *testing.T) {
	found := uintptr(0)
	raw := withRelease(t, abi.ArrowArray{}, func(self *abi.ArrowArray) {
		found, self.Release = self.PrivateData, 0
	})
	array := importArray(t, raw)
	if err := array.Attach(1); err != nil {
		t.Fatal(err)
	}
	if array.Close(); found != raw.PrivateData {
		t.Errorf("expected %d, got %d", raw.PrivateData, found)
	}
}

// The callback gets the array inside, and not the struct around it.
func TestRuleDeviceArrayReleaseThroughArray(t *testing.T) {
	length := int64(0)
	raw := withRelease(t, abi.ArrowArray{Length: 7}, func(self *abi.ArrowArray) {
		length, self.Release = self.Length, 0
	})
	importDeviceArray(t, abi.ArrowDeviceArray{Array: raw, DeviceType: abi.DeviceCUDA}).Close()
	if length != 7 {
		t.Error(length)
	}
}

// --- Moves --------------------------------------------------------------------------------------

func TestRuleMoveMarksSource(t *testing.T) {
	var log log
	raw := rawArray(&log, "a", 0, false)
	array := must(fletching.ImportArray(unsafe.Pointer(&raw)))
	if !raw.IsReleased() {
		t.Error("the source lives")
	}
	target := bits[abi.ArrowArray](t, array)
	if !array.IsReleased() || target.IsReleased() {
		t.Error("the source lives")
	}
	log.expect(t)
	callbacks.ReleaseArrowArray(target)
	log.expect(t, "a")
}

func TestRuleDeviceArrayMoveMarksSource(t *testing.T) {
	var log log
	raw := rawDeviceArray(&log, "a", 0, false)
	array := must(fletching.ImportDeviceArray(unsafe.Pointer(&raw)))
	if !raw.IsReleased() || array.SyncEvent() != raw.SyncEvent {
		t.Errorf("%+v", raw)
	}
	target := bits[abi.ArrowDeviceArray](t, array)
	log.expect(t)
	callbacks.ReleaseArrowArray(&target.Array)
	log.expect(t, "a", "event")
}

func TestRuleMoveChildThenReleaseParent(t *testing.T) {
	var log log
	parent := importArray(t, rawArray(&log, "a", 2, false))
	child := must(parent.TakeChild(1))
	parent.Close()
	log.expect(t, "a0", "a")
	if child.Length() != 1 {
		t.Error(child.Length())
	}
	child.Close()
	log.expect(t, "a1")
}

func TestRuleMoveNoInnerPointers(t *testing.T) {
	raw := bits[abi.ArrowDeviceArray](t, must(batch(2).BuildOn(abi.DeviceCUDA, 0, 0x1000, nil)))
	first := uintptr(unsafe.Pointer(raw))
	for _, word := range unsafe.Slice((*uintptr)(unsafe.Pointer(raw)), unsafe.Sizeof(*raw)/unsafe.Sizeof(first)) {
		if word >= first && word < first+unsafe.Sizeof(*raw) {
			t.Errorf("%#x is in the struct at %#x", word, first)
		}
	}
}

// The place of the struct is given back to C before the release of its copy, and of a child of it.
func TestRuleMoveNoStoredAddress(t *testing.T) {
	var log log
	room := peer.New[abi.ArrowDeviceArray](1)
	array := must(batch(2).BuildOn(abi.DeviceCUDA, 0, 0x1000, &note{&log, "dropped"}))
	if err := array.Export(unsafe.Pointer(&room[0])); err != nil {
		t.Fatal(err)
	}
	moved := importDeviceArray(t, room[0])
	room[0] = abi.ArrowDeviceArray{}
	peer.Free(room)
	child := must(moved.TakeChild(1))
	moved.Close()
	child.Close()
	log.expect(t, "dropped")
}
