// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "tensors.h"
import "C"

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// --- The stream argument ------------------------------------------------------------------------

// Ordering says whether the host, a stream or neither waits for the producer's work.
type Ordering int

// The zero value is not an ordering: an unset ordering is an error.
const (
	// OrderNothing leaves the order to the consumer, which synchronizes or has waited.
	OrderNothing Ordering = C.FLETCHING_ORDER_NOTHING

	// OrderHost means that the work is complete when the call returns.
	OrderHost Ordering = C.FLETCHING_ORDER_HOST

	// OrderStream makes a stream wait for the work.
	OrderStream Ordering = C.FLETCHING_ORDER_STREAM
)

// ConsumerStream is the stream argument of DLPack, which a consumer passes to a producer.
type ConsumerStream struct {
	Ordering Ordering // required

	// Stream is the stream of OrderStream. It is used only during the call. A capturing stream is rejected.
	Stream Stream
}

// ReadConsumerStream reads the stream argument of Python's __dlpack__ for data on a device type. nil means None.
//
// CUDA: None or 1 is the legacy default stream, 2 the per-thread stream, -1 no stream; 0 is rejected. ROCm: None or 0
// is the default stream, -1 no stream; 1 and 2 are rejected. Other positive numbers are handles. For None and
// host-readable memory, pinned or managed, the host is ordered, which includes the default stream. Other devices accept
// only None, which orders the host. Errors are EINVAL. See __dlpack__ in the array API standard.
func ReadConsumerStream(deviceType abi.DeviceType, argument *int64) (*ConsumerStream, error) {
	var handle C.uintptr_t
	var ordering C.int
	err := errorOf("ReadConsumerStream", C.read_tensor_stream(C.ArrowDeviceType(deviceType), (*C.int64_t)(argument), &handle, &ordering))
	if err != nil {
		return nil, err
	}
	return &ConsumerStream{Ordering(ordering), NewStream(deviceType, uintptr(handle))}, nil
}

// numbers converts the stream for the core; nil is no stream. See Stream.numbers for the device type.
func (s *ConsumerStream) numbers(data abi.DeviceType) C.struct_OrderNumbers {
	if s == nil {
		return C.struct_OrderNumbers{}
	}
	return C.struct_OrderNumbers{stream: s.Stream.numbers(data), ordering: C.int(s.Ordering), is_given: true}
}

// --- Device arrays as tensors -------------------------------------------------------------------

// TensorOptions are the options of an export to DLPack.
type TensorOptions struct {
	// AsStorage exports types that DLPack lacks as their storage type. Unit, scale, time zone or meaning are lost.
	AsStorage bool

	// Writable says that the caller is the only user of the array. By default the tensor is read-only, because
	// Arrow's buffers are shared and immutable.
	Writable bool

	// Copied says that the array is a copy for this consumer.
	Copied bool

	// IgnoreNulls exports the values of null rows unchanged.
	IgnoreNulls bool

	// Aligned makes Data a multiple of 256, as dlpack.h requires, with the first element at ByteOffset. By default
	// Data is the address of the first element, because some consumers ignore ByteOffset. On devices whose buffers are
	// handles, Data is the handle.
	Aligned bool

	// Stream, unless nil, is made to wait for the array's sync_event before the call returns.
	Stream *ConsumerStream

	// EventHandled says that the consumer waits for sync_event by other means.
	EventHandled bool
}

func (o TensorOptions) bits() (bits C.uint32_t) {
	for _, option := range []struct {
		isSet bool
		bit   C.uint32_t
	}{
		{o.AsStorage, C.FLETCHING_TENSOR_AS_STORAGE},
		{o.Writable, C.FLETCHING_TENSOR_WRITABLE},
		{o.Copied, C.FLETCHING_TENSOR_COPIED},
		{o.IgnoreNulls, C.FLETCHING_TENSOR_IGNORE_NULLS},
		{o.Aligned, C.FLETCHING_TENSOR_ALIGNED},
		{o.EventHandled, C.FLETCHING_TENSOR_EVENT_HANDLED},
	} {
		if option.isSet {
			bits |= option.bit
		}
	}
	return bits
}

