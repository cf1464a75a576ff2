// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"errors"
	"math"
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

type arrays = []fletching.ArrayBuilder

func TestImportArrayWithoutValidityHasNoNulls(t *testing.T) {
	var memory [8]int64
	var pinner runtime.Pinner
	pinner.Pin(&memory)
	defer pinner.Unpin()
	at := uintptr(unsafe.Pointer(&memory))
	ints := fletching.ArrayBuilder{Length: 1, NullCount: -1, Buffers: []uintptr{0, at}}
	entries := fletching.ArrayBuilder{Length: 1, NullCount: -1, Buffers: []uintptr{0}, Children: arrays{ints, ints}}
	int32s := arrow.PrimitiveTypes.Int32
	for _, each := range []struct {
		builder  fletching.ArrayBuilder
		dataType arrow.DataType
	}{
		{ints, int32s},
		{entries, arrow.StructOf(arrow.Field{Name: "a", Type: int32s}, arrow.Field{Name: "b", Type: int32s})},
		{fletching.ArrayBuilder{Length: 1, NullCount: -1, Buffers: []uintptr{0, at}, Children: arrays{entries}}, arrow.MapOf(int32s, int32s)},
		{fletching.ArrayBuilder{Length: 1, Children: arrays{ints, ints}}, arrow.RunEndEncodedOf(int32s, int32s)},
	} {
		source := must(must(each.builder.Build(nil)).ToDevice())
		imported, err := arrowgo.ImportArray(context.Background(), source, each.dataType, arrowgo.Options{})
		if err != nil {
			t.Fatalf("%v: %v", each.dataType, err)
		}
		for _, data := range append(imported.Data().Children(), imported.Data()) {
			if data.NullN() != 0 {
				t.Errorf("%v: expected no nulls, got %d", each.dataType, data.NullN())
			}
		}
		imported.Release()
	}
}

