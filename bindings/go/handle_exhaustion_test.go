// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"syscall"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

//go:linkname mostInShard github.com/fletching/fletching/bindings/go/abi/callbacks.mostInShard
var mostInShard int

// withoutHandles runs the body while all handles are in use, as with 1,048,576 structs on 32-bit targets.
func withoutHandles(body func()) {
	most := mostInShard
	mostInShard = 0
	var handles []uintptr
	defer func() {
		mostInShard = most
		for _, handle := range handles {
			callbacks.DeleteHandle(handle)
		}
	}()
	for {
		handle, ok := callbacks.TryNewHandle(0)
		if !ok {
			break
		}
		handles = append(handles, handle)
	}
	body()
}

func expectNoMemory(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("%s: expected ENOMEM, got %v", what, err)
	}
}

func TestOperationsWithoutHandlesKeepArguments(t *testing.T) {
	var live liveBatches
	array, schema := live.batch(1), intSchema()
	withoutHandles(func() {
		_, err := NewDeviceArrayStream(schema, abi.DeviceCPU, func(func(*DeviceArray, error) bool) {})
		expectNoMemory(t, "device stream", err)
		_, err = NewArrayStream(schema, func(func(*Array, error) bool) {})
		expectNoMemory(t, "stream", err)
		expectNoMemory(t, "attach", array.Attach(t))
		_, err = (&ArrayBuilder{}).Build(t)
		expectNoMemory(t, "ArrayBuilder", err)
		_, err = NewTensor(TensorData{Shape: []int64{0}, DeviceType: abi.DeviceCPU}, t)
		expectNoMemory(t, "tensor", err)
	})
	if array.IsReleased() || schema.IsReleased() {
		t.Error("an operation that failed has taken its argument")
	}
	stream := must(NewDeviceArrayStream(schema, abi.DeviceCPU, func(yield func(*DeviceArray, error) bool) { yield(array, nil) }))
	must(stream.Next()).Close()
	stream.Close()
	expectNone(t, &live)
}

// A handler needs an address, so the stream fails.
func TestHandlerWithoutHandlesFailsStream(t *testing.T) {
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	defer stream.Close()
	withoutHandles(func() {
		if stream.Handler() != nil {
			t.Error("expected no handler")
		}
	})
	_, err := stream.Schema(context.Background())
	expectNoMemory(t, "schema", err)
	_, _, err = stream.Next(context.Background())
	expectNoMemory(t, "next", err)
}

func TestSendWithoutHandlesReleasesHandler(t *testing.T) {
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	handler, schema := stream.Handler(), intSchema()
	withoutHandles(func() {
		expectNoMemory(t, "send", Send(context.Background(), schema, abi.DeviceCPU, func(func(*DeviceArray, error) bool) {}, handler))
	})
	_, _, err := stream.Next(context.Background())
	expectNoMemory(t, "next", err)
	if stream.Close(); stream.core.users.Load() != 0 || !schema.IsReleased() {
		t.Error("the handler or the schema is not released")
	}
}

func TestBatchWithoutHandleIsReleased(t *testing.T) {
	var live liveBatches
	stream := NewAsyncStream(context.Background(), AsyncOptions{})
	handler := stream.Handler()
	sent := start(func() error {
		return AsyncProducer{DeviceType: abi.DeviceCPU, Open: func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
			return intSchema(), func(yield func(AsyncBatch, error) bool) {
				batch := live.batch(1)
				withoutHandles(func() {
					yield(AsyncBatch{Array: batch}, nil)
					<-ctx.Done() // the batch was sent, or cannot be sent
				})
			}, nil
		}}.Send(context.Background(), handler)
	})
	_, _, err := stream.Next(context.Background())
	expectNoMemory(t, "next", err)
	expectNoMemory(t, "send", <-sent)
	if stream.Close(); stream.core.users.Load() != 0 {
		t.Error("the handler is not released")
	}
	expectNone(t, &live)
}

func TestBatchWithoutHandleIsNotSent(t *testing.T) {
	var live liveBatches
	p := newConsumerPeer(t)
	p.inside = func(call string) {
		if call == "schema" {
			p.request(1)
		}
	}
	expectNoMemory(t, "send", AsyncProducer{DeviceType: abi.DeviceCPU, Open: func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return intSchema(), func(yield func(AsyncBatch, error) bool) {
			batch := live.batch(1)
			withoutHandles(func() {
				yield(AsyncBatch{Array: batch}, nil)
				<-ctx.Done()
			})
		}, nil
	}}.Send(context.Background(), p.handler()))
	expectText(t, p.take(), fmt.Sprintf("schema, error %d producer: batch: no memory, release", syscall.ENOMEM))
	expectNone(t, &live)
}