// Tensor moves the array, described by schema, into a DLPack tensor without a copy.
//
// Shape: the array's length, then one dimension for each fixed-size list around the values, or the dimensions of
// arrow.fixed_shape_tensor. Strides are always set. A type that Arrow lacks, such as bfloat16, is arrow.opaque with the
// vendor DLPack. A tensor without elements has no Data.
//
// Ownership: on success the tensor's deleter releases the array, on any thread. After an error the caller still owns
// the array. The caller keeps the schema.
//
// Errors: ENOTSUP for a type or nulls that DLPack lacks; EINVAL for a malformed or closed schema or array, and for an
// event without Stream and EventHandled; ERANGE for a device id that does not fit; ENOMEM; and the errors of
// Synchronize and WaitOn. An array whose NullCount is -1 is exported if the host can read the validity bitmap, no work
// is pending, and all bits are set. See dlpack.h.
func (a *DeviceArray) Tensor(schema *Schema, options TensorOptions) (*Tensor, error) {
	return a.tensor("Tensor", schema, options, false)
}

// LegacyTensor returns the struct from before DLPack 1.0, which has no flags. EINVAL unless Writable. See Tensor.
func (a *DeviceArray) LegacyTensor(schema *Schema, options TensorOptions) (*Tensor, error) {
	return a.tensor("LegacyTensor", schema, options, true)
}

func (a *DeviceArray) tensor(operation string, schema *Schema, options TensorOptions, isLegacy bool) (*Tensor, error) {
	if schema == nil || a.IsReleased() || schema.IsReleased() {
		return nil, closed(operation)
	}
	if err := a.orderWaiter(operation, &options); err != nil {
		return nil, err
	}
	slot, err := a.take(operation)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(schema)
	export := func(order C.struct_OrderNumbers, tensor *C.uintptr_t) C.struct_Outcome {
		return C.export_tensor(cSchema(schema.get()), cDeviceArray(slot.raw), order, options.bits(), tensor)
	}
	if isLegacy {
		export = func(order C.struct_OrderNumbers, tensor *C.uintptr_t) C.struct_Outcome {
			return C.export_legacy_tensor(cSchema(schema.get()), cDeviceArray(slot.raw), order, options.bits(), tensor)
		}
	}
	var tensor C.uintptr_t
	if err := errorOf(operation, export(options.Stream.numbers(slot.raw.DeviceType), &tensor)); err != nil {
		a.slot.Store(slot) // returns the array to the caller
		return nil, err
	}
	slot.free()
	return newTensor(uintptr(tensor), isLegacy), nil
}

// orderWaiter makes the stream wait for an event through a Go waiter, which the core does not know.
func (a *DeviceArray) orderWaiter(operation string, options *TensorOptions) error {
	raw, waiter, err := a.waiting(operation)
	if raw == nil || waiter == nil || options.Stream == nil {
		return err
	}
	switch options.Stream.Ordering {
	case OrderHost:
		err = a.Synchronize(context.Background())
	case OrderStream:
		err = a.WaitOn(options.Stream.Stream)
	case OrderNothing:
	default:
		return nil // the core rejects it
	}
	options.Stream, options.EventHandled = nil, true
	return err
}

// --- Tensors as device arrays -------------------------------------------------------------------

// TensorImportOptions are the options of an import from DLPack.
type TensorImportOptions struct {
	// AsStorage imports types that Arrow lacks as their storage type, instead of as arrow.opaque.
	AsStorage bool

	// Lists makes nested fixed-size lists of the inner dimensions, the last of which must vary fastest. By default
	// they are arrow.fixed_shape_tensor, which supports any order.
	Lists bool

	// Copy copies misaligned elements, and elements in an order that Arrow cannot express, to new CPU memory if the host
	// can read them. Otherwise they cause ENOTSUP.
	Copy bool

	// Stream, unless nil, is the stream that was passed to the producer. The array gets a sync_event that completes
	// with the current work on the stream. Before a copy, the host waits for the stream.
	Stream *ConsumerStream
}

// ImportedTensor is a tensor in Arrow form. The caller must close the schema and the array.
type ImportedTensor struct {
	Schema *Schema
	Array  *DeviceArray

	// ReadOnly reports whether the memory is read-only. The memory of a legacy tensor always is.
	ReadOnly bool

	// Copied reports whether the memory is a copy for this import, made by the producer or by the import.
	Copied bool
}

