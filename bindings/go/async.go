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

// AsyncOptions say how an AsyncStream requests batches, and which it refuses.
type AsyncOptions struct {
	// Options are those of warnings: device-array.reserved-zero.
	Options

	// Window is how many batches are requested and not taken: the back-pressure. They are requested when
	// the schema arrives, and again as batches are taken, half a window at a time. 0 is a window of 16;
	// below 0 only Request requests batches.
	Window int

	// DropWithNull drops a batch by extracting it to NULL, as the text has it: then the producer need not make its
	// data. Otherwise its data is extracted and released, because a NULL ends the process in arrow-go's producer.
	DropWithNull bool

	// OnSchema and OnTask may refuse the schema, and a batch that is not extracted yet: the error ends
	// the stream, and its code is what the producer gets. They are called on the producer's thread, one
	// call at a time, and may be nil. The schema is lent.
	OnSchema func(schema *Schema, metadata Metadata) error
	OnTask   func(metadata Metadata) error
}

// AsyncStream is a handler for a producer of another library, and the batches that it passes. Close it.
//
// Every task of the producer is extracted once: into a batch, or to be dropped. After the end the release of
// the handler extracts what is queued, so that no batch is lost. The release waits while a batch is
// extracted, and while batches are requested, on another thread.
//
// Errors: what the producer reported, or its extract_data returned; EIO for a code that is not positive,
// and when the handler was released before the end; EINVAL when the producer broke a rule, which the
// message names; ECANCELED, or the errno value of its cause, when the context of the stream is done.
//
// All methods may be called from any goroutine, several at once. Batches outlive the stream.
//
// Text: C device data interface, "Async device stream interface".
type AsyncStream struct {
	core   *asyncConsumer
	detach func() bool // from the context
}

// closedAsync is the consumer of a zero AsyncStream.
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

// NewAsyncStream returns a stream that has no producer yet. It is cancelled when the context is done. With a nil context
// the stream fails with EINVAL.
func NewAsyncStream(ctx context.Context, options AsyncOptions) *AsyncStream {
	core := newAsyncConsumer(options)
	if ctx == nil {
		core.cancel(noContext("async stream"))
		ctx = context.Background()
	}
	detach := context.AfterFunc(ctx, func() { core.cancel(canceled("async stream", ctx)) })
	stream := &AsyncStream{core, detach}
	runtime.AddCleanup(stream, func(core *asyncConsumer) {
		detach()
		core.collected()
	}, core)
	return stream
}

// canceled is the error of a context that is done: ECANCELED, unless its cause has an errno value.
func canceled(what string, ctx context.Context) error {
	cause, code := context.Cause(ctx), syscall.ECANCELED
	_ = errors.As(cause, &code)
	return NewError(code, what+": "+cause.Error(), errors.Join(cause, ctx.Err()))
}

// Handler returns the address of an ArrowAsyncDeviceStreamHandler in memory of C, for one producer, which
// has to call its release in any case. The address is valid until the release and Close; nil after Close, and without
// memory for it, which ends the stream with ENOMEM.
func (s *AsyncStream) Handler() unsafe.Pointer {
	defer runtime.KeepAlive(s)
	return s.consumer().expose()
}

// Close cancels the stream: batches that are queued are dropped, without waiting for the producer. It
// does nothing for a stream that was closed before.
func (s *AsyncStream) Close() {
	if s.core != nil {
		s.detach()
		s.core.close()
	}
	runtime.KeepAlive(s)
}

// Schema waits for the schema of every batch, and returns it for the caller to close.
//
// Errors: that of the stream when it has failed before the schema; ECANCELED when the context is done
// first, which leaves the stream as it is; see Shared.View for others.
func (s *AsyncStream) Schema(ctx context.Context) (*Schema, error) {
	defer runtime.KeepAlive(s)
	if ctx == nil {
		return nil, noContext("async stream")
	}
	return s.consumer().waitSchema(ctx)
}

// Next waits for the next batch, and returns it with its metadata; io.EOF after the last. The batches
// behind one that cannot be extracted follow when the producer has sent the end.
//
// Errors: see AsyncStream; ECANCELED when the context is done first, which leaves the stream as it is.
func (s *AsyncStream) Next(ctx context.Context) (*DeviceArray, Metadata, error) {
	defer runtime.KeepAlive(s)
	if ctx == nil {
		return nil, nil, noContext("async stream")
	}
	return s.consumer().next(ctx)
}

// All returns the batches, and at the end the error where there is one. When the loop is left, or the
// context is done, the stream is closed. A batch is the caller's to close.
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

// Request requests n batches more than the window; before the schema the number is kept until then. It
// does nothing once the stream is over. Errors: EINVAL when n is below 1.
func (s *AsyncStream) Request(n int64) error {
	if n < 1 {
		return notPositive(n)
	}
	s.consumer().request(n)
	runtime.KeepAlive(s)
	return nil
}

// Skip drops the oldest batch that has arrived; see AsyncOptions.DropWithNull. False without a batch.
func (s *AsyncStream) Skip() bool {
	defer runtime.KeepAlive(s)
	return s.consumer().skip()
}

// DeviceType returns the type of the device that every batch is on; 0 until there is a schema.
func (s *AsyncStream) DeviceType() abi.DeviceType {
	defer runtime.KeepAlive(s)
	core := s.consumer()
	core.mutex.Lock()
	defer core.mutex.Unlock()
	return core.promise.deviceType
}

// Metadata returns the metadata of the stream; none until there is a schema.
func (s *AsyncStream) Metadata() Metadata {
	defer runtime.KeepAlive(s)
	core := s.consumer()
	core.mutex.Lock()
	defer core.mutex.Unlock()
	return core.metadata
}

// --- Both sides ---------------------------------------------------------------------------------

// asyncPromise is a stream's promise about every batch, as far as it is cheap to compare.
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

// popFirst takes the first element off.
func popFirst[T any](queue *[]T) T {
	return popAt(queue, 0)
}

// popAt moves those before the item, which are few.
func popAt[T any](queue *[]T, index int) T {
	var none T
	item := (*queue)[index]
	copy((*queue)[1:], (*queue)[:index])
	(*queue)[0] = none
	*queue = (*queue)[1:]
	return item
}
