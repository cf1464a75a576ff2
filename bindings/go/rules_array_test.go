// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"math"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// buildRefused builds the array alone, and as a child of another one.
func buildRefused(t *testing.T, builder fletching.ArrayBuilder) {
	t.Helper()
	const text = "array builder: length, offset or null_count out of range: expected 0 or more, null_count -1 to length"
	expectError(t, second(builder.Build(nil)), syscall.EINVAL, text)
	parent := fletching.ArrayBuilder{Children: []fletching.ArrayBuilder{builder}}
	expectError(t, second(parent.Build(nil)), syscall.EINVAL, text)
}

func built(t *testing.T, builder *fletching.ArrayBuilder) *abi.ArrowArray {
	t.Helper()
	return bits[abi.ArrowArray](t, must(builder.Build(nil)))
}

func TestRuleArrayLengthSet(t *testing.T) {
	for _, length := range []int64{0, 5, math.MaxInt64} {
		if raw := built(t, &fletching.ArrayBuilder{Length: length}); raw.Length != length {
			t.Error(raw.Length)
		}
	}
	buildRefused(t, fletching.ArrayBuilder{Length: -1})
	buildRefused(t, fletching.ArrayBuilder{Length: math.MinInt64})
}

func TestRuleArrayNullCountRange(t *testing.T) {
	for nulls := int64(-1); nulls <= 1; nulls++ {
		if raw := built(t, &fletching.ArrayBuilder{Length: 1, NullCount: nulls}); raw.NullCount != nulls {
			t.Error(raw.NullCount)
		}
	}
	buildRefused(t, fletching.ArrayBuilder{Length: 1, NullCount: -2})
	buildRefused(t, fletching.ArrayBuilder{Length: 1, NullCount: 2})
}

func TestRuleArrayOffsetNotNegative(t *testing.T) {
	if raw := built(t, &fletching.ArrayBuilder{Length: 1, Offset: 1}); raw.Offset != 1 {
		t.Error(raw.Offset)
	}
	buildRefused(t, fletching.ArrayBuilder{Offset: -1})
	buildRefused(t, fletching.ArrayBuilder{Offset: math.MinInt64})
}

func TestRuleArrayBuffersCount(t *testing.T) {
	raw := built(t, batch(2))
	first, second := raw.Child(0), raw.Child(1)
	if raw.NBuffers != 1 || len(first.BufferAddresses()) != 2 || first.BufferAddresses()[1] != 0x1000 ||
		second.BufferAddresses()[1] != 0x1001 {
		t.Errorf("%+v %+v %+v", raw, first, second)
	}
	if raw := built(t, &fletching.ArrayBuilder{}); raw.NBuffers != 0 || raw.Buffers != 0 {
		t.Errorf("%+v", raw)
	}
}

func TestRuleArrayChildrenCount(t *testing.T) {
	raw := built(t, batch(3))
	if raw.NChildren != 3 {
		t.Error(raw.NChildren)
	}
	for _, child := range raw.ChildAddresses() {
		if child == 0 {
			t.Errorf("%+v", raw)
		}
	}
}

func TestRuleArrayChildrenNullOnlyWhenNone(t *testing.T) {
	eachArray(built(t, batch(2)), func(raw *abi.ArrowArray) {
		if (raw.Children == 0) != (raw.NChildren == 0) {
			t.Errorf("%+v", raw)
		}
	})
}

func TestRuleArrayDictionaryNullOtherwise(t *testing.T) {
	raw := built(t, batch(2)) // the last child has one
	if raw.Dictionary != 0 || raw.Child(0).Dictionary != 0 || raw.Child(1).Dictionary == 0 {
		t.Errorf("%+v", raw)
	}
}

func TestRuleArrayReleaseSet(t *testing.T) {
	structs := 0
	eachArray(built(t, batch(2)), func(raw *abi.ArrowArray) {
		structs++
		if raw.Release == 0 {
			t.Errorf("%+v", raw)
		}
	})
	if structs != 5 {
		t.Error(structs)
	}
}

func TestRuleArrayNullCountUnknownAccepted(t *testing.T) {
	var log log
	raw := rawArray(&log, "a", 0, false)
	raw.Length, raw.NullCount = 3, -1
	shared := must(importArray(t, raw).Share())
	view := must(shared.View())
	if view.NullCount() != -1 {
		t.Error(view.NullCount())
	}
	view.Close()
	shared.Close()
}

func TestRuleArrayBuffersNullAccepted(t *testing.T) {
	var log log
	raw := rawArray(&log, "a", 0, false) // both are NULL
	shared := must(importArray(t, raw).Share())
	view := must(shared.View())
	if addresses := view.BufferAddresses(); len(addresses) != 2 || addresses[0] != 0 || addresses[1] != 0 {
		t.Error(addresses)
	}
	view.Close()
	shared.Close()
	none := must((&fletching.ArrayBuilder{}).Build(nil))
	if none.BufferAddresses() != nil || none.Buffer(0) != 0 {
		t.Error("there is a buffer")
	}
	none.Close()
}

