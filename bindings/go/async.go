// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// AsyncOptions configures how an AsyncStream requests batches and which of them it rejects.
type AsyncOptions struct {
	// Options are the options of warnings: device-array.reserved-zero.
	Options

	// Window is the number of batches that may be requested and not yet taken (back-pressure). The
	// stream requests them when the schema arrives, and half a window at a time as batches are taken.
	// 0 means 16. If it is negative, only Request requests batches.
	Window int

	// DropWithNull makes the stream drop a batch by extracting it to NULL, as the specification defines,
	// so that the producer need not make its data. Otherwise the stream extracts the data and releases
	// it, because NULL terminates the process in arrow-go's producer.
	DropWithNull bool

	// OnSchema may reject the schema, and OnTask a batch before its extraction. An error ends the
	// stream, and the producer gets its code. Both may be nil. They are called on the producer's
	// thread, one call at a time. OnSchema must not keep the schema.
	OnSchema func(schema *Schema, metadata Metadata) error
	OnTask   func(metadata Metadata) error
}

// AsyncStream is a handler for the producer of another library, and a queue of its batches. Call Close.
//
// Every task of the producer is extracted once, into a batch or to be dropped. If the handler is released
// after the end of the stream, the release extracts the queued batches, so that none is lost. The release
// waits for extractions and requests that run on other threads.
//
// Errors: the code that the producer reported or that its extract_data returned; EIO for a code that is
// not positive, and if the handler is released before the end; EINVAL if the producer broke a rule, which
// the message names; ECANCELED, or the errno value of its cause, if the context of the stream is done.
//
// All methods may be called concurrently from any goroutine. Batches may outlive the stream.
//
// See "Async device stream interface" in the Arrow C device data interface.
type AsyncStream struct {
	core   *asyncConsumer
	detach func() bool // detaches the stream from its context
}

// closedAsync returns the consumer of a zero AsyncStream.
var closedAsync = sync.OnceValue(func() *asyncConsumer {
	core := newAsyncConsumer(AsyncOptions{})
	core.close()
	return core
})

func (s *AsyncStream) consumer() *asyncConsumer {
	if s.core == nil {
		return closedAsync()
	}
	return s.core
}

// NewAsyncStream returns a stream without a producer. The stream is cancelled when the context is done. If
// the context is nil, the stream fails with EINVAL.
func NewAsyncStream(ctx context.Context, options AsyncOptions) *AsyncStream {
	core := newAsyncConsumer(options)
	if ctx == nil {
		core.cancel(noContext("NewAsyncStream"))
		ctx = context.Background()
	}
	detach := context.AfterFunc(ctx, func() { core.cancel(canceled("AsyncStream", ctx)) })
	stream := &AsyncStream{core, detach}
	runtime.AddCleanup(stream, func(core *asyncConsumer) {
		detach()
		core.collected()
	}, core)
	return stream
}

// canceled returns the error of a context that is done: ECANCELED, unless its cause has an errno value.
func canceled(what string, ctx context.Context) error {
	cause, code := context.Cause(ctx), syscall.ECANCELED
	_ = errors.As(cause, &code)
	return NewError(code, what+": "+cause.Error(), errors.Join(cause, ctx.Err()))
}

// Handler returns the address of an ArrowAsyncDeviceStreamHandler in C memory. It is for one producer,
// which must call the handler's release in any case. The address is valid until both that release and
// Close. Handler returns nil after Close, and if there is no memory, which ends the stream with ENOMEM.
func (s *AsyncStream) Handler() unsafe.Pointer {
	defer runtime.KeepAlive(s)
	return s.consumer().expose()
}

// Close cancels the stream and drops the queued batches, without waiting for the producer. Later calls
// have no effect.
func (s *AsyncStream) Close() {
	if s.core != nil {
		s.detach()
		s.core.close()
	}
	runtime.KeepAlive(s)
}

