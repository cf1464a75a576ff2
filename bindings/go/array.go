// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Array owns an ArrowArray. Call Close, or pass the array on with Export.
//
// A move is a bitwise copy that leaves the source released, as in the C data interface. The data
// returned by the accessors belongs to the producer and is valid until Close. After Close the accessors
// return the values of an empty array. The accessors make no C calls.
//
// See "Memory management" in the Arrow C data interface.
type Array struct {
	arrayOwner[abi.ArrowArray]
}

// DeviceArray owns an ArrowDeviceArray and its event. See Array.
//
// See "Structure definitions" in the Arrow C device data interface.
type DeviceArray struct {
	arrayOwner[abi.ArrowDeviceArray]
}

// ImportArray moves the struct at a C address, such as the addresses that cdata and drivers pass, into
// an owner and leaves the source released. It makes no C calls.
//
// The caller promises that the struct follows the specification: its callbacks, lists and children are
// valid, no other party releases it, and its release callback may run on any thread. No other function
// requires such a promise. Buffers are never read.
//
// Errors: EINVAL for nil and for a released struct.
func ImportArray(address unsafe.Pointer) (*Array, error) {
	array := &Array{}
	if err := importInto("ImportArray", &array.owner, &arrayKind, address); err != nil {
		return nil, err
	}
	return array, nil
}

// ImportDeviceArray is ImportArray for an ArrowDeviceArray. The struct's sync_event must be NULL or an
// event of the device type.
func ImportDeviceArray(address unsafe.Pointer) (*DeviceArray, error) {
	array := &DeviceArray{}
	if err := importInto("ImportDeviceArray", &array.owner, &deviceArrayKind, address); err != nil {
		return nil, err
	}
	return array, nil
}

func newArray(value abi.ArrowArray) *Array {
	array := &Array{}
	array.fill(&arrayKind, value)
	return array
}

func newDeviceArray(value abi.ArrowDeviceArray) *DeviceArray {
	array := &DeviceArray{}
	array.fill(&deviceArrayKind, value)
	return array
}

// arrayOwner is the common part of both owners. A device array begins with its array.
type arrayOwner[R abi.ArrowArray | abi.ArrowDeviceArray] struct {
	owner[R]
	known typeOf // nil if the type is unknown, as for every imported array
}

// DeclareType declares the type of the array for streams that compare it with their schema. Such a
// stream calls the function. FromValues and package arrowgo declare the types of their arrays. The type
// of an imported array is unknown.
func (a *arrayOwner[R]) DeclareType(typeOf func() (*SchemaBuilder, error)) { a.known = typeOf }

// base returns nil if the owner is closed.
func (a *arrayOwner[R]) base() *abi.ArrowArray {
	return (*abi.ArrowArray)(unsafe.Pointer(a.get()))
}

// Root returns a view of the array itself.
func (a *arrayOwner[R]) Root() ArrayView {
	return ArrayView{view[abi.ArrowArray]{owner: a, raw: a.base()}}
}

// Length returns the number of values.
func (a *arrayOwner[R]) Length() int64 { return a.Root().Length() }

// NullCount returns the number of nulls, or -1 if the producer has not counted them.
func (a *arrayOwner[R]) NullCount() int64 { return a.Root().NullCount() }

// Offset returns the index of the first value in every buffer.
func (a *arrayOwner[R]) Offset() int64 { return a.Root().Offset() }

// NumBuffers returns the number of buffers.
func (a *arrayOwner[R]) NumBuffers() int { return a.Root().NumBuffers() }

// Buffer returns the address of a buffer on the device of the array, 0 if the buffer is NULL.
func (a *arrayOwner[R]) Buffer(index int) uintptr { return a.Root().Buffer(index) }

// BufferAddresses returns a copy of the buffer list.
func (a *arrayOwner[R]) BufferAddresses() []uintptr { return a.Root().BufferAddresses() }

