// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"fmt"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// Moves a dictionary-encoded column out of its table.
func ExampleArray_TakeChild() {
	words := fletching.ArrayBuilder{Length: 2}
	table := must((&fletching.ArrayBuilder{Length: 3, Children: []fletching.ArrayBuilder{
		{Length: 3, NullCount: 1, Offset: 2, Buffers: []uintptr{0, 0}, Dictionary: &words},
	}}).Build(nil))
	codes := must(table.TakeChild(0))
	fmt.Println(table.Child(0).IsReleased(), codes.NullCount(), codes.Offset(), codes.NumBuffers(), codes.Dictionary().Length())
	table.Close() // the column stays valid
	values := must(codes.TakeDictionary())
	codes.Close()
	fmt.Println(values.Length())
	values.Close()
	// Output:
	// true 1 2 2 2
	// 2
}

// Passes the columns of one table to several consumers.
func ExampleArray_Share() {
	table := must((&fletching.ArrayBuilder{Length: 3, Children: []fletching.ArrayBuilder{{Length: 3}, {Length: 3}}}).Build(closes("table")))
	shared := must(table.Share())
	column, all := must(shared.Column(1)), must(shared.View())
	fmt.Println(shared.NumColumns(), column.Length(), all.NumChildren())
	shared.Close()
	all.Close()
	column.Close() // the last column releases the table
	// Output:
	// 2 3 2
	// table is closed
}

type closes string

func (name closes) Close() { fmt.Println(name, "is closed") }

// Keeps the memory of a file until the array is released.
func ExampleArray_Attach() {
	array := must((&fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0, 4096}}).Build(nil))
	if err := array.Attach(closes("file")); err != nil {
		panic(err)
	}
	array.Close()
	// Output: file is closed
}

func ExampleImportDeviceArray() {
	builder := fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0, 4096}}
	var raw abi.ArrowDeviceArray // in a real program the address comes from C
	if err := must(builder.BuildOn(abi.DeviceCPU, -1, 0, nil)).Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	array := must(fletching.ImportDeviceArray(unsafe.Pointer(&raw)))
	fmt.Println(array.DeviceType(), array.DeviceID(), array.SyncEvent())
	host := must(array.ToHost())
	defer host.Close()
	fmt.Println(array.IsReleased(), host.Length())
	// Output:
	// cpu -1 0
	// true 3
}

func ExampleReadArray() {
	schema, batch, err := fletching.NewRecordBatch(
		fletching.BoolColumn("seen", []bool{true, false}), fletching.BinaryColumn("key", [][]byte{{1}, {2, 3}}),
	)
	if err != nil {
		panic(err)
	}
	defer schema.Close()
	defer batch.Close()
	seen := must(fletching.ReadArray(batch.Child(0), schema.Child(0)))
	keys := must(fletching.ReadArray(batch.Child(1), schema.Child(1)))
	fmt.Println(seen.Len(), must(seen.Bools()), must(keys.Binaries()), fletching.FormatOf[int32]())
	// Output: 2 [true false] [[1] [2 3]] i
}

func ExampleNewRecordBatch() {
	schema, batch, err := fletching.NewRecordBatch(
		fletching.NumberColumn("id", []int64{1, 2, 3}),
		fletching.StringColumn("name", []string{"a", "", "c"}).WithValidity([]bool{true, false, true}),
	)
	if err != nil {
		panic(err)
	}
	defer schema.Close()
	defer batch.Close() // or batch.Export(address), to a C consumer
	for i := range batch.NumChildren() {
		column, err := fletching.ReadColumn(batch.Root(), schema.Root(), i)
		if err != nil {
			panic(err)
		}
		fmt.Print(schema.Child(i).Name(), ": ")
		if ids, err := fletching.NumbersOf[int64](column); err == nil {
			fmt.Println(ids)
		}
		if names, err := column.Strings(); err == nil {
			fmt.Printf("%q %v\n", names, must(column.Valid()))
		}
	}
	// Output:
	// id: [1 2 3]
	// name: ["a" "" "c"] [true false true]
}
