// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/targets"
)

func address[T any](value *T) uintptr { return uintptr(unsafe.Pointer(value)) }

// These are package variables because the addresses in the structs do not keep them alive.
var (
	format     = []byte("+s\x00")
	badText    = []byte("\xff\x00")
	childOne   = abi.ArrowSchema{Format: address(&format[0]), Release: 1}
	dictionary = abi.ArrowSchema{Release: 1}
	schemas    = []uintptr{address(&childOne), 0}
	buffers    = []uintptr{0, 0x1000, 7}
	childArray = abi.ArrowArray{Length: 5, Release: 1}
	arrays     = []uintptr{address(&childArray)}
	shape      = []int64{2, 3}
)

func TestAccessorsReturnFields(t *testing.T) {
	schema := abi.ArrowSchema{
		Format: address(&format[0]), Name: address(&badText[0]), NChildren: 2, Children: address(&schemas[0]),
		Dictionary: address(&dictionary), Release: 1,
	}
	if schema.FormatString() != "+s" || schema.NameString() != "\xff" {
		t.Errorf("%q, %q", schema.FormatString(), schema.NameString())
	}
	if !slices.Equal(schema.ChildAddresses(), schemas) || schema.Child(0) != &childOne || schema.Child(0).FormatString() != "+s" {
		t.Errorf("%v", schema.ChildAddresses())
	}
	for _, missing := range []int{-1, 1, 2} { // child 1 is NULL
		if schema.Child(missing) != nil {
			t.Errorf("child %d", missing)
		}
	}
	if schema.DictionaryStruct() != &dictionary {
		t.Error("not the dictionary")
	}
	array := abi.ArrowArray{NBuffers: 3, Buffers: address(&buffers[0]), NChildren: 1, Children: address(&arrays[0]), Release: 1}
	if !slices.Equal(array.BufferAddresses(), buffers) || array.Child(0).Length != 5 || array.DictionaryStruct() != nil {
		t.Errorf("%v", array.BufferAddresses())
	}
	tensor := abi.DLTensor{Ndim: 2, Shape: address(&shape[0])}
	if !slices.Equal(tensor.ShapeSlice(), shape) || tensor.StridesSlice() != nil {
		t.Errorf("%v, %v", tensor.ShapeSlice(), tensor.StridesSlice())
	}
}

func TestAccessorsOfMalformedStructsReturnZero(t *testing.T) {
	full := abi.ArrowSchema{Format: address(&format[0]), NChildren: 2, Children: address(&schemas[0]), Dictionary: address(&dictionary)}
	noChildren := abi.ArrowSchema{NChildren: 1, Release: 1}
	negative := abi.ArrowSchema{NChildren: -1, Children: address(&schemas[0]), Release: 1}
	none := abi.ArrowSchema{Children: address(&schemas[0]), Release: 1}
	huge := abi.ArrowSchema{NChildren: 1 << 62, Children: address(&schemas[0]), Release: 1}
	for name, schema := range map[string]*abi.ArrowSchema{"released": &full, "NULL": &noChildren, "negative": &negative, "none": &none, "huge": &huge} {
		if schema.FormatString() != "" || schema.ChildAddresses() != nil || schema.Child(0) != nil || schema.DictionaryStruct() != nil {
			t.Errorf("%s: something was read", name)
		}
	}
	array := abi.ArrowArray{NBuffers: 3, Buffers: address(&buffers[0])}
	if array.BufferAddresses() != nil {
		t.Error("buffers of a released array")
	}
}

func TestMoveTo(t *testing.T) {
	source := abi.ArrowDeviceArray{Array: abi.ArrowArray{Length: 4, Release: 1}, SyncEvent: 9}
	var moved abi.ArrowDeviceArray
	source.MoveTo(&moved)
	if !source.IsReleased() || moved.IsReleased() || moved.Array.Length != 4 || moved.SyncEvent != 9 {
		t.Errorf("%+v, %+v", source, moved)
	}
	moved.MoveTo(&moved)
	if moved.IsReleased() {
		t.Error("a move to the same struct releases it")
	}
}

// TestCallbackTypesDiffer compiles assignments between fields of different callback types.
func TestCallbackTypesDiffer(t *testing.T) {
	for assignment, compiles := range map[string]bool{
		"stream.Release = stream.Release":                               true,
		"stream.GetNext = array.Release":                                false,
		"stream.Release = array.Release":                                false,
		"stream.GetSchema = stream.GetNext":                             false,
		"stream.Release = array.Children":                               false,
		"array.Children = uintptr(array.Release)":                       true,
		"array.Release = schema.Release":                                false,
		"stream.Release, stream.GetNext = stream.GetNext, 0":            false,
		"array.Release = ArrowArrayReleaseFunc(array.Children)":         true,
		"schema.Release = ArrowSchemaReleaseFunc(uintptr(schema.Name))": true,
	} {
		files := sources(t, "linux", "amd64")
		files["assignment.go"] = "package abi\n\nfunc assign(schema *ArrowSchema, array *ArrowArray, stream *ArrowArrayStream) {\n\t" + assignment + "\n}\n"
		_, err := targets.Check(files, "amd64")
		if compiles != (err == nil) || !compiles && !strings.Contains(err.Error(), "cannot use") {
			t.Errorf("%s: %v", assignment, err)
		}
	}
}