// NumChildren returns the number of children. It returns 0 if the list is NULL or the count is negative
// or above 2^22.
func (a *arrayOwner[R]) NumChildren() int { return a.Root().NumChildren() }

// Child returns a view of a child, which reads as released if the child does not exist or was moved out.
func (a *arrayOwner[R]) Child(index int) ArrayView { return a.Root().Child(index) }

// Dictionary returns a view of the dictionary, which reads as released if there is no dictionary.
func (a *arrayOwner[R]) Dictionary() ArrayView { return a.Root().Dictionary() }

// Attach keeps a value until the struct is released, for a resource that the data needs and the producer
// does not manage. If the value has a Close method, it is called then, on the releasing thread. A child
// that is moved out does not keep the value; see Share for that. Attach changes release and
// private_data of the struct.
//
// Errors: EINVAL if the array is closed, ENOMEM. After an error the caller still owns the value.
func (a *arrayOwner[R]) Attach(value any) error {
	if a.IsReleased() {
		return closed("Attach")
	}
	defer runtime.KeepAlive(a)
	return attach(a.base(), value)
}

// --- Views --------------------------------------------------------------------------------------

// ArrayView reads an array that an owner keeps alive. It reads as an empty array if the struct is
// released or the owner is closed.
type ArrayView struct {
	view[abi.ArrowArray]
}

// Length returns the number of values.
func (v ArrayView) Length() int64 {
	return read(v.view, func(raw *abi.ArrowArray) int64 { return raw.Length })
}

// NullCount returns the number of nulls, or -1 if the producer has not counted them.
func (v ArrayView) NullCount() int64 {
	return read(v.view, func(raw *abi.ArrowArray) int64 { return raw.NullCount })
}

// Offset returns the index of the first value in every buffer.
func (v ArrayView) Offset() int64 {
	return read(v.view, func(raw *abi.ArrowArray) int64 { return raw.Offset })
}

// NumBuffers returns the number of buffers.
func (v ArrayView) NumBuffers() int {
	return read(v.view, func(raw *abi.ArrowArray) int { return len(buffersOf(raw)) })
}

// Buffer returns the address of a buffer on the device of the array, 0 if the buffer is NULL.
func (v ArrayView) Buffer(index int) uintptr {
	return read(v.view, func(raw *abi.ArrowArray) uintptr {
		if buffers := buffersOf(raw); index >= 0 && index < len(buffers) {
			return buffers[index]
		}
		return 0
	})
}

// BufferAddresses returns a copy of the buffer list.
func (v ArrayView) BufferAddresses() []uintptr {
	return read(v.view, func(raw *abi.ArrowArray) []uintptr { return slices.Clone(buffersOf(raw)) })
}

// buffersOf returns no buffers if the count is implausible: no type has so many buffers.
func buffersOf(raw *abi.ArrowArray) []uintptr {
	if raw.NBuffers > maxStructs {
		return nil
	}
	return raw.BufferAddresses()
}

// Child returns a view of a child, which reads as released if the child does not exist or was moved out.
func (v ArrayView) Child(index int) ArrayView { return ArrayView{v.child(index)} }

// Dictionary returns a view of the dictionary, which reads as released if there is no dictionary.
func (v ArrayView) Dictionary() ArrayView { return ArrayView{v.dictionary()} }

// --- Devices ------------------------------------------------------------------------------------

// DeviceType returns the device type of the buffers, 0 if the array is closed.
func (a *DeviceArray) DeviceType() abi.DeviceType {
	if raw := a.get(); raw != nil {
		return raw.DeviceType
	}
	return 0
}

// DeviceID returns the ID of the device, or -1 where it has no meaning, as on the CPU.
func (a *DeviceArray) DeviceID() int64 {
	if raw := a.get(); raw != nil {
		return raw.DeviceID
	}
	return -1
}