// Schema waits for the schema of the batches and returns it. The caller must close it.
//
// Errors: the stream's error if it failed before the schema; ECANCELED if the context is done first, which does not
// affect the stream; and the errors of Shared.View.
func (s *AsyncStream) Schema(ctx context.Context) (*Schema, error) {
	defer runtime.KeepAlive(s)
	if ctx == nil {
		return nil, noContext("Schema")
	}
	return s.consumer().waitSchema(ctx)
}

// Next waits for the next batch and returns it with its metadata. After the last batch it returns io.EOF.
// If a batch cannot be extracted, the batches after it follow only if the producer has sent the end.
//
// Errors: see AsyncStream; ECANCELED if the context is done first, which does not affect the stream.
func (s *AsyncStream) Next(ctx context.Context) (*DeviceArray, Metadata, error) {
	defer runtime.KeepAlive(s)
	if ctx == nil {
		return nil, nil, noContext("Next")
	}
	return s.consumer().next(ctx)
}

// All returns the batches, and at the end the error, if any. The stream is closed when the loop is left or
// the context is done. The caller must close each batch.
func (s *AsyncStream) All(ctx context.Context) iter.Seq2[*DeviceArray, error] {
	return func(yield func(*DeviceArray, error) bool) {
		defer s.Close()
		for {
			batch, _, err := s.Next(ctx)
			if err == io.EOF || !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// Request requests n batches in addition to the window. A request before the schema is sent when the
// schema arrives. After the end Request has no effect. Errors: EINVAL if n is below 1.
func (s *AsyncStream) Request(n int64) error {
	if n < 1 {
		return notPositive(n)
	}
	s.consumer().request(n)
	runtime.KeepAlive(s)
	return nil
}

// Skip drops the oldest batch that has arrived; see AsyncOptions.DropWithNull. It returns false if there is none.
func (s *AsyncStream) Skip() bool {
	defer runtime.KeepAlive(s)
	return s.consumer().skip()
}

// DeviceType returns the device type of the batches, 0 before the schema arrives.
func (s *AsyncStream) DeviceType() abi.DeviceType {
	defer runtime.KeepAlive(s)
	core := s.consumer()
	core.mutex.Lock()
	defer core.mutex.Unlock()
	return core.promise.deviceType
}

// Metadata returns the metadata of the stream, which is empty before the schema arrives.
func (s *AsyncStream) Metadata() Metadata {
	defer runtime.KeepAlive(s)
	core := s.consumer()
	core.mutex.Lock()
	defer core.mutex.Unlock()
	return core.metadata
}

// --- Both sides ---------------------------------------------------------------------------------

// asyncPromise holds the properties that every batch of a stream must have, as far as they are cheap to compare.
type asyncPromise struct {
	deviceType    abi.DeviceType
	children      int64
	hasDictionary bool
}

func asyncPromiseOf(schema *abi.ArrowSchema, deviceType abi.DeviceType) asyncPromise {
	return asyncPromise{deviceType, schema.NChildren, schema.Dictionary != 0}
}

func (p asyncPromise) check(batch *abi.ArrowDeviceArray) error {
	switch {
	case batch.IsReleased():
		return invalid("batch: released: expected a live array")
	case batch.DeviceType != p.deviceType:
		return brokenRule("async-producer.one-device-type",
			"batch: device_type differs from the stream's: expected "+p.deviceType.String()+", got "+batch.DeviceType.String())
	case batch.Array.NChildren != p.children || (batch.Array.Dictionary != 0) != p.hasDictionary:
		return brokenRule("async-next.same-schema", "batch: children or dictionary differ from the stream's schema")
	}
	return nil
}

func notPositive(n int64) error {
	return invalid("request: n is not positive: expected 1 or more, got %d", n)
}

// popFirst removes and returns the first element.
func popFirst[T any](queue *[]T) T {
	return popAt(queue, 0)
}

// popAt removes an item by moving the items before it, which are few.
func popAt[T any](queue *[]T, index int) T {
	var none T
	item := (*queue)[index]
	copy((*queue)[1:], (*queue)[:index])
	(*queue)[0] = none
	*queue = (*queue)[1:]
	return item
}