// --- Device arrays ------------------------------------------------------------------------------

func TestRuleDeviceArrayDeviceTypeSet(t *testing.T) {
	for _, deviceType := range []abi.DeviceType{abi.DeviceCUDA, 9999} {
		raw := bits[abi.ArrowDeviceArray](t, must(batch(1).BuildOn(deviceType, 0, 0, nil)))
		if raw.DeviceType != deviceType {
			t.Error(raw.DeviceType)
		}
	}
	var log log
	parent := importDeviceArray(t, rawDeviceArray(&log, "a", 1, false))
	child := must(parent.TakeChild(0))
	if child.DeviceType() != abi.DeviceCUDA {
		t.Error(child.DeviceType())
	}
	child.Close()
	parent.Close()
}

func TestRuleDeviceArrayDeviceIdSet(t *testing.T) {
	raw := bits[abi.ArrowDeviceArray](t, must(batch(1).BuildOn(abi.DeviceCUDA, 7, 0, nil)))
	if raw.DeviceID != 7 {
		t.Error(raw.DeviceID)
	}
	var log log
	shared := must(importDeviceArray(t, rawDeviceArray(&log, "a", 1, false)).Share())
	column := must(shared.Column(0))
	if column.DeviceID() != 3 {
		t.Error(column.DeviceID())
	}
	column.Close()
	shared.Close()
}

func TestRuleDeviceArrayDeviceIdConvention(t *testing.T) {
	raw := bits[abi.ArrowDeviceArray](t, must(must(fletching.FromValues([]int8{1})).ToDevice()))
	if raw.DeviceID != -1 || raw.DeviceType != abi.DeviceCPU {
		t.Errorf("%+v", raw)
	}
}

func TestRuleDeviceArrayReservedZero(t *testing.T) {
	for _, array := range []*fletching.DeviceArray{
		must(batch(1).BuildOn(abi.DeviceCUDA, 0, 0, nil)),
		must(must(fletching.FromValues([]int8{1})).ToDevice()),
		must(must(must(batch(1).BuildOn(abi.DeviceCUDA, 0, 0, nil)).Share()).View()),
		must(must(batch(1).BuildOn(abi.DeviceCUDA, 0, 0x1000, nil)).TakeChild(0)),
	} {
		if raw := bits[abi.ArrowDeviceArray](t, array); raw.Reserved != [3]int64{} {
			t.Errorf("%+v", raw)
		}
	}
}

func TestRuleDeviceArrayReleasedLikeArray(t *testing.T) {
	raw := abi.ArrowDeviceArray{DeviceType: abi.DeviceCUDA, SyncEvent: nowhere}
	raw.Array.NChildren, raw.Array.Children = 1, nowhere
	if !raw.IsReleased() {
		t.Error("not released")
	}
	expectError(t, second(fletching.ImportDeviceArray(unsafe.Pointer(&raw))), syscall.EINVAL, "device array is released")
}

// --- Events -------------------------------------------------------------------------------------

// Whatever shows the data has the event: no operation forgets it.
func TestRuleSyncEventNullMeansReady(t *testing.T) {
	var log log
	raw := rawDeviceArray(&log, "a", 2, true)
	event := raw.SyncEvent
	parent := importDeviceArray(t, raw)
	child, dictionary := must(parent.TakeChild(0)), must(parent.TakeDictionary())
	shared := must(parent.Share())
	column := must(shared.Column(1))
	for _, array := range []*fletching.DeviceArray{child, dictionary, column} {
		if array.SyncEvent() != event {
			t.Errorf("expected %#x, got %#x", event, array.SyncEvent())
		}
		array.Close()
	}
	shared.Close()
	log.expect(t, "a0", "ad", "a1", "a", "event")
	onHost := rawDeviceArray(&log, "b", 0, false)
	onHost.DeviceType = abi.DeviceCPU
	array := importDeviceArray(t, onHost)
	expectError(t, second(array.ToHost()), syscall.EINVAL, "array: sync_event not NULL: expected none on cpu")
	array.Close()
}

func TestRuleSyncEventNullWhereNone(t *testing.T) {
	builder := &fletching.ArrayBuilder{}
	expectError(t, second(builder.BuildOn(abi.DeviceCPU, -1, 0x1000, nil)), syscall.EINVAL,
		"array builder: sync_event not NULL: expected NULL, because the device type has no event")
	for _, deviceType := range []abi.DeviceType{abi.DeviceExtDev, abi.DeviceCUDA, 9999} {
		must(builder.BuildOn(deviceType, 0, 0x1000, nil)).Close()
	}
}

func TestRuleSyncEventDestroyedByRelease(t *testing.T) {
	var log log
	array := must(batch(2).BuildOn(abi.DeviceCUDA, 0, 0x1000, &note{&log, "event"}))
	child := must(array.TakeChild(0))
	array.Close()
	log.expect(t)
	child.Close()
	log.expect(t, "event")
}
