// SPDX-License-Identifier: Apache-2.0

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
// Text: Arrow C stream interface.
type ArrayStream struct {
	stream[abi.ArrowArrayStream]
}

// DeviceArrayStream owns an ArrowDeviceArrayStream, and reads it batch by batch. Close it. Schemas and
// batches are the caller's to close and outlive the stream.
//
// After an error the stream is dead: Schema and Next return that error again, and no callback is
// called. The error has the errno value that the stream returned, with the text of get_last_error; EIO
// for a value that is not positive. EINVAL, with the id of the rule, for a callback that is NULL and
// for a batch on a device from which the stream's device type cannot be served.
//
// Warnings: device-stream.one-device-type for a batch of another device type whose memory every device
// can access that can access the stream's; device-array.reserved-zero.
//
// One goroutine at a time may read: a call during another one returns EBUSY. Close may be called at any
// time, also from inside a loop over All, and during a call, after which the stream is released.
//
// Text: Arrow C device stream interface.
type DeviceArrayStream struct {
	stream[abi.ArrowDeviceArrayStream]
}

// ImportArrayStream moves the struct at an address of C in; see ImportArray for promises and errors.
func ImportArrayStream(address unsafe.Pointer) (*ArrayStream, error) {
	stream := &ArrayStream{}
	if err := importInto(&stream.owner, &arrayStreamKind, address); err != nil {
		return nil, err
	}
	stream.open.Store(true)
	return stream, nil
}

// ImportDeviceArrayStream moves the struct at an address of C in; see ImportArray for promises and
// errors.
func ImportDeviceArrayStream(address unsafe.Pointer) (*DeviceArrayStream, error) {
	stream := &DeviceArrayStream{}
	if err := importInto(&stream.owner, &deviceArrayStreamKind, address); err != nil {
		return nil, err
	}
	stream.open.Store(true)
	return stream, nil
}

// stream is what both have. Its slot is taken out during a call, so that a Close at that time leaves
// the struct to the call.
type stream[S abi.ArrowArrayStream | abi.ArrowDeviceArrayStream] struct {
	owner[S]

	// Options are those of warnings; set them before the first call.
	Options Options

	open    atomic.Bool
	failure error // nil until the stream is dead
	ended   bool
}

// IsReleased reports whether there is nothing to release: closed or exported.
func (s *stream[S]) IsReleased() bool { return !s.open.Load() }

// Close releases the stream, or lets the call do so that is running. It does nothing for a stream that
// was closed or exported before.
func (s *stream[S]) Close() {
	s.open.Store(false)
	s.owner.Close()
}

// Export moves the struct to an address in C, which is overwritten. It is the receiver's to release
// from now on; the stream is closed. Batches that were read are not in it.
//
// Errors: EINVAL for nil, and for a stream that was closed or is in use.
func (s *stream[S]) Export(address unsafe.Pointer) error {
	err := s.owner.Export(address)
	if err == nil {
		s.open.Store(false)
	}
	return err
}

// call runs a callback of the stream, unless it is dead. An error of the body is its death.
func (s *stream[S]) call(body func(raw *S) error) error {
	slot := s.slot.Swap(nil)
	if slot == nil && s.open.Load() {
		return NewError(syscall.EBUSY, "stream: in use: expected one call at a time", nil)
	}
	if slot == nil {
		return closed("stream")
	}
	err := s.failure
	if err == nil {
		err = body(slot.raw)
	}
	if err != io.EOF {
		s.failure = err
	}
	s.slot.Store(slot)
	if !s.open.Load() {
		s.owner.Close()
	}
	return err
}

// pull returns the slot that a callback has filled. Of a call that failed nothing is ours to release.
func pull[Out raw](kind *kind[Out], name, rule string, callback func(out *Out) (int32, bool), lastError func() (uintptr, bool)) (*slot[Out], error) {
	slot := newSlot(kind)
	code, called := callback(slot.raw)
	if code == 0 && called {
		return slot, nil
	}
	slot.free()
	if !called {
		return nil, brokenRule(rule, name+": NULL: expected a callback; hint: fix the producer")
	}
	text, _ := lastError()
	return nil, foreign(code, printableC(text))
}

func keepSchema(schema *Schema, slot *slot[abi.ArrowSchema]) error {
	if slot.raw.IsReleased() {
		slot.free()
		return invalid("get_schema: released schema with return value 0: expected a live schema")
	}
	schema.slot.Store(slot)
	return nil
}

// --- CPU ----------------------------------------------------------------------------------------

