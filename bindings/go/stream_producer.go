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

// NewDeviceArrayStream returns a stream of the schema, on devices of the type, of the batches of an
// iterator. The schema is moved in, and so is each batch.
//
// The iterator begins with the first batch that the consumer asks for and runs on a goroutine of its
// own, one batch at a time, which ends with it or with the release of the stream: then the iterator's
// yield returns false, and the release waits until the iterator has returned. Each batch is a switch
// between threads, some microseconds: a Reader has none.
//
// An error is what get_next returns, with its errno value or EIO, and what get_last_error says; so is a
// panic, with EIO. After it get_next returns it again. EINVAL for a batch on a device whose memory the
// devices of the type cannot access, for one that is nil or closed, for one whose type is not that of the
// schema, as far as Array.DeclareType and the structs show.
//
// Errors: EINVAL when the schema is nil, closed or malformed, the device type is 0, or the iterator nil; ENOMEM. Then
// the schema and the iterator are still the caller's.
//
// Text: Arrow C device stream interface.
func NewDeviceArrayStream(schema *Schema, deviceType abi.DeviceType, batches iter.Seq2[*DeviceArray, error]) (*DeviceArrayStream, error) {
	return NewDeviceArrayStreamFrom(schema, deviceType, readerOf(batches))
}

// NewDeviceArrayStreamFrom is NewDeviceArrayStream for a reader, which is moved in: another stream, or
// one of yours, which is called without a switch between threads.
func NewDeviceArrayStreamFrom(schema *Schema, deviceType abi.DeviceType, batches Reader[*DeviceArray]) (*DeviceArrayStream, error) {
	if deviceType == 0 {
		return nil, brokenRule("device-stream.device-type-set",
			"stream: device_type: 0: expected the device type of the batches")
	}
	if batches == nil {
		return nil, noBatches()
	}
	types, err := streamTypes(schema)
	if err != nil {
		return nil, err
	}
	handle, err := newProducer[abi.ArrowDeviceArrayStream, abi.ArrowDeviceArray](schema, batches,
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

// NewArrayStream is NewDeviceArrayStream on the CPU. Errors: EINVAL when the schema is closed or malformed, ENOMEM.
// Text: Arrow C stream interface.
func NewArrayStream(schema *Schema, batches iter.Seq2[*Array, error]) (*ArrayStream, error) {
	return NewArrayStreamFrom(schema, readerOf(batches))
}

// NewArrayStreamFrom is NewArrayStream for a reader; see NewDeviceArrayStreamFrom.
func NewArrayStreamFrom(schema *Schema, batches Reader[*Array]) (*ArrayStream, error) {
	if batches == nil {
		return nil, noBatches()
	}
	types, err := streamTypes(schema)
	if err != nil {
		return nil, err
	}
	handle, err := newProducer[abi.ArrowArrayStream, abi.ArrowArray](schema, batches,
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

func noBatches() error { return invalid("stream: batches: nil: expected an iterator or a reader") }

func streamTypes(schema *Schema) (*SchemaBuilder, error) {
	if schema == nil || schema.IsReleased() {
		return nil, closed("stream: schema")
	}
	return typesOf("stream: schema", schema)
}

// producer is the state of an exported stream, and has its callbacks.
type producer[S, B raw, T batch] struct {
	handle    uintptr
	schema    *Shared[*Schema]
	batches   Reader[T]
	check     func(batch T, number int) error
	number    int            // of the next batch
	failure   error          // io.EOF after the end
	lastError unsafe.Pointer // a text of C; nil when the last call did not fail
}

// batch is *Array or *DeviceArray.
type batch interface {
	comparable
	IsReleased() bool
	Close()
	Export(address unsafe.Pointer) error
}

// newProducer moves the schema in, unless it fails.
func newProducer[S, B raw, T batch](schema *Schema, batches Reader[T], check func(T, int) error) (handle uintptr, err error) {
	p := &producer[S, B, T]{batches: batches, check: check}
	var ok bool
	if p.handle, ok = newHandle(p); !ok {
		return 0, noMemory("stream")
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
		return view.Export(unsafe.Pointer(out))
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
	defer batch.Close() // which does nothing after Export
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
	return batch.Export(out)
}

// GetLastError returns the text of the last answer.
func (p *producer[S, B, T]) GetLastError(*S) uintptr { return uintptr(p.lastError) }

func (p *producer[S, B, T]) Release(*S) {
	callbacks.DeleteHandle(p.handle)
	discard(p.batches)
	p.schema.Close()
	C.free(p.lastError)
	p.lastError = nil
}

// answer keeps the text of an error for get_last_error.
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
