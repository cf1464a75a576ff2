// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package conformance

// #include "library.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

type (
	address = unsafe.Pointer // of a C struct
	batches = iter.Seq2[*fletching.DeviceArray, error]
)

// subject passes its input through the package's operations and returns it unchanged.
type subject interface {
	schema(*fletching.Schema) (*fletching.Schema, error)
	array(*fletching.DeviceArray) (*fletching.DeviceArray, error)
	child(array *fletching.DeviceArray, index int) (*fletching.DeviceArray, error)
	stream(*fletching.Schema, *fletching.ArrayStream) (*fletching.ArrayStream, error)
	deviceStream(*fletching.Schema, *fletching.DeviceArrayStream) (*fletching.DeviceArrayStream, error)
	tensorOptions() fletching.TensorOptions
	options() fletching.AsyncOptions
	received(*fletching.Schema, *fletching.AsyncStream) (*fletching.DeviceArrayStream, error)
	// send blocks until the stream is sent. It calls started when the producer has begun.
	send(schema *fletching.Schema, deviceType abi.DeviceType, batches batches, handler address, started func()) error
}

var subjects = [...]subject{Views: views{}, Moves: moves{}, Drops: drops{}}

var background = context.Background()

// views returns views of shared data, and streams over readers.
type views struct{}

func (views) schema(in *fletching.Schema) (*fletching.Schema, error) {
	_, _ = in.Root().Builder()
	view, err := viewOf(in.Share())
	if err != nil {
		return nil, err
	}
	if err := readSchema(view.Root()); err != nil {
		view.Close()
		return nil, err
	}
	return view, nil
}

func viewOf[S interface {
	View() (T, error)
	Close()
}, T any](shared S, err error) (view T, _ error) {
	if err != nil {
		return view, err
	}
	defer shared.Close()
	return shared.View()
}

// readSchema reads every field of a schema.
func readSchema(view fletching.SchemaView) error {
	_, _ = view.Format(), view.Name()
	if _, err := view.Metadata(); err != nil {
		return err
	}
	for i := range view.NumChildren() {
		if err := readSchema(view.Child(i)); err != nil {
			return err
		}
	}
	if dictionary := view.Dictionary(); !dictionary.IsReleased() {
		return readSchema(dictionary)
	}
	return nil
}

func (views) array(in *fletching.DeviceArray) (*fletching.DeviceArray, error) {
	view, err := viewOf(in.Share())
	if err != nil {
		return nil, err
	}
	return view, view.Attach(1)
}

func (views) child(array *fletching.DeviceArray, index int) (*fletching.DeviceArray, error) {
	_, _, _, _ = array.Length(), array.NullCount(), array.BufferAddresses(), array.Child(0).Buffer(1)
	if dictionary, err := array.TakeDictionary(); err == nil {
		dictionary.Close()
	}
	return array.TakeChild(index)
}

func (views) stream(schema *fletching.Schema, in *fletching.ArrayStream) (*fletching.ArrayStream, error) {
	return fletching.NewArrayStreamFrom(schema, in)
}

func (views) deviceStream(schema *fletching.Schema, in *fletching.DeviceArrayStream) (*fletching.DeviceArrayStream, error) {
	return fletching.NewDeviceArrayStreamFrom(schema, in.DeviceType(), in)
}

func (views) tensorOptions() fletching.TensorOptions { return fletching.TensorOptions{} }

func (views) options() fletching.AsyncOptions { return fletching.AsyncOptions{Window: 2} }

// reader reads an async stream. Its Close waits for the senders, because the suite then counts live structs.
type reader struct{ *fletching.AsyncStream }

var senders sync.WaitGroup

func (r reader) Close() {
	r.AsyncStream.Close()
	senders.Wait()
}

func (r reader) Next() (*fletching.DeviceArray, error) {
	batch, _, err := r.AsyncStream.Next(background)
	return batch, err
}

func (views) received(schema *fletching.Schema, in *fletching.AsyncStream) (*fletching.DeviceArrayStream, error) {
	return fletching.NewDeviceArrayStreamFrom(schema, in.DeviceType(), reader{in})
}