func TestImportArrayRejectsWrongLayout(t *testing.T) {
	var memory [8]int64
	var pinner runtime.Pinner
	pinner.Pin(&memory)
	defer pinner.Unpin()
	at := uintptr(unsafe.Pointer(&memory))
	negative := [2]int64{0, -1}
	pinner.Pin(&negative)
	bad := uintptr(unsafe.Pointer(&negative))
	ints := func(length int64) fletching.ArrayBuilder {
		return fletching.ArrayBuilder{Length: length, Buffers: []uintptr{0, at}}
	}
	int32s, texts, list := arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int32)
	unions := []arrow.Field{{Name: "a", Type: int32s}}
	codes := []arrow.UnionTypeCode{0}
	table := arrow.StructOf(arrow.Field{Name: "a", Type: int32s})
	pairs := arrow.MapOf(int32s, int32s)
	entries := func(keyNulls int64) arrays {
		key := ints(1)
		key.NullCount = keyNulls
		key.Buffers = []uintptr{at, at}
		return arrays{{Length: 1, Buffers: []uintptr{0}, Children: arrays{key, ints(1)}}}
	}
	for _, each := range []struct {
		builder  fletching.ArrayBuilder
		dataType arrow.DataType
		message  string
	}{
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at, at}}, arrow.PrimitiveTypes.Int64, "n_buffers: wrong for int64: expected 2, got 3"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0}}, int32s, "n_buffers: wrong for int32: expected 2, got 1"},
		{fletching.ArrayBuilder{Length: 1 << 62, Buffers: []uintptr{0, at}}, int32s, "length or offset out of range"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}}, list, "n_children: wrong for"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}, Children: arrays{ints(1), ints(1)}}, list, "expected 1, got 2"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}, Children: arrays{{}}}, list, "ArrowArray.children[0].n_buffers"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}}, types[len(types)-1].dataType, "ArrowArray.dictionary: NULL: expected one"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}}, arrow.BinaryTypes.StringView, "expected one with sizes"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at, 0, 0}}, arrow.BinaryTypes.StringView, "buffers[3]: NULL"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at, 0, bad + 8}}, arrow.BinaryTypes.StringView, "buffers[3]: size out of range"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, 0}}, arrow.FixedWidthTypes.Boolean, "buffers[1]: NULL"},
		{fletching.ArrayBuilder{Length: 1, NullCount: 1, Buffers: []uintptr{0, at}}, int32s, "buffers[0]: NULL"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, 0, at}}, texts, "buffers[1]: NULL"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, bad + 4, at}}, texts, "buffers[1]: last offset out of range"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, bad, at}}, arrow.BinaryTypes.LargeString, "buffers[1]: last offset out of range"},
		{fletching.ArrayBuilder{Length: 1 << 55, Buffers: []uintptr{0, at}}, &arrow.Decimal256Type{Precision: 1}, "length or offset out of range"},
		{fletching.ArrayBuilder{Length: 1 << 40, Buffers: []uintptr{0, at}}, &arrow.FixedSizeBinaryType{ByteWidth: 1<<31 - 1}, "length or offset out of range"},
		{fletching.ArrayBuilder{Length: 1 << 40, Buffers: []uintptr{0}, Children: arrays{ints(1)}}, arrow.FixedSizeListOf(1<<30, int32s), "length or offset out of range"},
		{fletching.ArrayBuilder{Length: 2, Buffers: []uintptr{0}, Children: arrays{ints(3)}}, arrow.FixedSizeListOf(2, int32s), "children[0].length: too small"},
		{fletching.ArrayBuilder{Length: 2, Offset: 1, Buffers: []uintptr{0}, Children: arrays{ints(2)}}, table, "children[0].length: too small"},
		{fletching.ArrayBuilder{Length: 2, Buffers: []uintptr{at}, Children: arrays{ints(1)}}, arrow.SparseUnionOf(unions, codes), "children[0].length: too small"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}, Children: arrays{ints(1)}}, arrow.SparseUnionOf(unions, codes), "union layout before Arrow 1.0"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at, at}, Children: arrays{ints(1)}}, arrow.DenseUnionOf(unions, codes), "union layout before Arrow 1.0"},
		{fletching.ArrayBuilder{Length: 1, NullCount: 1, Buffers: []uintptr{at, at}, Children: arrays{ints(1)}}, arrow.DenseUnionOf(unions, codes), "null_count: not zero"},
		{fletching.ArrayBuilder{Length: 1, NullCount: 1, Children: arrays{ints(1), ints(1)}}, arrow.RunEndEncodedOf(int32s, int32s), "null_count: not zero"},
		{fletching.ArrayBuilder{Length: 1, Children: arrays{ints(0), ints(0)}}, arrow.RunEndEncodedOf(int32s, int32s), "children[0].length: too small"},
		{fletching.ArrayBuilder{Length: 1, Children: arrays{ints(2), ints(1)}}, arrow.RunEndEncodedOf(int32s, int32s), "less than the run ends'"},
		{fletching.ArrayBuilder{Length: 1, Children: arrays{{Length: 1, NullCount: -1, Buffers: []uintptr{at, at}}, ints(1)}}, arrow.RunEndEncodedOf(int32s, int32s), "null run ends"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}, Children: entries(1)}, pairs, "children[0].children[0]: null entries or keys"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}, Dictionary: &fletching.ArrayBuilder{}}, int32s, "dictionary: not NULL"},
		{fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, at}, Dictionary: &fletching.ArrayBuilder{}}, types[len(types)-1].dataType, "ArrowArray.dictionary.n_buffers"},
	} {
		releases := new(counter)
		source := must(must(each.builder.Build(releases)).ToDevice())
		_, err := arrowgo.ImportArray(context.Background(), source, each.dataType, arrowgo.Options{})
		if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), each.message) {
			t.Errorf("%v: expected %q, got %v", each.dataType, each.message, err)
		}
		if *releases != 1 || !source.IsReleased() {
			t.Errorf("%v: %s: releases: expected 1, got %d", each.dataType, each.message, *releases)
		}
	}
}

func TestImportArrayComputesBufferSizes(t *testing.T) {
	const at = 1 << 20 // never read
	const most = (math.MaxInt - 7) / 32
	child := arrays{{Buffers: []uintptr{0, at}}}
	int32s := arrow.PrimitiveTypes.Int32
	for _, each := range []struct {
		builder  fletching.ArrayBuilder
		dataType arrow.DataType
		sizes    []int
	}{
		{fletching.ArrayBuilder{Length: 8, Buffers: []uintptr{at, at, at}, Children: child}, arrow.ListViewOf(int32s), []int{1, 32, 32}},
		{fletching.ArrayBuilder{Length: 8, Buffers: []uintptr{at, at}, Children: child}, arrow.UnionOf(arrow.DenseMode, []arrow.Field{{Name: "a", Type: int32s}}, []arrow.UnionTypeCode{0}), []int{0, 8, 32}},
		{fletching.ArrayBuilder{Length: 8, Buffers: []uintptr{at, at, at}, Children: child}, arrow.LargeListViewOf(int32s), []int{1, 64, 64}},
		{fletching.ArrayBuilder{Length: most, Buffers: []uintptr{at, at}}, int32s, []int{(most + 7) / 8, most * 4}},
	} {
		source := must(must(each.builder.Build(nil)).ToDevice())
		imported, err := arrowgo.ImportArray(context.Background(), source, each.dataType, arrowgo.Options{})
		if err != nil {
			t.Errorf("%v: %v", each.dataType, err)
			continue
		}
		for i, buffer := range imported.Data().Buffers() {
			if size := each.sizes[i]; size > 0 && buffer.Len() != size {
				t.Errorf("%v: buffer %d: expected %d bytes, got %d", each.dataType, i, size, buffer.Len())
			}
		}
		imported.Release()
	}
}

