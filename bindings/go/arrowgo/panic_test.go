// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"runtime"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

// panicked runs a body that must panic, and collects garbage twice: the finalizer of a runtime.Pinner
// with a leaked pin terminates the process.
func panicked(t *testing.T, body func()) {
	t.Helper()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("expected a panic")
			}
		}()
		body()
	}()
	runtime.GC()
	runtime.GC()
}

func TestOnCopyPanicReleasesArray(t *testing.T) {
	values := make([]uint32, 4)
	var pinner runtime.Pinner
	pinner.Pin(&values[0])
	defer pinner.Unpin()
	releases := new(counter)
	source := numbers(uintptr(unsafe.Pointer(&values[0]))+1, releases)
	options := arrowgo.Options{Alignment: arrowgo.CopyMisaligned, OnCopy: func(text string) { panic(text) }}
	panicked(t, func() {
		_, _ = arrowgo.ImportArray(context.Background(), source, arrow.PrimitiveTypes.Int32, options)
	})
	if *releases != 1 {
		t.Errorf("releases: expected 1, got %d", *releases)
	}
}

func TestExportPanicReleasesArray(t *testing.T) {
	allocator := checked(t)
	numbers := build(t, allocator, arrow.PrimitiveTypes.Int32, "[1, 2]")
	views := array.NewData(arrow.BinaryTypes.StringView, 0, make([]*memory.Buffer, 1), nil, 0, 0)
	fields := arrow.StructOf(arrow.Field{Name: "a", Type: numbers.DataType()}, arrow.Field{Name: "b", Type: views.DataType()})
	data := array.NewData(fields, 2, []*memory.Buffer{nil}, []arrow.ArrayData{numbers.Data(), views}, 0, 0)
	numbers.Release()
	panicked(t, func() { _, _ = arrowgo.ExportArray(dataOnly{data: data}) })
	data.Release()
}

// dataOnly is an array that was not validated.
type dataOnly struct {
	arrow.Array
	data arrow.ArrayData
}

func (d dataOnly) Data() arrow.ArrayData { return d.data }