func (views) send(schema *fletching.Schema, deviceType abi.DeviceType, batches batches, handler address, started func()) error {
	return fletching.Send(background, schema, deviceType, func(yield func(*fletching.DeviceArray, error) bool) {
		started()
		batches(yield)
	}, handler)
}

// moves returns schemas and arrays made by builders, columns, and streams over iterators.
type moves struct{}

func (moves) schema(in *fletching.Schema) (*fletching.Schema, error) {
	builder, err := in.Root().Builder()
	if err != nil {
		return nil, err
	}
	built, err := builder.Build()
	if err == nil {
		in.Close()
	}
	return built, err
}

// array builds an array owned by a view of the input. Share rejects a malformed input.
func (moves) array(in *fletching.DeviceArray) (*fletching.DeviceArray, error) {
	view, err := viewOf(in.Share())
	if err != nil {
		return nil, err
	}
	built, err := builderOf(view.Root()).BuildOn(view.DeviceType(), view.DeviceID(), view.SyncEvent(), view)
	if err != nil {
		view.Close()
	}
	return built, err
}

// builderOf describes an array; nil if it is released.
func builderOf(view fletching.ArrayView) *fletching.ArrayBuilder {
	if view.IsReleased() {
		return nil
	}
	builder := &fletching.ArrayBuilder{
		Length: view.Length(), NullCount: view.NullCount(), Offset: view.Offset(), Buffers: view.BufferAddresses(),
		Dictionary: builderOf(view.Dictionary()),
	}
	for i := range view.NumChildren() {
		builder.Children = append(builder.Children, *builderOf(view.Child(i)))
	}
	return builder
}

func (moves) child(array *fletching.DeviceArray, index int) (*fletching.DeviceArray, error) {
	shared, err := array.Share()
	if err != nil {
		return nil, err
	}
	defer shared.Close()
	return shared.Column(index)
}

// An iterator does not close its source, so the schema keeps the source until its release.

func (moves) stream(schema *fletching.Schema, in *fletching.ArrayStream) (*fletching.ArrayStream, error) {
	if err := schema.Attach(in); err != nil {
		return nil, err
	}
	return fletching.NewArrayStream(schema, in.All(background))
}

func (moves) deviceStream(schema *fletching.Schema, in *fletching.DeviceArrayStream) (*fletching.DeviceArrayStream, error) {
	if err := schema.Attach(in); err != nil {
		return nil, err
	}
	return fletching.NewDeviceArrayStream(schema, in.DeviceType(), in.All(background))
}

func (moves) tensorOptions() fletching.TensorOptions { return fletching.TensorOptions{Aligned: true} }

func (moves) options() fletching.AsyncOptions {
	return fletching.AsyncOptions{Window: 16, DropWithNull: true}
}

func (moves) received(schema *fletching.Schema, in *fletching.AsyncStream) (*fletching.DeviceArrayStream, error) {
	if err := schema.Attach(reader{in}); err != nil {
		return nil, err
	}
	return fletching.NewDeviceArrayStream(schema, in.DeviceType(), in.All(background))
}

func (moves) send(schema *fletching.Schema, deviceType abi.DeviceType, batches batches, handler address, started func()) error {
	metadata := fletching.Metadata{{Key: "subject", Value: "go"}}
	open := func(context.Context) (*fletching.Schema, iter.Seq2[fletching.AsyncBatch, error], error) {
		started()
		return schema, func(yield func(fletching.AsyncBatch, error) bool) {
			for batch, err := range batches {
				if !yield(fletching.AsyncBatch{Array: batch, Metadata: metadata}, err) {
					return
				}
			}
		}, nil
	}
	return fletching.AsyncProducer{DeviceType: deviceType, Metadata: metadata, Open: open}.Send(background, handler)
}

// drops is a subject with a deliberate fault.
type drops struct{ views }

func (drops) deviceStream(schema *fletching.Schema, in *fletching.DeviceArrayStream) (*fletching.DeviceArrayStream, error) {
	if dropped, err := in.Next(); err == nil {
		dropped.Close()
	}
	return views{}.deviceStream(schema, in)
}

// --- The functions of the table ---

