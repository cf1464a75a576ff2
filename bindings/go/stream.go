// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// ArrayStream owns an ArrowArrayStream: batches in CPU memory. See DeviceArrayStream.
//
// See the Arrow C stream interface.
type ArrayStream struct {
	stream[abi.ArrowArrayStream, abi.ArrowArray]
}

// DeviceArrayStream owns an ArrowDeviceArrayStream and reads it batch by batch. Call Close. The caller must
// close schemas and batches, which may outlive the stream.
//
// After an error the stream is dead: Schema and Next return that error again without calling a callback. The error has
// the errno value that the stream returned, or EIO for a value that is not positive, with the message from
// get_last_error. EINVAL, with the id of the rule, for a NULL callback and for a batch of another device type, unless
// its memory is accessible to every device that can access memory of the stream's device type.
//
// Warnings: device-stream.one-device-type for a batch of another device type that is accepted for that
// reason; device-array.reserved-zero.
//
// One goroutine at a time may read: a concurrent call returns EBUSY. Close may be called at any time, even in
// a loop over All. If it is called during another call, the stream is released after that call.
//
// See the Arrow C device stream interface.
type DeviceArrayStream struct {
	// Options configures warnings. Set it before the first call.
	Options Options

	stream[abi.ArrowDeviceArrayStream, abi.ArrowDeviceArray]
	deviceType abi.DeviceType // a copy for DeviceType while the stream is in use or closed
}

// ImportArrayStream moves the struct at a C address into an owner; see ImportArray for the promise and the errors.
func ImportArrayStream(address unsafe.Pointer) (*ArrayStream, error) {
	stream := &ArrayStream{}
	if err := importInto("ImportArrayStream", &stream.owner, &arrayStreamKind, address); err != nil {
		return nil, err
	}
	stream.begin(&hostStreams, nil)
	return stream, nil
}

// ImportDeviceArrayStream moves the struct at a C address into an owner; see ImportArray for the promise and the
// errors.
func ImportDeviceArrayStream(address unsafe.Pointer) (*DeviceArrayStream, error) {
	stream := &DeviceArrayStream{}
	if err := importInto("ImportDeviceArrayStream", &stream.owner, &deviceArrayStreamKind, address); err != nil {
		return nil, err
	}
	stream.deviceType = stream.get().DeviceType
	stream.begin(&deviceStreams, &stream.Options)
	return stream, nil
}

// streams contains the differences between both kinds of stream.
type streams[S, B raw] struct {
	name, rule   string
	batch        *kind[B]
	getSchema    func(*S, *abi.ArrowSchema) (int32, bool)
	getNext      func(*S, *B) (int32, bool)
	getLastError func(*S) (uintptr, bool)
	check        func(*Options, *S, *B) error
}

var (
	hostStreams = streams[abi.ArrowArrayStream, abi.ArrowArray]{
		"ArrowArrayStream", "stream.callbacks-set", &arrayKind,
		callbacks.CallArrowArrayStreamGetSchema, callbacks.CallArrowArrayStreamGetNext,
		callbacks.CallArrowArrayStreamGetLastError,
		func(*Options, *abi.ArrowArrayStream, *abi.ArrowArray) error { return nil },
	}
	deviceStreams = streams[abi.ArrowDeviceArrayStream, abi.ArrowDeviceArray]{
		"ArrowDeviceArrayStream", "device-stream.callbacks-set", &deviceArrayKind,
		callbacks.CallArrowDeviceArrayStreamGetSchema, callbacks.CallArrowDeviceArrayStreamGetNext,
		callbacks.CallArrowDeviceArrayStreamGetLastError,
		func(options *Options, stream *abi.ArrowDeviceArrayStream, batch *abi.ArrowDeviceArray) error {
			return options.checkBatch(batch, stream.DeviceType)
		},
	}
)

// stream is the common part. Its slot is taken out during a call, so that a concurrent Close leaves the
// struct to the call.
type stream[S, B raw] struct {
	owner[S]

	options *Options // points to the field of DeviceArrayStream, where go doc shows it; nil without warnings
	of      *streams[S, B]
	open    atomic.Bool
	failure error // the error of a dead stream
	ended   bool
}

func (s *stream[S, B]) begin(of *streams[S, B], options *Options) {
	s.of, s.options = of, options
	s.open.Store(true)
}

// IsReleased reports whether the stream is empty: closed or exported.
func (s *stream[S, B]) IsReleased() bool { return !s.open.Load() }

// Close releases the stream, or makes a running call release it when it returns. It has no effect if the
// stream was closed or exported before.
func (s *stream[S, B]) Close() {
	s.open.Store(false)
	s.owner.Close()
}

// Export moves the struct to a C address, which is overwritten, and leaves the stream closed. The receiver
// must release the struct. It does not include batches that were already read.
//
// Errors: EINVAL for nil, and if the stream is closed or in use.
func (s *stream[S, B]) Export(address unsafe.Pointer) error {
	err := s.owner.Export(address)
	if err == nil {
		s.open.Store(false)
	}
	return err
}

