// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "tensors.h"
import "C"

import (
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// Tensor owns a DLPack tensor: a DLManagedTensorVersioned, or the DLManagedTensor from before DLPack 1.0. Close it,
// or hand it on with Export or DeviceArray.
//
// The accessors return the values of an empty tensor once the owner is closed, and for a tensor of another major
// version than 1, of which only the deleter can be used. One goroutine at a time; Close may run on any.
//
// Text: dlpack.h, DLManagedTensorVersioned.
type Tensor struct {
	_     noCopy
	state *tensorState
	self  *Tensor // a copy owns nothing: its self is another one
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// tensorState outlives its owner, when that is collected without a Close.
type tensorState struct {
	address  atomic.Uintptr // of the struct in C; 0 when it was closed or handed on
	isLegacy bool
	made     []uintptr // the stack of who made the owner, if that is traced
}

// ImportTensor takes over the DLManagedTensorVersioned at an address of C: the owner calls its deleter.
//
// The struct is as dlpack.h asks for it: its lists are as long as it says, no other party calls the deleter, and
// the deleter may run on any thread. The values are never read unless you ask for a copy.
//
// Errors: EINVAL for nil.
func ImportTensor(address unsafe.Pointer) (*Tensor, error) { return importTensor(address, false) }

// ImportLegacyTensor is ImportTensor for a DLManagedTensor, which has no version and no flags.
func ImportLegacyTensor(address unsafe.Pointer) (*Tensor, error) { return importTensor(address, true) }

func importTensor(address unsafe.Pointer, isLegacy bool) (*Tensor, error) {
	if address == nil {
		return nil, invalid("import: tensor is nil: expected an address")
	}
	return newTensor(uintptr(address), isLegacy), nil
}

func newTensor(address uintptr, isLegacy bool) *Tensor {
	state := &tensorState{isLegacy: isLegacy, made: callers()}
	state.address.Store(address)
	tensor := &Tensor{state: state}
	tensor.self = tensor
	runtime.AddCleanup(tensor, (*tensorState).leak, state)
	return tensor
}

// leave takes the struct out; 0 when it is not there any more, and for a copy.
func (t *Tensor) leave() uintptr {
	if t.self != t {
		return 0
	}
	defer runtime.KeepAlive(t) // the cleanup takes the struct out as well
	return t.state.address.Swap(0)
}

func (t *Tensor) address() uintptr {
	if t.self != t {
		return 0
	}
	return t.state.address.Load()
}

func deleteTensor(address uintptr, isLegacy bool) {
	if isLegacy {
		callbacks.ReleaseDLManagedTensor((*abi.DLManagedTensor)(abi.Pointer(address)))
	} else {
		callbacks.ReleaseDLManagedTensorVersioned((*abi.DLManagedTensorVersioned)(abi.Pointer(address)))
	}
}

// leak runs on a goroutine of the runtime that runs cleanups, which a deleter that blocks would stall.
func (s *tensorState) leak() {
	address := s.address.Swap(0)
	if address == 0 {
		return
	}
	leaks.Add(1)
	leakedReleases.enter(func() {
		deleteTensor(address, s.isLegacy)
		reportLeak("tensor", s.made)
	})
}

// IsReleased reports whether the owner is empty: closed or handed on.
func (t *Tensor) IsReleased() bool { return t.address() == 0 }

// IsLegacy reports whether the struct is a DLManagedTensor.
func (t *Tensor) IsLegacy() bool { return t.state != nil && t.state.isLegacy }

// Close calls the deleter, unless the tensor was closed or handed on. Several goroutines may call it at once.
func (t *Tensor) Close() {
	if address := t.leave(); address != 0 {
		deleteTensor(address, t.state.isLegacy)
	}
}

// Export hands the struct on, for a capsule or another library, which calls the deleter: a DLManagedTensorVersioned,
// or a DLManagedTensor if IsLegacy. The owner is closed.
//
// Errors: EINVAL for an owner that was closed.
func (t *Tensor) Export() (unsafe.Pointer, error) {
	address := t.leave()
	if address == 0 {
		return nil, closed("export")
	}
	return abi.Pointer(address), nil
}

// raw is nil for a closed owner and for another major version.
func (t *Tensor) raw() *abi.DLTensor {
	address := t.address()
	if address == 0 {
		return nil
	}
	if t.state.isLegacy {
		return &(*abi.DLManagedTensor)(abi.Pointer(address)).DlTensor
	}
	versioned := (*abi.DLManagedTensorVersioned)(abi.Pointer(address))
	if versioned.Version.Major != abi.DLPackMajorVersion {
		return nil
	}
	return &versioned.DlTensor
}

// readTensor returns a value of the struct, or zero of an empty one.
func readTensor[T any](t *Tensor, field func(*abi.DLTensor) T) (value T) {
	if raw := t.raw(); raw != nil {
		value = field(raw)
	}
	runtime.KeepAlive(t)
	return value
}

// Version returns the DLPack version of the struct; zero for a legacy tensor.
func (t *Tensor) Version() (version abi.DLPackVersion) {
	if address := t.address(); address != 0 && !t.state.isLegacy {
		version = (*abi.DLManagedTensorVersioned)(abi.Pointer(address)).Version
	}
	runtime.KeepAlive(t)
	return version
}

// Shape returns a copy of the sizes, one for each dimension.
func (t *Tensor) Shape() []int64 {
	return readTensor(t, func(raw *abi.DLTensor) []int64 { return extents(raw.Shape, raw.Ndim) })
}

// Strides returns a copy of the distances between neighbors, in elements; nil where they are NULL, which means
// row-major order.
func (t *Tensor) Strides() []int64 {
	return readTensor(t, func(raw *abi.DLTensor) []int64 { return extents(raw.Strides, raw.Ndim) })
}

func extents(list uintptr, count int32) []int64 {
	if list == 0 || count <= 0 {
		return nil
	}
	copied := make([]int64, count)
	copy(copied, unsafe.Slice((*int64)(abi.Pointer(list)), count))
	return copied
}

// DataType returns the type of the elements.
func (t *Tensor) DataType() abi.DLDataType {
	return readTensor(t, func(raw *abi.DLTensor) abi.DLDataType { return raw.Dtype })
}

// DeviceType returns the type of the device that the memory is on, known or not.
func (t *Tensor) DeviceType() abi.DeviceType {
	return readTensor(t, func(raw *abi.DLTensor) abi.DeviceType { return raw.Device.DeviceType })
}

// DeviceID returns which device of that type; 0 for the CPU.
func (t *Tensor) DeviceID() int32 {
	return readTensor(t, func(raw *abi.DLTensor) int32 { return raw.Device.DeviceID })
}

// Data returns the field data: an address for the device, or a handle such as a cl_mem. The first element is
// ByteOffset bytes behind it.
func (t *Tensor) Data() uintptr {
	return readTensor(t, func(raw *abi.DLTensor) uintptr { return raw.Data })
}

// ByteOffset returns where the first element is, in bytes from Data.
func (t *Tensor) ByteOffset() uint64 {
	return readTensor(t, func(raw *abi.DLTensor) uint64 { return raw.ByteOffset })
}

// Flags returns the DLPackFlagBitmask bits; [abi.DLPackFlagBitmaskReadOnly] for a legacy tensor, which has none.
func (t *Tensor) Flags() uint64 {
	return readTensor(t, func(*abi.DLTensor) uint64 {
		if t.state.isLegacy {
			return abi.DLPackFlagBitmaskReadOnly
		}
		return (*abi.DLManagedTensorVersioned)(abi.Pointer(t.address())).Flags
	})
}

// --- Without a schema ---------------------------------------------------------------------------

// TensorData describes memory for NewTensor.
type TensorData struct {
	// Data is an address for the device, or a handle. Memory of Go has to be pinned (runtime.Pinner) by the owner.
	Data uintptr

	// ByteOffset is where the first element is, in bytes from Data.
	ByteOffset uint64

	// Shape has the size of each dimension.
	Shape []int64

	// Strides has the distance between neighbors of each dimension, in elements; nil for row-major order.
	Strides []int64

	// DataType is the type of the elements.
	DataType abi.DLDataType

	// DeviceType and DeviceID name the device; the id of the CPU is 0.
	DeviceType abi.DeviceType
	DeviceID   int32

	// Flags are DLPackFlagBitmask bits.
	Flags uint64
}

// NewTensor returns a tensor of memory that the owner keeps, without an Arrow schema. Shape and strides are copied.
// The owner is kept until the deleter has run, and closed then if it has a Close; it may be nil.
//
// Errors: EINVAL for a negative size, more than 64 dimensions, 2^63 or more elements, another number of strides, and an
// unknown flag; ENOMEM. The owner is then the caller's.
func NewTensor(data TensorData, owner any) (*Tensor, error) {
	if data.Strides != nil && len(data.Strides) != len(data.Shape) {
		return nil, invalid("tensor: strides: expected %d, one for each size, got %d", len(data.Shape), len(data.Strides))
	}
	handle, ok := newHandle(owner)
	if !ok {
		return nil, noMemory("tensor")
	}
	like := likeOf(data)
	like.byte_offset = C.uint64_t(data.ByteOffset)
	var address uintptr
	err := errorOf(C.create_tensor(like, C.uintptr_t(data.Data), cExtents(data.Shape), cExtents(data.Strides),
		C.uint64_t(data.Flags), C.uintptr_t(handle), (*C.uintptr_t)(unsafe.Pointer(&address))))
	if err != nil {
		dropHandle(handle)
		return nil, err
	}
	return newTensor(address, false), nil
}

// likeOf is the struct without addresses.
func likeOf(data TensorData) C.DLTensor {
	return C.DLTensor{
		device: C.DLDevice{device_type: C.DLDeviceType(data.DeviceType), device_id: C.int32_t(data.DeviceID)},
		ndim:   C.int32_t(len(data.Shape)),
		dtype: C.DLDataType{
			code: C.uint8_t(data.DataType.Code), bits: C.uint8_t(data.DataType.Bits), lanes: C.uint16_t(data.DataType.Lanes),
		},
	}
}

func cExtents(list []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(list))) }

