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

// Tensor owns a DLPack tensor: a DLManagedTensorVersioned, or the DLManagedTensor from before DLPack 1.0. Call Close,
// or pass the tensor on with Export or DeviceArray.
//
// If the owner is closed, the accessors return the values of an empty tensor, as they do for a tensor whose major
// version is not 1, of which only the deleter can be used. Only one goroutine at a time may use a tensor; Close may
// be called from any.
//
// See DLManagedTensorVersioned in dlpack.h.
type Tensor struct {
	_     noCopy
	state *tensorState
	self  *Tensor // a copy owns nothing: its self points to the original
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// tensorState outlives an owner that is garbage-collected without a Close.
type tensorState struct {
	address  atomic.Uintptr // of the struct in C; 0 after Close or a move
	isLegacy bool
	made     []uintptr // the stack of the owner's creation, if it is traced
}

// ImportTensor takes ownership of the DLManagedTensorVersioned at a C address and calls its deleter.
//
// The caller promises that the struct follows dlpack.h: its lists have the stated lengths, no other party calls the
// deleter, and the deleter may run on any thread. The values are read only if you request a copy.
//
// Errors: EINVAL for nil.
func ImportTensor(address unsafe.Pointer) (*Tensor, error) {
	return importTensor("ImportTensor", address, false)
}

// ImportLegacyTensor is ImportTensor for a DLManagedTensor, which has no version and no flags.
func ImportLegacyTensor(address unsafe.Pointer) (*Tensor, error) {
	return importTensor("ImportLegacyTensor", address, true)
}

func importTensor(operation string, address unsafe.Pointer, isLegacy bool) (*Tensor, error) {
	if address == nil {
		return nil, invalid("%s: tensor is nil: expected an address", operation)
	}
	address = validated(directionImport, tensorNumber(isLegacy), address)
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

// leave removes and returns the struct's address; 0 if the owner is empty or a copy.
func (t *Tensor) leave() uintptr {
	if t.self != t {
		return 0
	}
	defer runtime.KeepAlive(t) // the cleanup takes the address too
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

// leak runs on a goroutine of the runtime's cleanups, which a blocking deleter would stall.
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

// IsReleased reports whether the owner is empty: closed, exported or moved.
func (t *Tensor) IsReleased() bool { return t.address() == 0 }

// IsLegacy reports whether the struct is a DLManagedTensor.
func (t *Tensor) IsLegacy() bool { return t.state != nil && t.state.isLegacy }

// Close calls the deleter, unless the tensor was closed, exported or moved. Several goroutines may call Close at once.
func (t *Tensor) Close() {
	if address := t.leave(); address != 0 {
		deleteTensor(address, t.state.isLegacy)
	}
}

// Export passes the struct on, for a capsule or another library that calls the deleter: a DLManagedTensorVersioned,
// or a DLManagedTensor if IsLegacy. The owner is closed afterwards.
//
// Errors: EINVAL if the owner is closed.
func (t *Tensor) Export() (unsafe.Pointer, error) {
	address := t.leave()
	if address == 0 {
		return nil, closed("Export")
	}
	return validated(directionExport, tensorNumber(t.state.isLegacy), abi.Pointer(address)), nil
}

// raw returns nil for a closed owner and for another major version.
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

// readTensor returns a value of the struct, or the zero value if the owner is empty.
func readTensor[T any](t *Tensor, field func(*abi.DLTensor) T) (value T) {
	if raw := t.raw(); raw != nil {
		value = field(raw)
	}
	runtime.KeepAlive(t)
	return value
}

// Version returns the DLPack version of the struct, which is zero for a legacy tensor.
func (t *Tensor) Version() (version abi.DLPackVersion) {
	if address := t.address(); address != 0 && !t.state.isLegacy {
		version = (*abi.DLManagedTensorVersioned)(abi.Pointer(address)).Version
	}
	runtime.KeepAlive(t)
	return version
}

// Shape returns a copy of the dimensions' sizes.
func (t *Tensor) Shape() []int64 {
	return readTensor(t, func(raw *abi.DLTensor) []int64 { return extents(raw.Shape, raw.Ndim) })
}

// Strides returns a copy of the strides, in elements. It returns nil if they are NULL, which means row-major order.
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

// DeviceType returns the device type of the memory, which may be unknown.
func (t *Tensor) DeviceType() abi.DeviceType {
	return readTensor(t, func(raw *abi.DLTensor) abi.DeviceType { return raw.Device.DeviceType })
}

// DeviceID returns the ID of the device, 0 for the CPU.
func (t *Tensor) DeviceID() int32 {
	return readTensor(t, func(raw *abi.DLTensor) int32 { return raw.Device.DeviceID })
}

// Data returns the field data: a device address, or a handle such as a cl_mem. The first element is ByteOffset bytes
// after it.
func (t *Tensor) Data() uintptr {
	return readTensor(t, func(raw *abi.DLTensor) uintptr { return raw.Data })
}

// ByteOffset returns the offset of the first element from Data, in bytes.
func (t *Tensor) ByteOffset() uint64 {
	return readTensor(t, func(raw *abi.DLTensor) uint64 { return raw.ByteOffset })
}

// Flags returns the DLPackFlagBitmask bits. For a legacy tensor, which has none, it is [abi.DLPackFlagBitmaskReadOnly].
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
	// Data is a device address or a handle. The owner must pin Go memory (runtime.Pinner).
	Data uintptr

	// ByteOffset is the offset of the first element from Data, in bytes.
	ByteOffset uint64

	// Shape lists the sizes of the dimensions.
	Shape []int64

	// Strides lists the strides of the dimensions, in elements; nil for row-major order.
	Strides []int64

	// DataType is the type of the elements.
	DataType abi.DLDataType

	// DeviceType and DeviceID identify the device. The ID of the CPU is 0.
	DeviceType abi.DeviceType
	DeviceID   int32

	// Flags are DLPackFlagBitmask bits.
	Flags uint64
}

// NewTensor returns a tensor of memory that the owner keeps alive, without an Arrow schema. It copies shape and
// strides. The owner, which may be nil, is kept until the deleter has run. If it has a Close method, it is called then.
//
// Errors: EINVAL for a negative size, more than 64 dimensions, 2^63 or more elements, a wrong number of strides, and an
// unknown flag; ENOMEM. After an error the caller still owns it.
func NewTensor(data TensorData, owner any) (*Tensor, error) {
	if data.Strides != nil && len(data.Strides) != len(data.Shape) {
		return nil, invalid("NewTensor: strides: expected %d, one for each size, got %d", len(data.Shape), len(data.Strides))
	}
	handle, ok := newHandle(owner)
	if !ok {
		return nil, noMemory("NewTensor")
	}
	like := likeOf(data)
	like.byte_offset = C.uint64_t(data.ByteOffset)
	var address uintptr
	err := errorOf("NewTensor", C.create_tensor(like, C.uintptr_t(data.Data), cExtents(data.Shape), cExtents(data.Strides),
		C.uint64_t(data.Flags), C.uintptr_t(handle), (*C.uintptr_t)(unsafe.Pointer(&address))))
	if err != nil {
		dropHandle(handle)
		return nil, err
	}
	return newTensor(address, false), nil
}

// likeOf returns the struct without addresses.
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

// TensorOf returns a read-only tensor of a slice's values without a copy. The slice is pinned until the deleter
// runs, and must not be modified until then. Without a shape the tensor has one dimension.
//
// Errors: EINVAL if the shape has another number of values; ENOMEM.
func TensorOf[T Primitive](values []T, shape ...int64) (*Tensor, error) {
	if len(shape) == 0 {
		shape = []int64{int64(len(values))}
	}
	if count, ok := product(shape); !ok || count != int64(len(values)) {
		return nil, invalid("TensorOf: shape %v: expected as many elements as there are values, %d", shape, len(values))
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

// product returns false for a negative size, and if the product overflows int64.
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

// dataTypeOf returns the DLPack type of the values.
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