// An array without values may have NULL for every buffer, and may have an offset.
func TestImportArrayAcceptsNullBuffersWithoutValues(t *testing.T) {
	for _, each := range types {
		for _, offset := range []int64{0, 5} {
			t.Run(each.name, func(t *testing.T) {
				releases := new(counter)
				builder := emptyOf(t, each.dataType)
				builder.Offset = offset
				source := must(must(builder.Build(releases)).ToDevice())
				back := must(arrowgo.ImportArray(context.Background(), source, each.dataType, arrowgo.Options{}))
				if back.Len() != 0 {
					t.Error(back)
				}
				back.Release()
				if *releases != 1 {
					t.Error(*releases)
				}
			})
		}
	}
}

// emptyOf returns an array of a type with NULL for every buffer.
func emptyOf(t *testing.T, dataType arrow.DataType) fletching.ArrayBuilder {
	source := build(t, checked(t), dataType, "[]")
	defer source.Release()
	exported := must(arrowgo.ExportArray(source))
	defer exported.Close()
	var empty func(view fletching.ArrayView, offset int64) fletching.ArrayBuilder
	empty = func(view fletching.ArrayView, offset int64) fletching.ArrayBuilder {
		result := fletching.ArrayBuilder{Buffers: make([]uintptr, view.NumBuffers()), Length: offset}
		for i := range result.Buffers {
			if offset > 0 {
				result.Buffers[i] = uintptr(unsafe.Pointer(&room))
			}
		}
		for i := range view.NumChildren() {
			result.Children = append(result.Children, empty(view.Child(i), offset))
		}
		if dictionary := view.Dictionary(); !dictionary.IsReleased() {
			values := empty(dictionary, 0)
			result.Dictionary = &values
		}
		return result
	}
	return empty(exported.Root(), 0)
}

var room [64]uint64

func TestImportArrayAcceptsUnknownNullCount(t *testing.T) {
	values := []int32{1, 2, 3}
	bits := []byte{7}
	var pinner runtime.Pinner
	pinner.Pin(&values[0])
	pinner.Pin(&bits[0])
	defer pinner.Unpin()
	validity, at := uintptr(unsafe.Pointer(&bits[0])), uintptr(unsafe.Pointer(&values[0]))
	column := fletching.ArrayBuilder{Length: 1, NullCount: -1, Buffers: []uintptr{validity, at}}
	offsets := []int32{0, 1}
	pinner.Pin(&offsets[0])
	source := must(must((&fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, uintptr(unsafe.Pointer(&offsets[0]))}, Children: arrays{
		{Length: 1, NullCount: -1, Buffers: []uintptr{validity}, Children: arrays{column, column}}}}).Build(nil)).ToDevice())
	back := must(arrowgo.ImportArray(context.Background(), source, arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32), arrowgo.Options{}))
	defer back.Release()
	if keys := back.(*array.Map).Keys().(*array.Int32); keys.Len() != 1 || keys.Value(0) != 1 {
		t.Error(back)
	}
}

func TestImportBatch(t *testing.T) {
	releases := new(counter)
	schema := must((&fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{{Format: "i", Name: "a"}}}).Build())
	column := fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0, uintptr(unsafe.Pointer(&room))}}
	source := must((&fletching.ArrayBuilder{Length: 2, Offset: 1, Buffers: []uintptr{0}, Children: arrays{column}}).BuildOn(abi.DeviceCPU, -1, 0, releases))
	batch := must(arrowgo.ImportBatch(context.Background(), source, schema, arrowgo.Options{}))
	if batch.NumRows() != 2 || batch.Column(0).Len() != 2 || batch.ColumnName(0) != "a" || !schema.IsReleased() {
		t.Error(batch)
	}
	batch.Release()
	wrong := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	source = must((&fletching.ArrayBuilder{Length: 2, Buffers: []uintptr{0, 0}}).BuildOn(abi.DeviceCPU, -1, 0, releases))
	if _, err := arrowgo.ImportBatch(context.Background(), source, wrong, arrowgo.Options{}); !errors.Is(err, syscall.EINVAL) || !wrong.IsReleased() {
		t.Error(err)
	}
	if *releases != 2 {
		t.Error(*releases)
	}
}