// answer calls a subject's function and returns its error as an errno value and a message.
func answer(number address, message *C.struct_FletchingMessage, body func(s subject) error) (code C.int) {
	var err error
	func() {
		defer func() {
			if problem := recover(); problem != nil {
				err = fmt.Errorf("panic: %v", problem)
			}
		}()
		err = body(subjects[*(*C.int32_t)(number)])
	}()
	if err == nil {
		return 0
	}
	text := unsafe.Slice((*byte)(unsafe.Pointer(&message.text)), len(message.text))
	clear(text)
	copy(text[:len(text)-1], err.Error())
	errno := syscall.EIO
	_ = errors.As(err, &errno)
	return C.int(errno)
}

// pass imports a struct, converts it with a subject's function, and exports the result.
func pass[I, O interface{ Close() }](in address, imported func(address) (I, error), out address, made func(I) (O, error)) error {
	source, err := imported(in)
	if err != nil {
		return err
	}
	result, err := made(source)
	if err != nil {
		source.Close()
		return err
	}
	return any(result).(interface{ Export(address) error }).Export(out)
}

//export fletching_go_subject_schema
func fletching_go_subject_schema(number address, in, out *C.struct_ArrowSchema, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		return pass(address(in), fletching.ImportSchema, address(out), s.schema)
	})
}

//export fletching_go_subject_array
func fletching_go_subject_array(number address, inSchema *C.struct_ArrowSchema, in *C.struct_ArrowDeviceArray, outSchema *C.struct_ArrowSchema, out *C.struct_ArrowDeviceArray, message *C.struct_FletchingMessage) C.int {
	buffers := in.array.n_buffers
	return answer(number, message, func(s subject) error {
		if err := pass(address(in), fletching.ImportDeviceArray, address(out), s.array); err != nil {
			return err
		}
		if out.array.n_buffers != buffers {
			return fletching.NewError(syscall.EINVAL, "array: n_buffers that nothing reads", nil)
		}
		return pass(address(inSchema), fletching.ImportSchema, address(outSchema), s.schema)
	})
}

// clamped converts an index to int. Out-of-range indexes, which no array has, stay invalid.
func clamped(index C.int64_t) int {
	return int(max(-1, min(index, math.MaxInt32)))
}

//export fletching_go_subject_child
func fletching_go_subject_child(number address, _ *C.struct_ArrowSchema, in *C.struct_ArrowDeviceArray, index C.int64_t, out *C.struct_ArrowDeviceArray, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		return pass(address(in), fletching.ImportDeviceArray, address(out), func(array *fletching.DeviceArray) (*fletching.DeviceArray, error) {
			defer array.Close()
			return s.child(array, clamped(index))
		})
	})
}

//export fletching_go_subject_stream
func fletching_go_subject_stream(number address, in, out *C.struct_ArrowArrayStream, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		return pass(address(in), fletching.ImportArrayStream, address(out), func(stream *fletching.ArrayStream) (*fletching.ArrayStream, error) {
			return withSchema(stream, s.stream)
		})
	})
}

//export fletching_go_subject_device_stream
func fletching_go_subject_device_stream(number address, in, out *C.struct_ArrowDeviceArrayStream, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		return pass(address(in), fletching.ImportDeviceArrayStream, address(out), func(stream *fletching.DeviceArrayStream) (*fletching.DeviceArrayStream, error) {
			return withSchema(stream, s.deviceStream)
		})
	})
}

//export fletching_go_subject_tensor
func fletching_go_subject_tensor(number address, in *C.DLManagedTensorVersioned, out **C.DLManagedTensorVersioned, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		made, err := passTensor(address(in), fletching.ImportTensor, (*fletching.DeviceArray).Tensor, s.tensorOptions())
		*out = (*C.DLManagedTensorVersioned)(made)
		return err
	})
}

//export fletching_go_subject_legacy_tensor
func fletching_go_subject_legacy_tensor(number address, in *C.DLManagedTensor, out **C.DLManagedTensor, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		options := s.tensorOptions()
		options.Writable = true
		made, err := passTensor(address(in), fletching.ImportLegacyTensor, (*fletching.DeviceArray).LegacyTensor, options)
		*out = (*C.DLManagedTensor)(made)
		return err
	})
}

