// SPDX-License-Identifier: Apache-2.0

package fletching

// #include <stdlib.h>
import "C"

import (
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
// yield returns false, and the release waits until the iterator has returned.
//
// An error is what get_next returns, with its errno value or EIO, and what get_last_error says; so is a
// panic, with EIO. After it get_next returns it again. So is a batch on a device whose memory the
// devices of the type cannot access, and a batch that is nil or closed.
//
// Errors: EINVAL when the schema is closed or the device type is 0; then nothing was moved.
//
// Text: Arrow C device stream interface.
func NewDeviceArrayStream(schema *Schema, deviceType abi.DeviceType, batches iter.Seq2[*DeviceArray, error]) (*DeviceArrayStream, error) {
	if deviceType == 0 {
		return nil, brokenRule("device-stream.device-type-set",
			"stream: device_type: 0: expected the device type of the batches")
	}
	shared, err := schema.Share()
	if err != nil {
		return nil, err
	}
	state := &deviceProducer{producer[*DeviceArray]{schema: shared, source: source[*DeviceArray]{batches: batches}}}
	stream := &DeviceArrayStream{}
	stream.fill(&deviceArrayStreamKind, abi.ArrowDeviceArrayStream{
		DeviceType:   deviceType,
		GetSchema:    callbacks.ArrowDeviceArrayStreamGetSchemaStub(),
		GetNext:      callbacks.ArrowDeviceArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowDeviceArrayStreamGetLastErrorStub(),
		Release:      callbacks.ArrowDeviceArrayStreamReleaseStub(),
		PrivateData:  callbacks.NewHandle(state),
	})
	stream.open.Store(true)
	return stream, nil
}

// NewArrayStream is NewDeviceArrayStream on the CPU. Errors: EINVAL when the schema is closed. Text:
// Arrow C stream interface.
func NewArrayStream(schema *Schema, batches iter.Seq2[*Array, error]) (*ArrayStream, error) {
	shared, err := schema.Share()
	if err != nil {
		return nil, err
	}
	state := &hostProducer{producer[*Array]{schema: shared, source: source[*Array]{batches: batches}}}
	stream := &ArrayStream{}
	stream.fill(&arrayStreamKind, abi.ArrowArrayStream{
		GetSchema:    callbacks.ArrowArrayStreamGetSchemaStub(),
		GetNext:      callbacks.ArrowArrayStreamGetNextStub(),
		GetLastError: callbacks.ArrowArrayStreamGetLastErrorStub(),
		Release:      callbacks.ArrowArrayStreamReleaseStub(),
		PrivateData:  callbacks.NewHandle(state),
	})
	stream.open.Store(true)
	return stream, nil
}

// producer is the state of an exported stream.
type producer[T batch] struct {
	schema    *Shared[*Schema]
	source    source[T]
	failure   error
	ended     bool
	lastError unsafe.Pointer // a text of C; nil when the last call did not fail
}

// batch is *Array or *DeviceArray.
type batch interface {
	comparable
	IsReleased() bool
	Close()
	Export(address unsafe.Pointer) error
}

// getSchema and getNext write to out, which is zero before and after an error.
func (p *producer[T]) getSchema(out *abi.ArrowSchema) int32 {
	*out = abi.ArrowSchema{}
	return p.answer(guarded(func() error {
		view, err := p.schema.View()
		if err != nil {
			return err
		}
		return view.Export(unsafe.Pointer(out))
	}))
}

func (p *producer[T]) getNext(out unsafe.Pointer, check func(T) error) int32 {
	if p.failure == nil && !p.ended {
		p.failure = guarded(func() error { return p.move(out, check) })
	}
	return p.answer(p.failure)
}

func (p *producer[T]) move(out unsafe.Pointer, check func(T) error) error {
	batch, err, more := p.source.next()
	var none T
	switch {
	case !more:
		p.ended = true
		return nil
	case batch == none && err == nil:
		return invalid("get_next: batch is nil: expected a live batch")
	case batch == none:
		return err
	}
	defer batch.Close() // which does nothing after Export
	if err == nil && batch.IsReleased() {
		err = invalid("get_next: batch is released: expected a live batch, because a released one is the end")
	}
	if err == nil {
		err = check(batch)
	}
	if err != nil {
		return err
	}
	return batch.Export(out)
}

// answer keeps the text of an error for get_last_error.
func (p *producer[T]) answer(err error) int32 {
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
	return int32(code)
}

func (p *producer[T]) release(handle uintptr) {
	callbacks.DeleteHandle(handle)
	p.source.stop()
	p.schema.Close()
	C.free(p.lastError)
	p.lastError = nil
}

// --- The callbacks ------------------------------------------------------------------------------

type deviceProducer struct{ producer[*DeviceArray] }

func (p *deviceProducer) GetSchema(_ *abi.ArrowDeviceArrayStream, out *abi.ArrowSchema) int32 {
	return p.getSchema(out)
}

func (p *deviceProducer) GetNext(self *abi.ArrowDeviceArrayStream, out *abi.ArrowDeviceArray) int32 {
	*out = abi.ArrowDeviceArray{}
	promised := self.DeviceType
	return p.getNext(unsafe.Pointer(out), func(batch *DeviceArray) error {
		return new(Options).checkBatch(batch.get(), promised)
	})
}

func (p *deviceProducer) GetLastError(*abi.ArrowDeviceArrayStream) uintptr {
	return uintptr(p.lastError)
}

func (p *deviceProducer) Release(self *abi.ArrowDeviceArrayStream) { p.release(self.PrivateData) }

type hostProducer struct{ producer[*Array] }

func (p *hostProducer) GetSchema(_ *abi.ArrowArrayStream, out *abi.ArrowSchema) int32 {
	return p.getSchema(out)
}

func (p *hostProducer) GetNext(_ *abi.ArrowArrayStream, out *abi.ArrowArray) int32 {
	*out = abi.ArrowArray{}
	return p.getNext(unsafe.Pointer(out), func(*Array) error { return nil })
}

func (p *hostProducer) GetLastError(*abi.ArrowArrayStream) uintptr { return uintptr(p.lastError) }

func (p *hostProducer) Release(self *abi.ArrowArrayStream) { p.release(self.PrivateData) }
