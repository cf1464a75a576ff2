// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"iter"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// AsyncBatch is one batch of an AsyncProducer: an array, or a function that makes it.
type AsyncBatch struct {
	// Array is moved in when the batch is yielded.
	Array *DeviceArray

	// Make returns the array when the consumer extracts the batch, on the consumer's thread; it should
	// not block. It is not called when the consumer drops the task. Its error, its panic, and an array that
	// the stream may not have are what extract_data returns, and end the stream with on_error.
	Make func() (*DeviceArray, error)

	// Metadata is passed with the task.
	Metadata Metadata
}

// AsyncProducer sends a stream of batches to the handler of a consumer.
//
// Text: C device data interface, "Async device stream interface".
type AsyncProducer struct {
	// DeviceType is the type of the devices that every batch is on.
	DeviceType abi.DeviceType

	// Metadata is that of the stream.
	Metadata Metadata

	// Open returns the schema, which is moved in, and the batches, which are read one ahead of the
	// consumer's requests, so that the end is sent without a request. Both run on a goroutine of their
	// own. Its context is done when the stream is over: a wait for data has to end then.
	Open func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error)
}

// Send makes all calls of the handler at the address, on the calling goroutine. It returns when the
// handler is released, which is after the last task is extracted, and the batches have ended: nil after
// the end, and when the consumer has cancelled; else the error that the consumer got, or the one with
// which it refused something. The handler is released in any case. When the context is done and the consumer has not
// extracted a batch, it returns, and a goroutine releases the handler once the consumer has: arrow-go's consumer
// never does after its own context was done.
//
// An error of Open or of the batches is what on_error gets, with its errno value or EIO; so is a panic,
// with EIO and its message, and the cause of a context that is done before the end, with its errno value
// or ECANCELED. They, and a cancel, overtake batches that are not sent.
//
// Errors: EINVAL for an address that is nil, a handler without a callback, whose release is the only one called, a
// device type of 0, a schema or a batch that is closed, and a batch on another type of device or of another schema.
func (p AsyncProducer) Send(ctx context.Context, handler unsafe.Pointer) error {
	switch {
	case handler == nil:
		return invalid("send: handler is nil: expected an address")
	case ctx == nil: // the handler is released all the same
		return AsyncProducer{DeviceType: p.DeviceType, Open: func(context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
			return nil, nil, noContext("send")
		}}.Send(context.Background(), handler)
	}
	if name := missingCallback((*abi.ArrowAsyncDeviceStreamHandler)(handler)); name != "" {
		callbacks.ReleaseArrowAsyncDeviceStreamHandler((*abi.ArrowAsyncDeviceStreamHandler)(handler))
		return invalid("handler.%s: NULL: expected a callback", name)
	}
	s := newAsyncSending(ctx, p, handler)
	s.start(p.Open)
	if !s.run(s.wait) {
		return s.abandon()
	}
	return s.result
}

// missingCallback returns the name of a callback that is NULL, or "".
func missingCallback(handler *abi.ArrowAsyncDeviceStreamHandler) string {
	switch {
	case handler.OnSchema == 0:
		return "on_schema"
	case handler.OnNextTask == 0:
		return "on_next_task"
	case handler.OnError == 0:
		return "on_error"
	case handler.Release == 0:
		return "release"
	}
	return ""
}

// Send sends the batches of an iterator to the handler of a consumer, and blocks until the handler is released:
// see AsyncProducer.Send. The schema and the batches are moved in. The iterator is not interrupted while it waits
// for data.
func Send(ctx context.Context, schema *Schema, deviceType abi.DeviceType, batches iter.Seq2[*DeviceArray, error], handler unsafe.Pointer) error {
	return send(ctx, schema, deviceType, handler, func(_ context.Context, yield func(AsyncBatch, error) bool) {
		if batches == nil {
			yield(AsyncBatch{}, noBatches())
			return
		}
		for batch, err := range batches {
			if !yield(AsyncBatch{Array: batch}, err) {
				return
			}
		}
	})
}

// SendChannel sends the batches of a channel until it is closed. What is in the channel when the
// consumer cancels stays there. See Send.
func SendChannel(ctx context.Context, schema *Schema, deviceType abi.DeviceType, batches <-chan *DeviceArray, handler unsafe.Pointer) error {
	return send(ctx, schema, deviceType, handler, func(ctx context.Context, yield func(AsyncBatch, error) bool) {
		for {
			select {
			case batch, open := <-batches:
				if !open || !yield(AsyncBatch{Array: batch}, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

func send(ctx context.Context, schema *Schema, deviceType abi.DeviceType, handler unsafe.Pointer, batches func(context.Context, func(AsyncBatch, error) bool)) error {
	defer discard(schema) // which does nothing when it was sent
	open := func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return schema, func(yield func(AsyncBatch, error) bool) { batches(ctx, yield) }, nil
	}
	return AsyncProducer{DeviceType: deviceType, Open: open}.Send(ctx, handler)
}