// passTensor converts a tensor to an array, and that array to a tensor.
func passTensor(in address, imported func(address) (*fletching.Tensor, error),
	exported func(*fletching.DeviceArray, *fletching.Schema, fletching.TensorOptions) (*fletching.Tensor, error),
	options fletching.TensorOptions,
) (address, error) {
	tensor, err := imported(in)
	if err != nil {
		return nil, err
	}
	column, err := tensor.DeviceArray(fletching.TensorImportOptions{})
	if err != nil {
		return nil, err
	}
	defer column.Close()
	made, err := exported(column.Array, column.Schema, options)
	if err != nil {
		return nil, err
	}
	return made.Export()
}

// withSchema makes a stream with the schema of another stream.
func withSchema[I interface {
	Schema() (*fletching.Schema, error)
}, O any](stream I, made func(*fletching.Schema, I) (O, error)) (result O, err error) {
	schema, err := stream.Schema()
	if err != nil {
		return result, err
	}
	if result, err = made(schema, stream); err != nil {
		schema.Close()
	}
	return result, err
}

// incoming is an async stream that waits for its schema.
type incoming struct{ *fletching.AsyncStream }

func (i incoming) Schema() (*fletching.Schema, error) { return i.AsyncStream.Schema(background) }

//export fletching_go_subject_receive
func fletching_go_subject_receive(number address, connect C.FletchingSubjectConnect, to address, out *C.struct_ArrowDeviceArrayStream, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(s subject) error {
		stream := fletching.NewAsyncStream(background, s.options())
		handler := stream.Handler()
		if code := C.fletching_go_conformance_connect(connect, to, (*C.struct_ArrowAsyncDeviceStreamHandler)(handler)); code != 0 {
			callbacks.ReleaseArrowAsyncDeviceStreamHandler((*abi.ArrowAsyncDeviceStreamHandler)(handler))
			stream.Close()
			return fletching.NewError(syscall.Errno(code), "receive: no producer has taken the handler", nil)
		}
		result, err := withSchema(incoming{stream}, func(schema *fletching.Schema, stream incoming) (*fletching.DeviceArrayStream, error) {
			return s.received(schema, stream.AsyncStream)
		})
		if err != nil {
			stream.Close()
			return err
		}
		return result.Export(address(out))
	})
}

// sending is a stream that is sent to a handler. The suite counts live structs after the handler's release, while
// Send may still be reading, so the release waits for the end of the reading.
type sending struct {
	stream  *fletching.DeviceArrayStream
	release *[0]byte
	reading sync.Mutex
}

var sendings sync.Map // by handler

func (s *sending) batches(yield func(*fletching.DeviceArray, error) bool) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.stream.All(background)(yield)
}

//export fletching_go_subject_release
func fletching_go_subject_release(handler *C.struct_ArrowAsyncDeviceStreamHandler) {
	found, _ := sendings.LoadAndDelete(handler)
	s := found.(*sending)
	s.reading.Lock()
	s.stream.Close()
	s.reading.Unlock()
	handler.release = s.release
	callbacks.ReleaseArrowAsyncDeviceStreamHandler((*abi.ArrowAsyncDeviceStreamHandler)(address(handler)))
}

//export fletching_go_subject_send
func fletching_go_subject_send(number address, in *C.struct_ArrowDeviceArrayStream, handler *C.struct_ArrowAsyncDeviceStreamHandler, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject subject) error {
		stream, err := fletching.ImportDeviceArrayStream(address(in))
		if err != nil {
			return err
		}
		schema, err := stream.Schema()
		if err != nil {
			stream.Close()
			return err
		}
		s := &sending{stream: stream, release: handler.release}
		if s.release != nil {
			sendings.Store(handler, s)
			handler.release = C.fletching_go_conformance_release()
		}
		start := make(chan error, 2)
		senders.Add(1)
		go func() {
			defer senders.Done()
			defer stream.Close()
			defer schema.Close() // no effect after it is sent
			err := subject.send(schema, stream.DeviceType(), s.batches, address(handler), func() { start <- nil })
			if err != nil && !strings.HasPrefix(err.Error(), "handler.") {
				err = nil // the suite checks the calls to the handler
			}
			start <- err
		}()
		if err = <-start; err != nil {
			handler.release = nil // already released
		}
		return err
	})
}

// borrow moves an array in for the duration of a call, and back.
func borrow(array *C.struct_ArrowDeviceArray, call func(array *fletching.DeviceArray) error) error {
	owner, err := fletching.ImportDeviceArray(address(array))
	if err != nil {
		return err
	}
	return errors.Join(call(owner), owner.Export(address(array)))
}