// Schema returns the schema of every batch. It may be called at any time and repeatedly. Errors: see
// DeviceArrayStream.
func (s *ArrayStream) Schema() (*Schema, error) {
	schema := &Schema{}
	err := s.call(func(raw *abi.ArrowArrayStream) error {
		slot, err := pull(&schemaKind, "ArrowArrayStream.get_schema", "stream.callbacks-set",
			func(out *abi.ArrowSchema) (int32, bool) { return callbacks.CallArrowArrayStreamGetSchema(raw, out) },
			func() (uintptr, bool) { return callbacks.CallArrowArrayStreamGetLastError(raw) })
		if err != nil {
			return err
		}
		return keepSchema(schema, slot)
	})
	if err != nil {
		return nil, err
	}
	return schema, nil
}

// Next returns the next batch, and io.EOF after the last. Errors: see DeviceArrayStream.
func (s *ArrayStream) Next() (*Array, error) {
	batch := &Array{}
	err := s.call(func(raw *abi.ArrowArrayStream) error {
		if s.ended {
			return io.EOF
		}
		slot, err := pull(&arrayKind, "ArrowArrayStream.get_next", "stream.callbacks-set",
			func(out *abi.ArrowArray) (int32, bool) { return callbacks.CallArrowArrayStreamGetNext(raw, out) },
			func() (uintptr, bool) { return callbacks.CallArrowArrayStreamGetLastError(raw) })
		if err != nil {
			return err
		}
		batch.slot.Store(slot)
		return s.endIf(slot.raw.IsReleased())
	})
	if err != nil {
		batch.Close()
		return nil, err
	}
	return batch, nil
}

// All returns the batches, as DeviceArrayStream.All does.
func (s *ArrayStream) All(ctx context.Context) iter.Seq2[*Array, error] {
	return batches(ctx, s.Next)
}

// --- Devices ------------------------------------------------------------------------------------

// DeviceType returns the type of the device that can access the batches; 0 for a stream that was closed
// or is in use.
func (s *DeviceArrayStream) DeviceType() abi.DeviceType {
	if raw := s.get(); raw != nil {
		return raw.DeviceType
	}
	return 0
}

// Schema returns the schema of every batch. It may be called at any time and repeatedly.
func (s *DeviceArrayStream) Schema() (*Schema, error) {
	schema := &Schema{}
	err := s.call(func(raw *abi.ArrowDeviceArrayStream) error {
		slot, err := pull(&schemaKind, "ArrowDeviceArrayStream.get_schema", "device-stream.callbacks-set",
			func(out *abi.ArrowSchema) (int32, bool) {
				return callbacks.CallArrowDeviceArrayStreamGetSchema(raw, out)
			},
			func() (uintptr, bool) { return callbacks.CallArrowDeviceArrayStreamGetLastError(raw) })
		if err != nil {
			return err
		}
		return keepSchema(schema, slot)
	})
	if err != nil {
		return nil, err
	}
	return schema, nil
}

// Next returns the next batch, and io.EOF after the last. It may block as long as the producer does.
func (s *DeviceArrayStream) Next() (*DeviceArray, error) {
	batch := &DeviceArray{}
	err := s.call(func(raw *abi.ArrowDeviceArrayStream) error {
		if s.ended {
			return io.EOF
		}
		slot, err := pull(&deviceArrayKind, "ArrowDeviceArrayStream.get_next", "device-stream.callbacks-set",
			func(out *abi.ArrowDeviceArray) (int32, bool) {
				return callbacks.CallArrowDeviceArrayStreamGetNext(raw, out)
			},
			func() (uintptr, bool) { return callbacks.CallArrowDeviceArrayStreamGetLastError(raw) })
		if err != nil {
			return err
		}
		batch.slot.Store(slot)
		if slot.raw.IsReleased() {
			return s.endIf(true)
		}
		return s.Options.checkBatch(slot.raw, raw.DeviceType)
	})
	if err != nil {
		batch.Close()
		return nil, err
	}
	return batch, nil
}

// All returns the batches, and at the end the error where there is one. The stream stays open: a loop
// that was left early may be followed by another one, which goes on behind it. A batch is the caller's
// to close.
//
// The context is looked at before each batch: then the error is ECANCELED with its cause. A callback
// that blocks is not interrupted.
func (s *DeviceArrayStream) All(ctx context.Context) iter.Seq2[*DeviceArray, error] {
	return batches(ctx, s.Next)
}

func (s *stream[S]) endIf(ended bool) error {
	s.ended = ended
	if ended {
		return io.EOF
	}
	return nil
}

func batches[T any](ctx context.Context, next func() (*T, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			if err := context.Cause(ctx); err != nil {
				yield(nil, NewError(syscall.ECANCELED, "stream: "+err.Error(), errors.Join(err, ctx.Err())))
				return
			}
			batch, err := next()
			if err == io.EOF || !yield(batch, err) || err != nil {
				return
			}
		}
	}
}
