// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

// produce sends batches to the stream with arrow-go's own async producer. Its buffers are in C memory
// because cdata does not pin Go memory. The stream ends after `end`: arrow-go's producer panics if a
// request arrives while it ends, so the caller first receives the batches.
func produce(count int, handler unsafe.Pointer) (sent chan error, end func(), size func() int) {
	allocator := mallocator.NewMallocator()
	messages := make(chan cdata.RecordMessage, count)
	source := tablesIn(allocator, count)
	for source.Next() {
		record := source.RecordBatch()
		record.Retain()
		messages <- cdata.RecordMessage{Record: record}
	}
	source.Release()
	sent = make(chan error, 1)
	go func() {
		sent <- cdata.ExportAsyncRecordBatchStream(schemaOfA, messages, (*cdata.CArrowAsyncDeviceStreamHandler)(handler))
	}()
	return sent, func() { close(messages) }, func() int { return int(allocator.AllocatedBytes()) }
}

func TestAsyncStreamReadsArrowGoProducer(t *testing.T) {
	stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: 4})
	const count = 3
	sent, end, size := produce(count, stream.Handler())
	schema := must(arrowgo.ImportSchema(must(stream.Schema(context.Background()))))
	var rows int64
	received := 0
	for batch, err := range stream.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		record := must(arrowgo.ImportRecordBatch(context.Background(), batch, schema, arrowgo.Options{}))
		rows += record.NumRows()
		record.Release()
		if received++; received == count {
			end()
		}
	}
	if err := <-sent; err != nil || rows == 0 || size() != 0 {
		t.Error(err, rows, size())
	}
}

// arrow-go's producer terminates the process if it gets NULL for a batch to drop.
func TestSkipDropsArrowGoBatch(t *testing.T) {
	for range 20 {
		stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: 4})
		sent, end, _ := produce(3, stream.Handler())
		receiveOne := func() {
			batch, _, err := stream.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			batch.Close()
		}
		receiveOne()
		for !stream.Skip() { // until the second has arrived
			runtime.Gosched()
		}
		receiveOne()
		end()
		// After the end nobody calls arrow-go's producer, which is freed before the release.
		if _, _, err := stream.Next(context.Background()); err != io.EOF {
			t.Error(err)
		}
		stream.Close()
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

func TestLoopBreakDropsArrowGoBatches(t *testing.T) {
	skipRaces(t, "cancel and the end of ExportAsyncRecordBatchStream write the same fields")
	for range 20 {
		stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: 4})
		sent, _, _ := produce(100, stream.Handler())
		for batch, err := range stream.All(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			batch.Close()
			break
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

// skipRaces skips a test in which the race detector reports races in arrow-go.
func skipRaces(t *testing.T, reason string) {
	info, _ := debug.ReadBuildInfo()
	for _, setting := range info.Settings {
		if setting.Key == "-race" && setting.Value == "true" {
			t.Skip("data race in arrow-go: " + reason)
		}
	}
}

// receive is arrow-go's own async consumer.
func receive(ctx context.Context, queue uint64) (unsafe.Pointer, <-chan cdata.AsyncRecordBatchStream) {
	handler := mallocator.NewMallocator().Allocate(int(unsafe.Sizeof(abi.ArrowAsyncDeviceStreamHandler{})))
	clear(handler)
	address := unsafe.Pointer(unsafe.SliceData(handler))
	return address, cdata.CreateAsyncDeviceStreamHandler(ctx, queue, (*cdata.CArrowAsyncDeviceStreamHandler)(address))
}

func ints(count int) func(func(*fletching.DeviceArray, error) bool) {
	return func(yield func(*fletching.DeviceArray, error) bool) {
		source := tablesIn(mallocator.NewMallocator(), count)
		defer source.Release()
		for source.Next() {
			if !yield(must(arrowgo.ExportRecordBatch(source.RecordBatch())).ToDevice()) {
				return
			}
		}
	}
}

func TestSendToArrowGo(t *testing.T) {
	handler, streams := receive(context.Background(), 2)
	sent := make(chan error, 1)
	go func() {
		sent <- fletching.Send(context.Background(), must(arrowgo.ExportSchema(schemaOfA)), abi.DeviceCPU, ints(5), handler)
	}()
	stream := <-streams
	if stream.Err != nil || !stream.Schema.Equal(schemaOfA) {
		t.Fatal(stream.Err)
	}
	count := 0
	for message := range stream.Stream {
		if message.Err != nil {
			t.Fatal(message.Err)
		}
		count++
		message.Record.Release()
	}
	if err := <-sent; err != nil || count != 5 {
		t.Error(err, count)
	}
}

// arrow-go's consumer extracts no batch after its context is done. The context of Send ends the wait.
func TestSendToCancelledArrowGoConsumer(t *testing.T) {
	consumer, cancel := context.WithCancel(context.Background())
	handler, streams := receive(consumer, 4)
	ctx, stop := context.WithCancel(context.Background())
	sent := make(chan error, 1)
	go func() {
		sent <- fletching.Send(ctx, must(arrowgo.ExportSchema(schemaOfA)), abi.DeviceCPU, func(yield func(*fletching.DeviceArray, error) bool) {
			ints(3)(yield)
			cancel()
			<-ctx.Done()
		}, handler)
	}()
	stream := <-streams
	if stream.Err != nil {
		t.Fatal(stream.Err)
	}
	for message := range stream.Stream {
		if message.Record != nil {
			message.Record.Release()
		}
	}
	stop()
	if err := <-sent; err != nil && !errors.Is(err, syscall.ECANCELED) {
		t.Error(err)
	}
}

// mismatchedReader is a reader whose batches do not match its schema.
type mismatchedReader struct{ array.RecordReader }

func (mismatchedReader) Schema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Float64}}, nil)
}

func TestExportReaderRejectsBatchOfOtherType(t *testing.T) {
	source := tables(t, 1)
	stream := must(arrowgo.ExportReader(mismatchedReader{source}))
	source.Release()
	defer stream.Close()
	if _, err := stream.Next(); !errors.Is(err, syscall.EINVAL) || err.Error()[:len(`batch 0: field "a": expected format "g"`)] != `batch 0: field "a": expected format "g"` {
		t.Error(err)
	}
}
