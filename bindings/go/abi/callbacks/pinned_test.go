// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package callbacks_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

var (
	global  [4]int32 // never freed
	escaped []any    // moves values to the heap
)

func TestCheckPinned(t *testing.T) {
	for _, unpinned := range []string{
		"", "ArrowDeviceArray.SyncEvent", "ArrowDeviceArray.Array.Buffers", "ArrowDeviceArray.Array.Buffers[1]",
		"ArrowDeviceArray.Array.Children", "ArrowDeviceArray.Array.Children[0]",
		"ArrowDeviceArray.Array.Children[0].Buffers[0]", "ArrowDeviceArray.Array.Dictionary",
		"ArrowDeviceArray.Array.Dictionary.PrivateData",
	} {
		var pinner runtime.Pinner
		// pin returns the address of Go memory, which it pins unless this path is the one to leave unpinned.
		pin := func(path string, memory unsafe.Pointer) uintptr {
			if path != unpinned {
				pinner.Pin(memory)
			}
			return uintptr(memory)
		}
		event, data := new([4]int64), &[1024]int32{} // not tiny objects: those share a pin
		handle := callbacks.NewHandle(t)
		buffer := [4]uintptr{pin("ArrowDeviceArray.Array.Children[0].Buffers[0]", unsafe.Pointer(&data[7]))}
		child := &abi.ArrowArray{NBuffers: 1, Buffers: pin("-", unsafe.Pointer(&buffer)), Release: 1, PrivateData: handle}
		children := [4]uintptr{pin("ArrowDeviceArray.Array.Children[0]", unsafe.Pointer(child))}
		private := new([16]byte)
		dictionary := &abi.ArrowArray{Release: 1, PrivateData: pin("ArrowDeviceArray.Array.Dictionary.PrivateData", unsafe.Pointer(private))}
		values := new([64]byte)
		buffers := [4]uintptr{uintptr(unsafe.Pointer(&global)), pin("ArrowDeviceArray.Array.Buffers[1]", unsafe.Pointer(values))}
		array := &abi.ArrowDeviceArray{SyncEvent: pin("ArrowDeviceArray.SyncEvent", unsafe.Pointer(event))}
		array.Array = abi.ArrowArray{
			NBuffers: 2, Buffers: pin("ArrowDeviceArray.Array.Buffers", unsafe.Pointer(&buffers)),
			NChildren: 1, Children: pin("ArrowDeviceArray.Array.Children", unsafe.Pointer(&children)),
			Dictionary: pin("ArrowDeviceArray.Array.Dictionary", unsafe.Pointer(dictionary)), Release: 1,
		}
		err := callbacks.CheckPinned(array)
		switch {
		case unpinned == "" && err != nil:
			t.Error(err)
		case unpinned != "" && (err == nil || !strings.HasPrefix(err.Error(), unpinned+": unpinned Go memory: expected")):
			t.Errorf("%s: %v", unpinned, err)
		}
		array.Array.Release = 0
		if err := callbacks.CheckPinned(array); err != nil {
			t.Errorf("of a released struct: %v", err)
		}
		callbacks.DeleteHandle(handle)
		pinner.Unpin()
		escaped = append(escaped, event, data, child, private, dictionary, values, &buffer, &children, &buffers)
	}
	for _, wrong := range []any{nil, 5, abi.ArrowArray{}, new(int)} {
		if err := callbacks.CheckPinned(wrong); err == nil {
			t.Errorf("%T: no error", wrong)
		}
	}
	name := new([32]byte)
	if err := callbacks.CheckPinned(&abi.ArrowSchema{Release: 1, Name: uintptr(unsafe.Pointer(name))}); err == nil {
		t.Error("no error for the name of a schema")
	}
	escaped = append(escaped, name)
	if err := callbacks.CheckPinned((*abi.ArrowSchema)(nil)); err == nil {
		t.Error("no error for nil")
	}
}

func TestCheckPinnedDeepTrees(t *testing.T) {
	var pinner runtime.Pinner
	defer pinner.Unpin()
	chain := func(levels int) *abi.ArrowArray { // with 0 levels the array is its own child
		array := &abi.ArrowArray{Release: 1}
		list := &[4]uintptr{uintptr(unsafe.Pointer(array))}
		pinner.Pin(array)
		pinner.Pin(list)
		if levels == 0 {
			array.NChildren, array.Children = 1, uintptr(unsafe.Pointer(list))
		}
		for range levels - 1 {
			array = &abi.ArrowArray{Release: 1, NChildren: 1, Children: uintptr(unsafe.Pointer(list))}
			list = &[4]uintptr{uintptr(unsafe.Pointer(array))}
			pinner.Pin(array)
			pinner.Pin(list)
		}
		escaped = append(escaped, array, list)
		return array
	}
	if err := callbacks.CheckPinned(chain(256)); err != nil {
		t.Error(err)
	}
	schema := &abi.ArrowSchema{Release: 1}
	pinner.Pin(schema)
	schema.Dictionary = uintptr(unsafe.Pointer(schema))
	if err := callbacks.CheckPinned(schema); err == nil || !strings.HasSuffix(err.Error(), "nested too deep: expected at most 256 levels") {
		t.Error(err)
	}
	for _, levels := range []int{0, 257} {
		err := callbacks.CheckPinned(chain(levels))
		if err == nil || !strings.HasSuffix(err.Error(), "nested too deep: expected at most 256 levels") {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}