// DeviceArray converts the tensor to a schema and an array, without a copy unless the options request one.
//
// Shape: the first dimension is the array's length; a tensor without dimensions is an array of length 1. ByteOffset is
// added to the address, or to the offset of the array if a buffer is a handle.
//
// Ownership: the tensor is consumed in any case. Its deleter is called, on any thread, when the array and each child
// taken from it are closed. After an error and after a copy it is called at once.
//
// Errors: ENOTSUP for types, strides and alignments that Arrow lacks, and for another major version; EINVAL for a
// malformed or closed tensor; ENOMEM; with a stream also the errors of ExportWithEvent. See dlpack.h.
func (t *Tensor) DeviceArray(options TensorImportOptions) (*ImportedTensor, error) {
	const operation = "DeviceArray"
	address := t.leave()
	if address == 0 {
		return nil, closed(operation)
	}
	schema, array := emptySlot(&schemaKind), emptySlot(&deviceArrayKind)
	var bits C.uint32_t
	if options.AsStorage {
		bits |= C.FLETCHING_TENSOR_AS_STORAGE
	}
	if options.Lists {
		bits |= C.FLETCHING_TENSOR_LISTS
	}
	if options.Copy {
		bits |= C.FLETCHING_TENSOR_COPY
	}
	var isLegacy C.int
	if t.state.isLegacy {
		isLegacy = 1
	}
	var flags C.uint64_t
	// The core takes the device type from the tensor, which must not be read here. Any type with a runtime works.
	order := options.Stream.numbers(abi.DeviceCUDA)
	err := errorOf(operation, C.import_tensor(C.uintptr_t(address), isLegacy, order, bits, cSchema(schema.raw), cDeviceArray(array.raw), &flags))
	if err != nil {
		schema.free()
		array.free()
		return nil, err
	}
	imported := &ImportedTensor{
		Schema: &Schema{}, Array: &DeviceArray{},
		ReadOnly: flags&C.DLPACK_FLAG_BITMASK_READ_ONLY != 0, Copied: flags&C.DLPACK_FLAG_BITMASK_IS_COPIED != 0,
	}
	imported.Schema.hold(schema)
	imported.Array.hold(array)
	return imported, nil
}

// Close closes the schema and the array.
func (i *ImportedTensor) Close() {
	i.Schema.Close()
	i.Array.Close()
}

// --- The function table -------------------------------------------------------------------------

// Exchange is a framework's function table, DLPackExchangeAPI, of major version 1. It is valid for the lifetime of
// the process. See DLPackExchangeAPI in dlpack.h.
type Exchange struct {
	table uintptr
}

// FindExchange returns the table of major version 1 in the chain of headers at a C address. The address is the pointer
// of the capsule "dlpack_exchange_api" of a Python type.
//
// Errors: EINVAL for nil, ENOTSUP if no table has major version 1.
func FindExchange(header unsafe.Pointer) (*Exchange, error) {
	if header == nil {
		return nil, invalid("FindExchange: table is nil: expected an address")
	}
	table := C.exchange_find(C.uintptr_t(uintptr(header)))
	if table == 0 {
		return nil, NewError(abi.SystemError(abi.ENOTSUP), "exchange: unknown layout: expected a table of major version 1", nil)
	}
	return &Exchange{uintptr(table)}, nil
}

// Table returns the struct, for functions that the caller calls directly: the functions on Python objects need the GIL.
func (e *Exchange) Table() *abi.DLPackExchangeAPI {
	return (*abi.DLPackExchangeAPI)(abi.Pointer(e.table))
}

// Allocate returns a new tensor of the framework with this shape, type and device.
//
// Errors: ENOSYS if the table lacks the function, EINVAL for a negative size, ENOMEM, and EIO with the framework's
// message.
func (e *Exchange) Allocate(like TensorData) (*Tensor, error) {
	var address C.uintptr_t
	err := errorOf("Allocate", C.exchange_allocate(C.uintptr_t(e.table), likeOf(like), cExtents(like.Shape), &address))
	if err != nil {
		return nil, err
	}
	tensor := validated(directionImport, numberTensor, abi.Pointer(uintptr(address)))
	return newTensor(uintptr(tensor), false), nil
}

// WorkStream returns the framework's current work stream, for a tensor returned by a function without synchronization.
// It returns OrderNothing for a device without events.
//
// Errors: ENOTSUP on devices other than CUDA and ROCm devices, ENOSYS if the table lacks the function, and EIO. For
// host-readable memory, CUDA is queried for the current context: ENOENT if its library is not found.
func (e *Exchange) WorkStream(deviceType abi.DeviceType, deviceID int32) (*ConsumerStream, error) {
	var handle C.uintptr_t
	var ordering C.int
	device := C.DLDevice{device_type: C.DLDeviceType(deviceType), device_id: C.int32_t(deviceID)}
	var found C.int64_t
	err := errorOf("WorkStream", C.exchange_work_stream(C.uintptr_t(e.table), device, &handle, &found, &ordering))
	if err != nil {
		return nil, err
	}
	return &ConsumerStream{Ordering(ordering), NewStream(deviceType, uintptr(handle)).OnDevice(int64(found))}, nil
}

// ExchangeAllocator returns a C function for the ManagedTensorAllocator of your own table. It allocates uninitialized CPU
// memory, aligned to 256 bytes.
func ExchangeAllocator() uintptr { return uintptr(C.exchange_allocator()) }
