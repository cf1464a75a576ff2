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

// Ordering says whether the host, a stream or nothing waits for the producer's work.
type Ordering int

// The zero value is none of them: an ordering that was forgotten is an error.
const (
	// OrderNothing leaves it to the consumer, who synchronizes or has waited.
	OrderNothing Ordering = C.FLETCHING_ORDER_NOTHING

	// OrderHost means that the work is done when the call returns.
	OrderHost Ordering = C.FLETCHING_ORDER_HOST

	// OrderStream makes a stream wait for the work.
	OrderStream Ordering = C.FLETCHING_ORDER_STREAM
)

// ConsumerStream is the stream argument of DLPack, as a producer gets it and a consumer passes it.
type ConsumerStream struct {
	Ordering Ordering // has to be set

	// Stream is the stream of OrderStream. It is used during the call only. One that is captured is refused.
	Stream Stream
}

// ReadConsumerStream reads the stream argument of Python's __dlpack__ for data on a device type; nil is None.
//
// CUDA: None or 1 is the legacy default stream, 2 the per-thread stream, -1 none, 0 is refused. ROCm: None or 0 is the
// default stream, -1 none, 1 and 2 are refused. Other positive numbers are handles. With None and memory that the host
// reads, pinned or managed, the host is ordered, which includes the default stream. Other devices accept None only,
// which orders the host. Errors are EINVAL. Text: array API, __dlpack__.
func ReadConsumerStream(deviceType abi.DeviceType, argument *int64) (*ConsumerStream, error) {
	var handle C.uintptr_t
	var ordering C.int
	err := errorOf(C.read_tensor_stream(C.ArrowDeviceType(deviceType), (*C.int64_t)(argument), &handle, &ordering))
	if err != nil {
		return nil, err
	}
	return &ConsumerStream{Ordering(ordering), NewStream(deviceType, uintptr(handle))}, nil
}

// numbers is no stream for nil. See Stream.numbers for the device type.
func (s *ConsumerStream) numbers(data abi.DeviceType) C.struct_OrderNumbers {
	if s == nil {
		return C.struct_OrderNumbers{}
	}
	return C.struct_OrderNumbers{stream: s.Stream.numbers(data), ordering: C.int(s.Ordering), is_given: true}
}

// --- Device arrays as tensors -------------------------------------------------------------------

// TensorOptions are the options of an export to DLPack.
type TensorOptions struct {
	// AsStorage exports types that DLPack lacks as what stores them: unit, scale, time zone or meaning get lost.
	AsStorage bool

	// Writable says that the array is the caller's alone. By default the tensor is read-only, because Arrow's buffers
	// are shared and do not change.
	Writable bool

	// Copied says that the array is a copy for this consumer.
	Copied bool

	// IgnoreNulls exports the memory in the place of nulls as it is.
	IgnoreNulls bool

	// Aligned makes Data a multiple of 256, as dlpack.h demands, with the first element at ByteOffset. By default Data
	// is the first element: some consumers ignore ByteOffset. On devices whose buffers are handles it is the handle.
	Aligned bool

	// Stream, unless nil, is ordered behind the sync_event of the array before the call returns.
	Stream *ConsumerStream

	// EventHandled says that the consumer waits for sync_event in another way.
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

// Tensor moves the array, whose type is the schema, into a DLPack tensor, without a copy.
//
// Shape: the array's length, then one dimension for each fixed-size list around the values, or the dimensions of
// arrow.fixed_shape_tensor. Strides are always set. A type that Arrow lacks, such as bfloat16, is arrow.opaque with the
// vendor DLPack. A tensor without elements has no Data.
//
// Ownership: on success the deleter releases the array, on any thread; after an error it is still the caller's. The
// schema stays the caller's.
//
// Errors: ENOTSUP for a type or nulls that DLPack lacks, EINVAL for a malformed schema or array, for a closed one, and
// for an event without Stream and EventHandled, ERANGE for a device id, ENOMEM, and those of Synchronize and WaitOn.
// An array whose NullCount is -1 is exported if the host can read the validity bitmap, no work is pending, and all bits
// are set. Text: dlpack.h.
func (a *DeviceArray) Tensor(schema *Schema, options TensorOptions) (*Tensor, error) {
	return a.tensor(schema, options, false)
}

// LegacyTensor is Tensor as the struct from before DLPack 1.0. It has no flags: EINVAL unless Writable.
func (a *DeviceArray) LegacyTensor(schema *Schema, options TensorOptions) (*Tensor, error) {
	return a.tensor(schema, options, true)
}

func (a *DeviceArray) tensor(schema *Schema, options TensorOptions, isLegacy bool) (*Tensor, error) {
	if schema == nil || a.IsReleased() || schema.IsReleased() {
		return nil, closed("to_dlpack")
	}
	if err := a.orderWaiter(&options); err != nil {
		return nil, err
	}
	slot, err := a.take("to_dlpack")
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
	if err := errorOf(export(options.Stream.numbers(slot.raw.DeviceType), &tensor)); err != nil {
		a.slot.Store(slot) // still the caller's
		return nil, err
	}
	slot.free()
	return newTensor(uintptr(tensor), isLegacy), nil
}

// orderWaiter orders the stream behind an event that a waiter of Go waits for, which the core does not know.
func (a *DeviceArray) orderWaiter(options *TensorOptions) error {
	raw, waiter, err := a.waiting("to_dlpack")
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
		return nil // the core refuses it
	}
	options.Stream, options.EventHandled = nil, true
	return err
}

