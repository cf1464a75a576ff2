// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

// numbers returns an int32 array at an address and counts its releases.
func numbers(address uintptr, releases *counter) *fletching.DeviceArray {
	builder := fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0, address}}
	return must(builder.BuildOn(abi.DeviceCPU, -1, 0, releases))
}

func TestImportArrayAlignment(t *testing.T) {
	bytes := make([]uint32, 4)
	var pinner runtime.Pinner
	pinner.Pin(&bytes[0])
	defer pinner.Unpin()
	address := uintptr(unsafe.Pointer(&bytes[0])) + 1
	*(*byte)(abi.Pointer(address)) = 7 // the values are 7, 0, 0
	*(*byte)(abi.Pointer(address + 8)) = 9
	imported := func(alignment arrowgo.Alignment) (copied []string, releases *counter, found arrow.Array, err error) {
		releases = new(counter)
		options := arrowgo.Options{Alignment: alignment, OnCopy: func(text string) { copied = append(copied, text) }}
		found, err = arrowgo.ImportArray(context.Background(), numbers(address, releases), arrow.PrimitiveTypes.Int32, options)
		return copied, releases, found, err
	}
	const named = "ArrowArray.buffers[1]: not aligned: expected a multiple of 4"

	_, releases, _, err := imported(arrowgo.RefuseMisaligned)
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), named) || *releases != 1 {
		t.Error(err, *releases)
	}
	copied, releases, found, err := imported(arrowgo.CopyMisaligned)
	if err != nil || len(copied) != 1 || !strings.Contains(copied[0], named) {
		t.Fatal(err, copied)
	}
	*(*byte)(abi.Pointer(address)) = 8 // must not change the copy
	runtime.GC()
	if values := found.(*array.Int32).Int32Values(); values[0] != 7 || values[2] != 9 {
		t.Error(values)
	}
	if found.Release(); *releases != 1 {
		t.Error(*releases)
	}
	copied, releases, found, err = imported(arrowgo.AcceptMisaligned)
	if err != nil || len(copied) != 0 || uintptr(unsafe.Pointer(&found.Data().Buffers()[1].Bytes()[0])) != address {
		t.Fatal(err, copied)
	}
	if found.Release(); *releases != 1 {
		t.Error(*releases)
	}
}

// There is one more offset than rows.
func TestImportCopiesMisalignedOffsets(t *testing.T) {
	memory := make([]byte, 16)
	offsets := memory[1:13]
	for i, offset := range []uint32{0, 1, 3} {
		binary.NativeEndian.PutUint32(offsets[4*i:], offset)
	}
	text := []byte("abc")
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&memory[0])
	pinner.Pin(&text[0])
	builder := fletching.ArrayBuilder{
		Length: 2, Buffers: []uintptr{0, uintptr(unsafe.Pointer(&offsets[0])), uintptr(unsafe.Pointer(&text[0]))},
	}
	source := must(must(builder.Build(nil)).ToDevice())
	options := arrowgo.Options{Alignment: arrowgo.CopyMisaligned}
	found := must(arrowgo.ImportArray(context.Background(), source, arrow.BinaryTypes.String, options)).(*array.String)
	defer found.Release()
	if found.Value(0) != "a" || found.Value(1) != "bc" {
		t.Errorf("got %v", found)
	}
}

// Each copy has separate memory.
func TestImportCopiesMisalignedColumns(t *testing.T) {
	memory := make([]uint64, 3)
	var pinner runtime.Pinner
	pinner.Pin(&memory[0])
	defer pinner.Unpin()
	address := uintptr(unsafe.Pointer(&memory[0])) + 1
	table := fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0}}
	fields := make([]arrow.Field, 2)
	for i := range fields {
		at := address + uintptr(i)*8
		*(*byte)(abi.Pointer(at)) = byte(i + 1)
		table.Children = append(table.Children, fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}})
		fields[i] = arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Uint64}
	}
	source := must(must(table.Build(nil)).ToDevice())
	options := arrowgo.Options{Alignment: arrowgo.CopyMisaligned}
	found := must(arrowgo.ImportArray(context.Background(), source, arrow.StructOf(fields...), options)).(*array.Struct)
	defer found.Release()
	for i := range fields {
		var expected [8]byte
		expected[0] = byte(i + 1)
		if value := found.Field(i).(*array.Uint64).Value(0); value != binary.NativeEndian.Uint64(expected[:]) {
			t.Errorf("column %d: %#x", i, value)
		}
	}
}

// No builder makes a negative offset.
func TestImportRejectsNegativeOffset(t *testing.T) {
	releases := new(counter)
	raw := new(abi.ArrowDeviceArray)
	must(0, numbers(1<<20, releases).Export(unsafe.Pointer(raw)))
	raw.Array.Offset = -1
	source := must(fletching.ImportDeviceArray(unsafe.Pointer(raw)))
	_, err := arrowgo.ImportArray(context.Background(), source, arrow.PrimitiveTypes.Int32, arrowgo.Options{})
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "length or offset out of range: expected 0 or more, got 3 and -1") {
		t.Error(err)
	}
	if *releases != 1 {
		t.Error(*releases)
	}
}