func streamOf(array *fletching.DeviceArray, handle address) fletching.Stream {
	return fletching.NewStream(array.DeviceType(), uintptr(handle))
}

var vulkan fletching.VulkanContext // for the suite's device

func isVulkan(array *fletching.DeviceArray) bool { return array.DeviceType() == abi.DeviceVulkan }

//export fletching_go_subject_use_vulkan
func fletching_go_subject_use_vulkan(number, device, queue address, setStages C.uint32_t, getDeviceProcAddr address, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error {
		vulkan = fletching.VulkanContext{
			Device: uintptr(device), ProducerQueue: uintptr(queue), Queue: uintptr(queue),
			SetStages: uint32(setStages), GetDeviceProcAddr: uintptr(getDeviceProcAddr),
		}
		return nil
	})
}

// waiter wraps a C waiter.
type waiter struct{ of *C.struct_FletchingWaiter }

//export fletching_go_subject_register_waiter
func fletching_go_subject_register_waiter(number address, deviceType C.ArrowDeviceType, of *C.struct_FletchingWaiter, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error { return fletching.RegisterWaiter(abi.DeviceType(deviceType), waiter{of}) })
}

func (w waiter) Synchronize(_ context.Context, event fletching.SyncEvent) error {
	return failure(C.fletching_go_conformance_synchronize(w.of, C.uintptr_t(event.Address), C.int64_t(event.DeviceID)))
}

func (w waiter) WaitOn(event fletching.SyncEvent, stream fletching.Stream) error {
	return failure(C.fletching_go_conformance_wait_on(w.of, C.uintptr_t(event.Address), C.int64_t(event.DeviceID), C.uintptr_t(stream.Handle())))
}

func (w waiter) Ready(event fletching.SyncEvent) (bool, error) {
	var ready C.int
	err := failure(C.fletching_go_conformance_ready(w.of, C.uintptr_t(event.Address), C.int64_t(event.DeviceID), &ready))
	return ready != 0, err
}

func failure(code C.int) error {
	if code == 0 {
		return nil
	}
	return fletching.NewError(syscall.Errno(code), "the waiter failed", nil)
}

//export fletching_go_subject_synchronize
func fletching_go_subject_synchronize(number address, array *C.struct_ArrowDeviceArray, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error {
		return borrow(array, func(array *fletching.DeviceArray) error {
			if isVulkan(array) {
				return array.SynchronizeVulkan(background, vulkan)
			}
			return array.Synchronize(background)
		})
	})
}

func ready(array *fletching.DeviceArray) (bool, error) {
	if isVulkan(array) {
		return array.ReadyVulkan(vulkan)
	}
	return array.Ready()
}

//export fletching_go_subject_is_ready
func fletching_go_subject_is_ready(number address, array *C.struct_ArrowDeviceArray, out *C.int32_t, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error {
		return borrow(array, func(array *fletching.DeviceArray) error {
			isReady, err := ready(array)
			if *out = 0; isReady {
				*out = 1
			}
			return err
		})
	})
}

//export fletching_go_subject_wait_on
func fletching_go_subject_wait_on(number address, array *C.struct_ArrowDeviceArray, stream address, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error {
		return borrow(array, func(array *fletching.DeviceArray) error {
			if isVulkan(array) {
				return array.WaitOnVulkan(vulkan, uintptr(stream))
			}
			return array.WaitOn(streamOf(array, stream))
		})
	})
}

//export fletching_go_subject_export_with_event
func fletching_go_subject_export_with_event(number address, array *C.struct_ArrowDeviceArray, stream address, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error {
		return borrow(array, func(array *fletching.DeviceArray) error { return array.ExportWithEvent(streamOf(array, stream)) })
	})
}

//export fletching_go_subject_release_after
func fletching_go_subject_release_after(number address, array *C.struct_ArrowDeviceArray, stream address, message *C.struct_FletchingMessage) C.int {
	return answer(number, message, func(subject) error {
		owner, err := fletching.ImportDeviceArray(address(array))
		if err != nil {
			return err
		}
		return owner.ReleaseAfter(streamOf(owner, stream))
	})
}