// --- Tensors as device arrays -------------------------------------------------------------------

// TensorImportOptions are the options of an import from DLPack.
type TensorImportOptions struct {
	// AsStorage imports types that Arrow lacks as what stores them, instead of as arrow.opaque.
	AsStorage bool

	// Lists makes fixed-size lists of the inner dimensions, within each other, of which the last one varies fastest.
	// By default they are arrow.fixed_shape_tensor, which has any order.
	Lists bool

	// Copy gathers elements that are not in an order that Arrow can express, or not aligned, in new memory of the CPU,
	// if the host can read them. Otherwise they are ENOTSUP.
	Copy bool

	// Stream, unless nil, is the stream that the producer was given: the array gets a sync_event that happens when the
	// current work on the stream is done. Before a copy, the host waits for the stream.
	Stream *ConsumerStream
}

// ImportedTensor is a tensor as Arrow has it. Close the schema and the array.
type ImportedTensor struct {
	Schema *Schema
	Array  *DeviceArray

	// ReadOnly says that the memory is read-only; so is that of a legacy tensor.
	ReadOnly bool

	// Copied says that the memory is a copy for this import, made by the producer or here.
	Copied bool
}

// DeviceArray makes a schema and an array of the tensor, without a copy unless the options ask for one.
//
// Shape: the first dimension is the array's length; a tensor without dimensions is an array of length 1. ByteOffset is
// added to the address, or to the offset of the array where a buffer is a handle.
//
// Ownership: the tensor is consumed in any case. Its deleter is called when the array, and each child that was taken
// out of it, are closed, on any thread; at once after an error and after a copy.
//
// Errors: ENOTSUP for types, strides and alignments that Arrow lacks, and for another major version; EINVAL for a
// malformed or closed tensor; ENOMEM; with a stream those of ExportWithEvent. Text: dlpack.h.
func (t *Tensor) DeviceArray(options TensorImportOptions) (*ImportedTensor, error) {
	address := t.leave()
	if address == 0 {
		return nil, closed("from_dlpack")
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
	// The device type is the tensor's, which may not be read here; any that has a runtime will do.
	order := options.Stream.numbers(abi.DeviceCUDA)
	err := errorOf(C.import_tensor(C.uintptr_t(address), isLegacy, order, bits, cSchema(schema.raw), cDeviceArray(array.raw), &flags))
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

// --- The table of functions ---------------------------------------------------------------------

// Exchange is the table of functions of a framework, DLPackExchangeAPI, of major version 1. It lives as long as the
// process. Text: dlpack.h, DLPackExchangeAPI.
type Exchange struct {
	table uintptr
}

// FindExchange returns the table of major version 1 that the header at an address of C leads to. The address is the
// pointer of the capsule "dlpack_exchange_api" of a Python type.
//
// Errors: EINVAL for nil, ENOTSUP when none has major version 1.
func FindExchange(header unsafe.Pointer) (*Exchange, error) {
	if header == nil {
		return nil, invalid("exchange: table is nil: expected an address")
	}
	table := C.exchange_find(C.uintptr_t(uintptr(header)))
	if table == 0 {
		return nil, NewError(abi.SystemError(abi.ENOTSUP), "exchange: unknown layout: expected a table of major version 1", nil)
	}
	return &Exchange{uintptr(table)}, nil
}

// Table returns the struct, for functions that the caller calls itself: those of Python objects need the GIL.
func (e *Exchange) Table() *abi.DLPackExchangeAPI {
	return (*abi.DLPackExchangeAPI)(abi.Pointer(e.table))
}

// Allocate returns a new tensor of the framework, of this shape, type and device.
//
// Errors: ENOSYS when the table lacks the function, EINVAL for a negative size, ENOMEM, and EIO with the framework's
// message.
func (e *Exchange) Allocate(like TensorData) (*Tensor, error) {
	var address C.uintptr_t
	err := errorOf(C.exchange_allocate(C.uintptr_t(e.table), likeOf(like), cExtents(like.Shape), &address))
	if err != nil {
		return nil, err
	}
	return newTensor(uintptr(address), false), nil
}

// WorkStream returns the stream on which the framework works now, for a tensor that a function without synchronization
// has returned; OrderNothing on a device without events.
//
// Errors: ENOTSUP on devices other than those of CUDA and ROCm, ENOSYS when the table lacks the function, and EIO. For
// memory that the host reads, CUDA is asked for the current context: ENOENT if its library is not found.
func (e *Exchange) WorkStream(deviceType abi.DeviceType, deviceID int32) (*ConsumerStream, error) {
	var handle C.uintptr_t
	var ordering C.int
	device := C.DLDevice{device_type: C.DLDeviceType(deviceType), device_id: C.int32_t(deviceID)}
	var found C.int64_t
	err := errorOf(C.exchange_work_stream(C.uintptr_t(e.table), device, &handle, &found, &ordering))
	if err != nil {
		return nil, err
	}
	return &ConsumerStream{Ordering(ordering), NewStream(deviceType, uintptr(handle)).OnDevice(int64(found))}, nil
}

// ExchangeAllocator returns a C function for the ManagedTensorAllocator of your own table. It allocates CPU memory that is
// aligned to 256 bytes and not initialized.
func ExchangeAllocator() uintptr { return uintptr(C.exchange_allocator()) }
