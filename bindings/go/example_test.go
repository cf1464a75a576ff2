// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// Passes a table of two columns through C and back, as in README.md.
func Example() {
	first, second := must(fletching.FromValues([]int32{1, 2, 3})), must(fletching.FromValues([]float64{0.5, 1.5, 2.5}))
	table := fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0}, Children: []fletching.ArrayBuilder{
		{Length: 3, Buffers: first.BufferAddresses()}, {Length: 3, Buffers: second.BufferAddresses()},
	}}
	exported := must(table.Build(owners{first, second})) // closed after C releases the table

	var raw abi.ArrowArray // in a real program the address comes from C, or from cdata
	if err := exported.Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	imported := must(fletching.ImportArray(unsafe.Pointer(&raw)))
	defer imported.Close()
	column := imported.Child(1)
	values := unsafe.Slice((*float64)(abi.Pointer(column.Buffer(1))), column.Length())
	fmt.Println(imported.NumChildren(), values)
	// Output: 2 [0.5 1.5 2.5]
}

type owners []*fletching.Array

func (all owners) Close() {
	for _, array := range all {
		array.Close()
	}
}

func ExampleNewDeviceArrayStream() {
	schema, err := (&fletching.SchemaBuilder{Format: "i", Flags: abi.FlagNullable}).Build()
	if err != nil {
		panic(err)
	}
	batches := func(yield func(*fletching.DeviceArray, error) bool) {
		for i := range 3 {
			array, err := fletching.FromValues(make([]int32, i+1))
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(array.ToDevice()) {
				return
			}
		}
	}
	stream, err := fletching.NewDeviceArrayStream(schema, abi.DeviceCPU, batches)
	if err != nil {
		panic(err)
	}
	defer stream.Close() // or stream.Export, to a C consumer
	for batch, err := range stream.All(context.Background()) {
		if err != nil {
			panic(err)
		}
		fmt.Println(batch.Length(), batch.DeviceType())
		batch.Close()
	}
	// Output:
	// 1 cpu
	// 2 cpu
	// 3 cpu
}

// Sends on one goroutine, like a producer in another library, and receives on this one.
func ExampleAsyncStream() {
	ctx := context.Background()
	stream := fletching.NewAsyncStream(ctx, fletching.AsyncOptions{Window: 4})
	defer stream.Close()
	sent := make(chan error, 1)
	go func(handler unsafe.Pointer) {
		schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
		batches := func(yield func(*fletching.DeviceArray, error) bool) {
			for rows := 1; rows <= 3 && yield(must(fletching.FromValues(make([]int32, rows))).ToDevice()); rows++ {
			}
		}
		sent <- fletching.Send(ctx, schema, abi.DeviceCPU, batches, handler)
	}(stream.Handler())
	for batch, err := range stream.All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(batch.Length(), batch.DeviceType())
		batch.Close()
	}
	fmt.Println(<-sent)
	// Output:
	// 1 cpu
	// 2 cpu
	// 3 cpu
	// <nil>
}
