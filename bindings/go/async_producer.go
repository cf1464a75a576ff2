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
	// Array is consumed when the batch is yielded.
	Array *DeviceArray

	// Make returns the array when the consumer extracts the batch, on the consumer's thread. It should
	// not block. It is not called if the consumer drops the task. If it returns an error, panics, or
	// returns an array that does not fit the stream, extract_data returns the error, and the stream
	// ends with on_error.
	Make func() (*DeviceArray, error)

	// Metadata is passed with the task.
	Metadata Metadata
}

// AsyncProducer sends a stream of batches to a consumer's handler.
//
// See "Async device stream interface" in the Arrow C device data interface.
type AsyncProducer struct {
	// DeviceType is the device type of all batches.
	DeviceType abi.DeviceType

	// Metadata is the metadata of the stream.
	Metadata Metadata

	// Open returns the schema, which is consumed, and the batches. The batches are read one ahead of
	// the consumer's requests, so that the end is sent without a request. Open and the iteration run
	// on a separate goroutine. They must return when the context is done, which is when the stream is
	// over.
	Open func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error)
}

// Send makes all calls to the handler at the address, on the calling goroutine. It returns when the handler is
// released, after the batches have ended and the last task is extracted. It returns nil after the end and if the
// consumer cancelled. Otherwise it returns the error that the consumer received or returned. The handler is released in
// any case. If the context is done and the consumer has not extracted a batch, Send returns early, and a goroutine
// releases the handler after the extraction. arrow-go's consumer never extracts after its own context is done.
//
// on_error receives an error of Open or of the batches, with its errno value or EIO; a panic, with EIO and its message;
// and the cause of a context that is done before the end, with its errno value or ECANCELED.
// These errors, and a cancel, overtake batches that are not sent yet.
//
// Errors: EINVAL for a nil address, for a handler with a NULL callback, of which only release is called, for
// device type 0, for a closed schema or batch, and for a batch of another device type or schema.
func (p AsyncProducer) Send(ctx context.Context, handler unsafe.Pointer) error {
	switch {
	case handler == nil:
		return invalid("Send: handler is nil: expected an address")
	case ctx == nil: // the handler must still be released
		return AsyncProducer{DeviceType: p.DeviceType, Open: func(context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
			return nil, nil, noContext("Send")
		}}.Send(context.Background(), handler)
	}
	if name := missingCallback((*abi.ArrowAsyncDeviceStreamHandler)(handler)); name != "" {
		callbacks.ReleaseArrowAsyncDeviceStreamHandler((*abi.ArrowAsyncDeviceStreamHandler)(handler))
		return invalid("handler.%s: NULL: expected a callback", name)
	}
	s := newAsyncSending(ctx, p, validated(directionExport, numberHandler, handler))
	s.start(p.Open)
	if !s.run(s.wait) {
		return s.abandon()
	}
	return s.result
}

// missingCallback returns the name of a NULL callback, or "".
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

// Send sends the batches of an iterator to a consumer's handler and blocks until the handler is released:
// see AsyncProducer.Send. It consumes the schema and the batches. It does not interrupt an iterator that
// waits for data.
func Send(ctx context.Context, schema *Schema, deviceType abi.DeviceType, batches iter.Seq2[*DeviceArray, error], handler unsafe.Pointer) error {
	return send(ctx, schema, deviceType, handler, func(_ context.Context, yield func(AsyncBatch, error) bool) {
		if batches == nil {
			yield(AsyncBatch{}, noBatches("Send"))
			return
		}
		for batch, err := range batches {
			if !yield(AsyncBatch{Array: batch}, err) {
				return
			}
		}
	})
}

// SendChannel sends the batches of a channel until the channel is closed. If the consumer cancels, the
// remaining batches stay in the channel. See Send.
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
	defer discard(schema) // no effect after it was sent
	open := func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return schema, func(yield func(AsyncBatch, error) bool) { batches(ctx, yield) }, nil
	}
	return AsyncProducer{DeviceType: deviceType, Open: open}.Send(ctx, handler)
}
