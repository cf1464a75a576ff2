// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"
	"io"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// countdown implements fletching.Reader.
type countdown struct{ rows int }

func (c *countdown) Next() (*fletching.Array, error) {
	if c.rows == 0 {
		return nil, io.EOF
	}
	c.rows--
	return fletching.FromValues(make([]int32, c.rows+1))
}

func (c *countdown) Close() { fmt.Println("closed at", c.rows) }

// Passes the stream of a reader through C and back.
func ExampleNewArrayStreamFrom() {
	schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	var raw abi.ArrowArrayStream // in a real program the address comes from C
	if err := must(fletching.NewArrayStreamFrom(schema, &countdown{3})).Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	stream := must(fletching.ImportArrayStream(unsafe.Pointer(&raw)))
	types := must(stream.Schema())
	batch := must(stream.Next())
	fmt.Println(types.Format(), batch.Length())
	batch.Close()
	types.Close()
	stream.Close()
	// Output:
	// i 3
	// closed at 2
}

// Rejects an array of another type than the schema.
func ExampleNewArrayStream() {
	schema := must((&fletching.SchemaBuilder{Format: "l"}).Build())
	stream := must(fletching.NewArrayStream(schema, func(yield func(*fletching.Array, error) bool) {
		array := must((&fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, 4096}}).Build(nil))
		array.DeclareType(func() (*fletching.SchemaBuilder, error) { return &fletching.SchemaBuilder{Format: "g"}, nil })
		yield(array, nil)
	}))
	defer stream.Close()
	_, err := stream.Next()
	fmt.Println(err)
	// Output: batch 0: expected format "l", got "g"
}

// onDevice reads device arrays.
type onDevice struct{ countdown }

func (d *onDevice) Next() (*fletching.DeviceArray, error) {
	array, err := d.countdown.Next()
	if err != nil {
		return nil, err
	}
	return array.ToDevice()
}

func ExampleImportDeviceArrayStream() {
	schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	var raw abi.ArrowDeviceArrayStream // in a real program the address comes from C
	if err := must(fletching.NewDeviceArrayStreamFrom(schema, abi.DeviceCPU, &onDevice{countdown{1}})).Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	stream := must(fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw)))
	defer stream.Close()
	stream.Options.OnWarning = func(warning fletching.Warning) { fmt.Println(warning.String()) }
	must(stream.Next()).Close()
	_, err := stream.Next()
	fmt.Println(err == io.EOF)
	// Output:
	// true
	// closed at 0
}

// Requests each batch, and drops the first one.
func ExampleSendChannel() {
	ctx := context.Background()
	consumer := fletching.NewAsyncStream(ctx, fletching.AsyncOptions{Window: -1})
	defer consumer.Close()
	batches, sent := make(chan *fletching.DeviceArray, 2), make(chan error, 1)
	for rows := range 2 {
		batches <- must(must(fletching.FromValues(make([]int32, rows+1))).ToDevice())
	}
	close(batches)
	go func(handler unsafe.Pointer) {
		sent <- fletching.SendChannel(ctx, must((&fletching.SchemaBuilder{Format: "i"}).Build()), abi.DeviceCPU, batches, handler)
	}(consumer.Handler())
	types := must(consumer.Schema(ctx))
	fmt.Println(types.Format(), consumer.DeviceType(), len(consumer.Metadata()))
	types.Close()
	if err := consumer.Request(2); err != nil {
		panic(err)
	}
	for !consumer.Skip() { // the batch has not arrived yet
	}
	batch, _, err := consumer.Next(ctx)
	fmt.Println(batch.Length(), err)
	batch.Close()
	_, _, err = consumer.Next(ctx)
	fmt.Println(err == io.EOF, <-sent)
	// Output:
	// i cpu 0
	// 2 <nil>
	// true <nil>
}
