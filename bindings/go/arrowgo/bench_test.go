// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

type importCase struct {
	dataType arrow.DataType
	builder  fletching.ArrayBuilder
}

// imports are what the benchmarks import: a leaf, and a table of 100 columns.
func imports() map[string]importCase {
	leaf := importCase{arrow.PrimitiveTypes.Int32, fletching.ArrayBuilder{Length: 8, Buffers: []uintptr{0, uintptr(unsafe.Pointer(&room))}}}
	fields, columns := make([]arrow.Field, 100), make(arrays, 100)
	for i := range fields {
		fields[i], columns[i] = arrow.Field{Type: leaf.dataType}, leaf.builder
	}
	table := fletching.ArrayBuilder{Length: 8, Buffers: []uintptr{0}, Children: columns}
	return map[string]importCase{"leaf": leaf, "table": {arrow.StructOf(fields...), table}}
}

func BenchmarkImport(b *testing.B) {
	for name, each := range imports() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				source := must(must(each.builder.Build(nil)).ToDevice())
				must(arrowgo.ImportArray(context.Background(), source, each.dataType, arrowgo.Options{})).Release()
			}
		})
	}
}

// The same with arrow-go's own function.
func BenchmarkImportCdata(b *testing.B) {
	for name, each := range imports() {
		b.Run(name, func(b *testing.B) {
			raw := new(cdata.CArrowArray)
			for b.Loop() {
				must(0, must(each.builder.Build(nil)).Export(unsafe.Pointer(raw)))
				must(cdata.ImportCArrayWithType(raw, each.dataType)).Release()
			}
		})
	}
}
