// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include <stdlib.h>
import "C"

import (
	"io"
	"iter"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// NewDeviceArrayStream returns a stream of an iterator's batches, with the schema, on devices of the type. It
// consumes the schema and each batch.
//
// The iterator starts when the consumer requests the first batch. It runs on a separate goroutine, one batch at a
// time, until it returns or the stream is released. On release the iterator's yield returns false, and the
// release waits for the return of the iterator. Each batch costs a thread switch of some microseconds, which a
// Reader avoids.
//
// If the iterator yields an error or panics, get_next returns the error's errno value or EIO (EIO for a panic), and
// get_last_error its message. Later calls of get_next return it again. EINVAL for a batch on a device whose memory the
// devices of the type cannot access, for a nil or closed batch, and for a batch of another type than the schema, as far
// as Array.DeclareType and the structs show its type.
//
// Errors: EINVAL if the schema is nil, closed or malformed, the device type is 0, or the iterator is nil; ENOMEM.
// After an error the caller still owns the schema and the iterator.
//
// See the Arrow C device stream interface.
func NewDeviceArrayStream(schema *Schema, deviceType abi.DeviceType, batches iter.Seq2[*DeviceArray, error]) (*DeviceArrayStream, error) {
	return NewDeviceArrayStreamFrom(schema, deviceType, readerOf(batches))
}

// NewDeviceArrayStreamFrom is NewDeviceArrayStream for a reader, such as another stream, which it consumes. The
// reader is called without a thread switch.
func NewDeviceArrayStreamFrom(schema *Schema, deviceType abi.DeviceType, batches Reader[*DeviceArray]) (*DeviceArrayStream, error) {
	if deviceType == 0 {
		return nil, brokenRule("device-stream.device-type-set",
			"NewDeviceArrayStream: device_type: 0: expected the device type of the batches")
	}
	if batches == nil {
		return nil, noBatches("NewDeviceArrayStream")
	}
	types, err := streamTypes("NewDeviceArrayStream", schema)
	if err != nil {
		return nil, err
	}
	handle, err := newProducer[abi.ArrowDeviceArrayStream, abi.ArrowDeviceArray]("NewDeviceArrayStream", schema, batches,
		func(batch *DeviceArray, number int) error {
			if err := new(Options).checkBatch(batch.get(), deviceType); err != nil {
				return err
			}
			return types.checkBatch("", number, batch.base(), batch.known)
		})
	if err != nil {
		return nil, err
	}
	stream := &DeviceArrayStream{deviceType: deviceType}
	stream.fill(&deviceArrayStreamKind, abi.ArrowDeviceArrayStream{
		DeviceType:   deviceType,
		GetSchema:    callbacks.ArrowDeviceArrayStreamGetSchemaStub(),
		GetNext:      callbacks.ArrowDeviceArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowDeviceArrayStreamGetLastErrorStub(),
		Release:      callbacks.ArrowDeviceArrayStreamReleaseStub(),
		PrivateData:  handle,
	})
	stream.begin(&deviceStreams, &stream.Options)
	return stream, nil
}

// NewArrayStream is NewDeviceArrayStream on the CPU. Errors: EINVAL if the schema is closed or malformed, ENOMEM.
// See the Arrow C stream interface.
func NewArrayStream(schema *Schema, batches iter.Seq2[*Array, error]) (*ArrayStream, error) {
	return NewArrayStreamFrom(schema, readerOf(batches))
}

// NewArrayStreamFrom is NewArrayStream for a reader; see NewDeviceArrayStreamFrom.
func NewArrayStreamFrom(schema *Schema, batches Reader[*Array]) (*ArrayStream, error) {
	if batches == nil {
		return nil, noBatches("NewArrayStream")
	}
	types, err := streamTypes("NewArrayStream", schema)
	if err != nil {
		return nil, err
	}
	handle, err := newProducer[abi.ArrowArrayStream, abi.ArrowArray]("NewArrayStream", schema, batches,
		func(batch *Array, number int) error { return types.checkBatch("", number, batch.base(), batch.known) })
	if err != nil {
		return nil, err
	}
	stream := &ArrayStream{}
	stream.fill(&arrayStreamKind, abi.ArrowArrayStream{
		GetSchema:    callbacks.ArrowArrayStreamGetSchemaStub(),
		GetNext:      callbacks.ArrowArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowArrayStreamGetLastErrorStub(),
		Release:      callbacks.ArrowArrayStreamReleaseStub(),
		PrivateData:  handle,
	})
	stream.begin(&hostStreams, nil)
	return stream, nil
}

func noBatches(operation string) error {
	return invalid("%s: batches: nil: expected an iterator or a reader", operation)
}

func streamTypes(operation string, schema *Schema) (*SchemaBuilder, error) {
	if schema == nil || schema.IsReleased() {
		return nil, closed(operation + ": schema")
	}
	return typesOf(operation+": schema", schema)
}

// producer is the state of an exported stream and implements its callbacks.
type producer[S, B raw, T batch] struct {
	handle    uintptr
	schema    *Shared[*Schema]
	batches   Reader[T]
	check     func(batch T, number int) error
	number    int            // the number of the next batch
	failure   error          // io.EOF after the end
	lastError unsafe.Pointer // a C string; nil if the last call succeeded
}

// batch is *Array or *DeviceArray.
type batch interface {
	comparable
	IsReleased() bool
	Close()
	moveTo(address unsafe.Pointer) error
}

// newProducer consumes the schema unless it fails.
func newProducer[S, B raw, T batch](operation string, schema *Schema, batches Reader[T], check func(T, int) error) (handle uintptr, err error) {
	p := &producer[S, B, T]{batches: batches, check: check}
	var ok bool
	if p.handle, ok = newHandle(p); !ok {
		return 0, noMemory(operation)
	}
	if p.schema, err = schema.Share(); err != nil {
		dropHandle(p.handle)
	}
	return p.handle, err
}

func (p *producer[S, B, T]) GetSchema(_ *S, out *abi.ArrowSchema) int32 {
	*out = abi.ArrowSchema{}
	return p.answer(guarded(func() error {
		view, err := p.schema.View()
		if err != nil {
			return err
		}
		return view.moveTo(unsafe.Pointer(out))
	}))
}

func (p *producer[S, B, T]) GetNext(_ *S, out *B) int32 {
	var zero B
	*out = zero
	if p.failure == nil {
		p.failure = guarded(func() error { return p.move(unsafe.Pointer(out)) })
	}
	if p.failure == io.EOF {
		return p.answer(nil)
	}
	return p.answer(p.failure)
}

func (p *producer[S, B, T]) move(out unsafe.Pointer) error {
	batch, err := p.batches.Next()
	var none T
	if batch == none && err == nil {
		return invalid("get_next: batch is nil: expected a live batch")
	}
	if batch == none {
		return err
	}
	defer batch.Close() // no effect after the move
	if err == nil && batch.IsReleased() {
		err = invalid("get_next: batch is released: expected a live batch, because a released one is the end")
	}
	if err == nil {
		err = p.check(batch, p.number)
		p.number++
	}
	if err != nil {
		return err
	}
	return batch.moveTo(out)
}

// GetLastError returns the last call's error message.
func (p *producer[S, B, T]) GetLastError(*S) uintptr { return uintptr(p.lastError) }

func (p *producer[S, B, T]) Release(*S) {
	callbacks.DeleteHandle(p.handle)
	discard(p.batches)
	p.schema.Close()
	C.free(p.lastError)
	p.lastError = nil
}

// answer returns the code of an error and keeps its message for get_last_error.
func (p *producer[S, B, T]) answer(err error) int32 {
	C.free(p.lastError)
	p.lastError = nil
	if err == nil {
		return 0
	}
	var text string
	code := codeOf(err)
	if guarded(func() error { text = printable(err.Error()); return nil }) == nil && text != "" {
		p.lastError = unsafe.Pointer(C.CString(text))
	}
	return code
}