// TensorOf returns a read-only tensor of the values of a slice, without a copy. The slice is pinned until the deleter
// runs, and must not be written until then. Without a shape the tensor has one dimension.
//
// Errors: EINVAL for a shape of another number of values; ENOMEM.
func TensorOf[T Primitive](values []T, shape ...int64) (*Tensor, error) {
	if len(shape) == 0 {
		shape = []int64{int64(len(values))}
	}
	if count, ok := product(shape); !ok || count != int64(len(values)) {
		return nil, invalid("tensor: shape %v: expected as many elements as there are values, %d", shape, len(values))
	}
	data := TensorData{
		Shape: shape, DataType: dataTypeOf[T](), DeviceType: abi.DeviceCPU, Flags: abi.DLPackFlagBitmaskReadOnly,
	}
	var owner pinned
	if len(values) > 0 {
		first := unsafe.SliceData(values)
		owner.pinner.Pin(first)
		data.Data = uintptr(unsafe.Pointer(first))
	}
	tensor, err := NewTensor(data, owner)
	if err != nil {
		owner.Close()
	}
	return tensor, err
}

// product is not ok for a negative size, and for more than an int64 holds.
func product(shape []int64) (count int64, ok bool) {
	if slices.ContainsFunc(shape, func(size int64) bool { return size < 0 }) {
		return 0, false
	}
	if slices.Contains(shape, 0) {
		return 0, true
	}
	count = 1
	for _, size := range shape {
		if count > math.MaxInt64/size {
			return 0, false
		}
		count *= size
	}
	return count, true
}

// dataTypeOf is the type of the values.
func dataTypeOf[T Primitive]() abi.DLDataType {
	code := abi.DataTypeUInt
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		code = abi.DataTypeInt
	case reflect.Float32, reflect.Float64:
		code = abi.DataTypeFloat
	}
	return abi.DLDataType{Code: uint8(code), Bits: uint8(reflect.TypeFor[T]().Bits()), Lanes: 1}
}