// SyncEvent returns the event to wait on before reading a buffer, 0 if there is none. The event is valid
// until the array is released.
func (a *DeviceArray) SyncEvent() uintptr {
	if raw := a.get(); raw != nil {
		return raw.SyncEvent
	}
	return 0
}

// ToDevice moves an array in CPU memory into a device array with DeviceID -1, Arrow's value for the CPU.
// Errors: EINVAL for a closed array.
func (a *Array) ToDevice() (*DeviceArray, error) {
	source, err := a.take("ToDevice")
	if err != nil {
		return nil, err
	}
	defer source.free()
	moved := newDeviceArray(abi.ArrowDeviceArray{Array: *source.raw, DeviceID: -1, DeviceType: abi.DeviceCPU})
	moved.known = a.known
	return moved, nil
}

// ToHost moves the array out of a device array on the CPU. Errors: EINVAL for a closed array, for
// another device type, and for an array with an event, which an ArrowArray cannot carry.
func (a *DeviceArray) ToHost() (*Array, error) {
	if found := a.DeviceType(); found != abi.DeviceCPU && !a.IsReleased() {
		return nil, invalid("ToHost: wrong device type: expected cpu, got %v", found)
	}
	if a.SyncEvent() != 0 {
		return nil, invalid("ToHost: sync_event not NULL: expected none on cpu")
	}
	source, err := a.take("ToHost")
	if err != nil {
		return nil, err
	}
	defer source.free()
	moved := newArray(source.raw.Array)
	moved.known = a.known
	return moved, nil
}

// --- Children -----------------------------------------------------------------------------------

// TakeChild moves a child out. It is released in the parent's list. The specification demands that the
// parent is released soon afterwards.
func (a *Array) TakeChild(index int) (*Array, error) {
	child, err := childToTake(a.base(), index)
	return a.takeBelow(child, index, err)
}

// TakeDictionary moves the dictionary out; see TakeChild.
func (a *Array) TakeDictionary() (*Array, error) {
	dictionary, err := dictionaryToTake(a.base())
	return a.takeBelow(dictionary, ofDictionary, err)
}

func (a *Array) takeBelow(below *abi.ArrowArray, index int, err error) (*Array, error) {
	if err != nil {
		return nil, err
	}
	taken := newArray(*below)
	taken.known = a.known.below(index)
	below.Release = 0
	runtime.KeepAlive(a)
	return taken, nil
}

// TakeChild moves a child out into a device array on the same device with the parent's event. The event
// is valid until the parent and every taken child are released; if there is an event, release and
// private_data of both structs change. See Array.TakeChild.
func (a *DeviceArray) TakeChild(index int) (*DeviceArray, error) {
	child, err := childToTake(a.base(), index)
	return a.takeBelow("TakeChild", child, index, err)
}

// TakeDictionary moves the dictionary out; see TakeChild.
func (a *DeviceArray) TakeDictionary() (*DeviceArray, error) {
	dictionary, err := dictionaryToTake(a.base())
	return a.takeBelow("TakeDictionary", dictionary, ofDictionary, err)
}

func (a *DeviceArray) takeBelow(operation string, below *abi.ArrowArray, index int, err error) (*DeviceArray, error) {
	if err != nil {
		return nil, err
	}
	raw := a.get()
	taken := newDeviceArray(around(raw, abi.ArrowArray{}))
	taken.known = a.known.below(index)
	if raw.SyncEvent == 0 {
		taken.get().Array = *below
		below.Release = 0
	} else if err := takeWithEvent(operation, &raw.Array, below, &taken.get().Array); err != nil {
		return nil, err
	}
	runtime.KeepAlive(a)
	return taken, nil
}

// around returns a device array with the same device and event.
func around(raw *abi.ArrowDeviceArray, array abi.ArrowArray) abi.ArrowDeviceArray {
	return abi.ArrowDeviceArray{
		Array: array, DeviceID: raw.DeviceID, DeviceType: raw.DeviceType, SyncEvent: raw.SyncEvent,
	}
}
