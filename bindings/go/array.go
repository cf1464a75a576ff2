// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Array owns an ArrowArray. Close it, or move it on with Export.
//
// A move is a bitwise copy, after which the source is released, as in the C data interface. The data
// of the accessors belongs to the producer and lives as long as the owner is open; after Close they
// return the values of an empty array. They need no call of C.
//
// Text: Arrow C data interface, "Memory management".
type Array struct {
	arrayOwner[abi.ArrowArray]
}

// DeviceArray owns an ArrowDeviceArray, with the event that it has. See Array.
//
// Text: Arrow C device data interface, "Structure definitions".
type DeviceArray struct {
	arrayOwner[abi.ArrowDeviceArray]
}

// ImportArray moves the struct at an address of C in, which is released afterwards: the address that
// cdata and drivers pass. Without a call of C.
//
// The struct is as the texts ask for it: its callbacks, lists and children are what they say, no
// other party releases it, and its release may run on any thread. This is the only place where the
// caller promises something. No buffer is ever read.
//
// Errors: EINVAL for nil and for a released struct.
func ImportArray(address unsafe.Pointer) (*Array, error) {
	array := &Array{}
	if err := importInto(&array.owner, &arrayKind, address); err != nil {
		return nil, err
	}
	return array, nil
}

// ImportDeviceArray is ImportArray for an ArrowDeviceArray. SyncEvent is NULL or the event of the
// device type.
func ImportDeviceArray(address unsafe.Pointer) (*DeviceArray, error) {
	array := &DeviceArray{}
	if err := importInto(&array.owner, &deviceArrayKind, address); err != nil {
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

// arrayOwner is what both owners have. A device array begins with its array.
type arrayOwner[R abi.ArrowArray | abi.ArrowDeviceArray] struct {
	owner[R]
	known typeOf // nil for an array of unknown type, which is every imported one
}

// DeclareType declares the type of the array, for streams that compare it with their schema: the function is
// called when one does. FromValues declares the type of its array, and so does package arrowgo; the type of
// an imported array is unknown.
func (a *arrayOwner[R]) DeclareType(typeOf func() (*SchemaBuilder, error)) { a.known = typeOf }

// base is nil for a closed owner.
func (a *arrayOwner[R]) base() *abi.ArrowArray {
	return (*abi.ArrowArray)(unsafe.Pointer(a.get()))
}

// Root returns a view of the array itself, for code that walks through views.
func (a *arrayOwner[R]) Root() ArrayView {
	return ArrayView{view[abi.ArrowArray]{owner: a, raw: a.base()}}
}

// Length returns the number of values.
func (a *arrayOwner[R]) Length() int64 { return a.Root().Length() }

// NullCount returns the number of nulls, -1 when the producer has not counted.
func (a *arrayOwner[R]) NullCount() int64 { return a.Root().NullCount() }

// Offset returns the index of the first value in every buffer.
func (a *arrayOwner[R]) Offset() int64 { return a.Root().Offset() }

// NumBuffers returns the number of buffers.
func (a *arrayOwner[R]) NumBuffers() int { return a.Root().NumBuffers() }

// Buffer returns the address of a buffer, on the device of the array; 0 for none.
func (a *arrayOwner[R]) Buffer(index int) uintptr { return a.Root().Buffer(index) }

// BufferAddresses returns a copy of the list of buffers.
func (a *arrayOwner[R]) BufferAddresses() []uintptr { return a.Root().BufferAddresses() }

// NumChildren returns the number of children; 0 for a list that is NULL, and for a count that is
// negative or above 2^22.
func (a *arrayOwner[R]) NumChildren() int { return a.Root().NumChildren() }

// Child returns a view of a child; of a released struct where there is none, or it was moved out.
func (a *arrayOwner[R]) Child(index int) ArrayView { return a.Root().Child(index) }

// Dictionary returns a view of the dictionary; of a released struct where there is none.
func (a *arrayOwner[R]) Dictionary() ArrayView { return a.Root().Dictionary() }

// Attach keeps a value until the release of the struct: what the producer does not know of and the
// data needs. A value with a method Close is closed then, on the thread that releases. A child that
// is moved out does not prolong its life; see Share for that. Release and private_data of the struct
// change.
//
// Errors: EINVAL when the array is closed, ENOMEM; then the value is still the caller's.
func (a *arrayOwner[R]) Attach(value any) error {
	if a.IsReleased() {
		return closed("attach")
	}
	defer runtime.KeepAlive(a)
	return attach(a.base(), value)
}

// --- Views --------------------------------------------------------------------------------------

// ArrayView reads an array that an owner keeps alive. Of a released one, and after the owner was
// closed, it reads the values of an empty array.
type ArrayView struct {
	view[abi.ArrowArray]
}

// Length returns the number of values.
func (v ArrayView) Length() int64 {
	return read(v.view, func(raw *abi.ArrowArray) int64 { return raw.Length })
}

// NullCount returns the number of nulls, -1 when the producer has not counted.
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

// Buffer returns the address of a buffer, on the device of the array; 0 for none.
func (v ArrayView) Buffer(index int) uintptr {
	return read(v.view, func(raw *abi.ArrowArray) uintptr {
		if buffers := buffersOf(raw); index >= 0 && index < len(buffers) {
			return buffers[index]
		}
		return 0
	})
}

// BufferAddresses returns a copy of the list of buffers.
func (v ArrayView) BufferAddresses() []uintptr {
	return read(v.view, func(raw *abi.ArrowArray) []uintptr { return slices.Clone(buffersOf(raw)) })
}

// buffersOf is empty for a count that was never set: no type has as many buffers.
func buffersOf(raw *abi.ArrowArray) []uintptr {
	if raw.NBuffers > maxStructs {
		return nil
	}
	return raw.BufferAddresses()
}

// Child returns a view of a child; of a released struct where there is none, or it was moved out.
func (v ArrayView) Child(index int) ArrayView { return ArrayView{v.child(index)} }

// Dictionary returns a view of the dictionary; of a released struct where there is none.
func (v ArrayView) Dictionary() ArrayView { return ArrayView{v.dictionary()} }

// --- Devices ------------------------------------------------------------------------------------

// DeviceType returns the type of the device that the buffers are on; 0 for a closed array.
func (a *DeviceArray) DeviceType() abi.DeviceType {
	if raw := a.get(); raw != nil {
		return raw.DeviceType
	}
	return 0
}

// DeviceID returns which device of that type; -1 where it does not matter, as on the CPU.
func (a *DeviceArray) DeviceID() int64 {
	if raw := a.get(); raw != nil {
		return raw.DeviceID
	}
	return -1
}

// SyncEvent returns the event to wait on before a buffer is read, 0 for none. It lives until the
// array is released.
func (a *DeviceArray) SyncEvent() uintptr {
	if raw := a.get(); raw != nil {
		return raw.SyncEvent
	}
	return 0
}

// ToDevice moves an array in CPU memory into a device array, with the DeviceID -1 that Arrow has for
// the CPU. Errors: EINVAL for a closed array.
func (a *Array) ToDevice() (*DeviceArray, error) {
	source, err := a.take("to_device")
	if err != nil {
		return nil, err
	}
	defer source.free()
	moved := newDeviceArray(abi.ArrowDeviceArray{Array: *source.raw, DeviceID: -1, DeviceType: abi.DeviceCPU})
	moved.known = a.known
	return moved, nil
}

// ToHost moves the array of a device array on the CPU out. Errors: EINVAL for a closed array, for
// another device type, and for an array with an event, which an ArrowArray cannot carry.
func (a *DeviceArray) ToHost() (*Array, error) {
	if found := a.DeviceType(); found != abi.DeviceCPU && !a.IsReleased() {
		return nil, invalid("array: wrong device type: expected cpu, got %v", found)
	}
	if a.SyncEvent() != 0 {
		return nil, invalid("array: sync_event not NULL: expected none on cpu")
	}
	source, err := a.take("to_host")
	if err != nil {
		return nil, err
	}
	defer source.free()
	moved := newArray(source.raw.Array)
	moved.known = a.known
	return moved, nil
}

// --- Children -----------------------------------------------------------------------------------

// TakeChild moves a child out. The parent lists it as released; the texts ask that the parent is
// released soon afterwards.
//
// Errors: EINVAL when there is no such child, or it was moved out before.
func (a *Array) TakeChild(index int) (*Array, error) {
	child, err := childToTake(a.base(), index)
	return a.takeBelow(child, index, err)
}

// TakeDictionary is TakeChild for the dictionary.
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

// TakeChild moves a child out, as a device array on the same device with the parent's event, which
// lives until the parent and every child that was taken are released: then release and private_data
// of both change. See Array.TakeChild.
func (a *DeviceArray) TakeChild(index int) (*DeviceArray, error) {
	child, err := childToTake(a.base(), index)
	return a.takeBelow(child, index, err)
}

// TakeDictionary is TakeChild for the dictionary.
func (a *DeviceArray) TakeDictionary() (*DeviceArray, error) {
	dictionary, err := dictionaryToTake(a.base())
	return a.takeBelow(dictionary, ofDictionary, err)
}

func (a *DeviceArray) takeBelow(below *abi.ArrowArray, index int, err error) (*DeviceArray, error) {
	if err != nil {
		return nil, err
	}
	raw := a.get()
	taken := newDeviceArray(around(raw, abi.ArrowArray{}))
	taken.known = a.known.below(index)
	if raw.SyncEvent == 0 {
		taken.get().Array = *below
		below.Release = 0
	} else if err := takeWithEvent(&raw.Array, below, &taken.get().Array); err != nil {
		return nil, err
	}
	runtime.KeepAlive(a)
	return taken, nil
}

// around is an array on the same device with the same event.
func around(raw *abi.ArrowDeviceArray, array abi.ArrowArray) abi.ArrowDeviceArray {
	return abi.ArrowDeviceArray{
		Array: array, DeviceID: raw.DeviceID, DeviceType: raw.DeviceType, SyncEvent: raw.SyncEvent,
	}
}
