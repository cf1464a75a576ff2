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

var idSchema = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)

func idBatch(ids ...int64) arrow.RecordBatch {
	builder := array.NewRecordBuilder(memory.NewGoAllocator(), idSchema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).AppendValues(ids, nil)
	return builder.NewRecordBatch()
}

// printIDs prints the values of every batch of an arrow-go reader.
func printIDs(reader array.RecordReader) {
	for reader.Next() {
		fmt.Println(reader.RecordBatch().Column(0))
	}
	if err := reader.Err(); err != nil {
		panic(err)
	}
}

// Passes an arrow-go record batch to a C consumer, and imports the array that C returns.
func Example() {
	batch := idBatch(1, 2, 3)
	exported := must(arrowgo.ExportRecordBatch(batch)) // pinned, not copied
	batch.Release()
	var raw abi.ArrowArray // in a real program the address comes from C
	if err := exported.Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	imported := must(must(fletching.ImportArray(unsafe.Pointer(&raw))).ToDevice())

	back, err := arrowgo.ImportRecordBatch(context.Background(), imported, idSchema, arrowgo.Options{})
	if err != nil {
		panic(err)
	}
	defer back.Release()
	fmt.Println(back.NumRows(), back.Column(0))
	// Output: 3 [1 2 3]
}

// Exports a column with its schema, and imports it again.
func ExampleExportArray() {
	builder := array.NewStringBuilder(memory.NewGoAllocator())
	builder.AppendValues([]string{"ash", "", "yew"}, []bool{true, false, true})
	names := builder.NewStringArray()
	builder.Release()
	exported := must(must(arrowgo.ExportArray(names)).ToDevice())
	schema := must(arrowgo.ExportField(arrow.Field{Name: "wood", Type: names.DataType(), Nullable: true}))
	names.Release() // the exported array keeps the memory

	field := must(arrowgo.ImportField(schema))
	imported := must(arrowgo.ImportArray(context.Background(), exported, field.Type, arrowgo.Options{}))
	defer imported.Release()
	fmt.Println(field.Name, imported)
	// Output: wood ["ash" (null) "yew"]
}

// Keeps the metadata of a schema.
func ExampleExportSchema() {
	metadata := arrow.NewMetadata([]string{"origin"}, []string{"sensor 7"})
	exported := must(arrowgo.ExportSchema(arrow.NewSchema(idSchema.Fields(), &metadata)))
	fmt.Println(exported.Format(), exported.Child(0).Name(), exported.Child(0).Format())
	imported := must(arrowgo.ImportSchema(exported)) // closes the exported schema
	fmt.Println(imported.Metadata().ToMap())
	// Output:
	// +s id l
	// map[origin:sensor 7]
}

// Imports a batch that comes with its schema, as from a file or a message.
func ExampleImportBatch() {
	schema, source, err := fletching.NewRecordBatch(fletching.NumberColumn("id", []int64{4, 5}))
	if err != nil {
		panic(err)
	}
	batch, err := arrowgo.ImportBatch(context.Background(), must(source.ToDevice()), schema, arrowgo.Options{})
	if err != nil {
		panic(err)
	}
	defer batch.Release()
	fmt.Println(batch.Schema().Field(0).Name, batch.Column(0))
	// Output: id [4 5]
}

// Exports an arrow-go reader as a C stream, which another part of the program reads.
func ExampleExportReader() {
	first, second := idBatch(1, 2), idBatch(3)
	source := must(array.NewRecordReader(idSchema, []arrow.RecordBatch{first, second}))
	first.Release()
	second.Release()
	exported := must(arrowgo.ExportReader(source))
	source.Release() // the stream keeps the reader
	var raw abi.ArrowArrayStream
	if err := exported.Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}

	stream := must(fletching.ImportArrayStream(unsafe.Pointer(&raw)))
	reader := must(arrowgo.ImportHostReader(context.Background(), stream, arrowgo.Options{}))
	defer reader.Release() // closes the stream
	printIDs(reader)
	// Output:
	// [1 2]
	// [3]
}

// Reads a device stream like any arrow-go reader. The reader waits for events and returns an error for
// memory that the CPU cannot access.
func ExampleImportReader() {
	schema := must(arrowgo.ExportSchema(idSchema))
	stream := must(fletching.NewDeviceArrayStream(schema, abi.DeviceCPU, func(yield func(*fletching.DeviceArray, error) bool) {
		batch := idBatch(6, 7)
		defer batch.Release()
		yield(must(arrowgo.ExportRecordBatch(batch)).ToDevice())
	}))
	reader := must(arrowgo.ImportReader(context.Background(), stream, arrowgo.Options{Alignment: arrowgo.CopyMisaligned}))
	defer reader.Release()
	printIDs(reader)
	// Output: [6 7]
}