// Schema returns the schema of the batches. It may be called at any time and repeatedly. Errors: see
// DeviceArrayStream.
func (s *stream[S, B]) Schema() (*Schema, error) {
	schema := &Schema{}
	err := s.call("Schema", func(raw *S) error {
		err := pull(s.of, raw, "get_schema", s.of.getSchema, &schemaKind, &schema.owner)
		if err == nil && schema.IsReleased() {
			return invalid("get_schema: released schema with return value 0: expected a live schema")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return schema, nil
}

func (s *stream[S, B]) next(batch *owner[B]) error {
	err := errLeft
	defer func() {
		if err != nil {
			batch.Close()
		}
	}()
	err = s.call("Next", func(raw *S) error {
		if s.ended {
			return io.EOF
		}
		if err := pull(s.of, raw, "get_next", s.of.getNext, s.of.batch, batch); err != nil {
			return err
		}
		if s.ended = batch.IsReleased(); s.ended {
			return io.EOF
		}
		return s.of.check(s.options, raw, batch.get())
	})
	return err
}

// errLeft is the failure of a stream whose call did not return, because a warning called testing.T.FailNow.
var errLeft error = NewError(syscall.EIO, "stream: a call ended by runtime.Goexit: expected a return", nil)

// call runs a callback of the stream unless the stream is dead. An error makes the stream dead.
func (s *stream[S, B]) call(operation string, body func(raw *S) error) error {
	return s.lend(operation, func(raw *S) (err error) {
		if s.failure != nil {
			return s.failure
		}
		err = errLeft
		defer func() {
			if err != io.EOF {
				s.failure = err
			}
		}()
		err = body(raw)
		return err
	})
}

// lend takes the slot out while the body runs.
func (s *stream[S, B]) lend(operation string, body func(raw *S) error) error {
	slot := s.leave()
	if slot == nil && s.open.Load() {
		return NewError(syscall.EBUSY, operation+": in use: expected one call at a time", nil)
	}
	if slot == nil {
		return closed(operation)
	}
	defer func() {
		s.slot.Store(slot)
		if !s.open.Load() {
			s.owner.Close()
		}
	}()
	return body(slot.raw)
}

// pull makes a callback fill a new owner. A failed call leaves no struct to release.
func pull[S, B, Out raw](of *streams[S, B], raw *S, name string, callback func(*S, *Out) (int32, bool), kind *kind[Out], out *owner[Out]) error {
	slot := emptySlot(kind)
	code, called := callback(raw, slot.raw)
	if code == 0 && called {
		out.hold(slot)
		return nil
	}
	slot.free()
	if !called {
		return brokenRule(of.rule, of.name+"."+name+": NULL: expected a callback; hint: fix the producer")
	}
	text, _ := of.getLastError(raw)
	return foreign(code, printableC(text))
}

// Next returns the next batch, or io.EOF after the last. It blocks while the producer does.
func (s *ArrayStream) Next() (*Array, error) {
	batch := &Array{}
	if err := s.next(&batch.owner); err != nil {
		return nil, err
	}
	return batch, nil
}

// All returns the batches; see DeviceArrayStream.All.
func (s *ArrayStream) All(ctx context.Context) iter.Seq2[*Array, error] { return batches(ctx, s.Next) }

// DeviceType returns the type of device that can access the batches, 0 if the stream is closed. It may be
// called at any time.
func (s *DeviceArrayStream) DeviceType() abi.DeviceType {
	if s.IsReleased() {
		return 0
	}
	return s.deviceType
}

// Next returns the next batch, or io.EOF after the last. It blocks while the producer does.
func (s *DeviceArrayStream) Next() (*DeviceArray, error) {
	batch := &DeviceArray{}
	if err := s.next(&batch.owner); err != nil {
		return nil, err
	}
	return batch, nil
}

// All returns the batches, and at the end the error, if any. The stream stays open: after a loop is left early,
// another loop continues with the next batch. The caller must close each batch.
//
// The context is checked before each batch: if it is done, the error is ECANCELED with its cause. A blocked
// callback is not interrupted.
func (s *DeviceArrayStream) All(ctx context.Context) iter.Seq2[*DeviceArray, error] {
	return batches(ctx, s.Next)
}

func batches[T any](ctx context.Context, next func() (*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if ctx == nil {
			yield(nil, noContext("All"))
			return
		}
		for {
			if err := context.Cause(ctx); err != nil {
				yield(nil, NewError(syscall.ECANCELED, "All: "+err.Error(), errors.Join(err, ctx.Err())))
				return
			}
			batch, err := next()
			if err == io.EOF || !yield(batch, err) || err != nil {
				return
			}
		}
	}
}
