// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

// A record batch of arrow-go is passed to a consumer in C, and what C returns becomes a record batch.
func Example() {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	builder := array.NewRecordBuilder(memory.NewGoAllocator(), schema)
	builder.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	batch := builder.NewRecordBatch()
	builder.Release()

	exported := must(arrowgo.ExportRecordBatch(batch)) // pinned, not copied
	batch.Release()
	var raw abi.ArrowArray // in a real program its address comes from C
	if err := exported.Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	imported := must(must(fletching.ImportArray(unsafe.Pointer(&raw))).ToDevice())

	back, err := arrowgo.ImportRecordBatch(context.Background(), imported, schema, arrowgo.Options{})
	if err != nil {
		panic(err)
	}
	defer back.Release()
	fmt.Println(back.NumRows(), back.Column(0))
	// Output: 3 [1 2 3]
}

// A device stream is read as any reader of arrow-go is: events are waited for, and memory that the CPU
// cannot access is an error.
func ExampleImportReader() {
	sum := func(ctx context.Context, stream *fletching.DeviceArrayStream) (total int64, err error) {
		reader, err := arrowgo.ImportReader(ctx, stream, arrowgo.Options{Alignment: arrowgo.CopyMisaligned})
		if err != nil {
			return 0, err
		}
		defer reader.Release()
		for reader.Next() {
			for _, value := range reader.RecordBatch().Column(0).(*array.Int64).Int64Values() {
				total += value
			}
		}
		return total, reader.Err()
	}
	_ = sum
}
