// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"fmt"

	"github.com/fletching/fletching/bindings/go/abi"
)

// ArrayBuilder describes an array with all its children. It is plain data, which does not have to
// be closed; Build and BuildOn may be called repeatedly.
//
// The array is one allocation of C: the structs and the lists of buffers and children. It lives until
// the last of the structs is released: the array, or a child that was moved out of it.
//
// Text: Arrow C data interface, "Release callback semantics for producers".
type ArrayBuilder struct {
	// Length is the number of values.
	Length int64

	// NullCount is the number of nulls; -1 when it is not counted.
	NullCount int64

	// Offset is the index of the first value in every buffer.
	Offset int64

	// Buffers are the addresses of the buffers: on the device, in C memory or in pinned Go memory
	// (runtime.Pinner); 0 for none. They belong to the owner or live at least as long. An address
	// does not keep memory of Go alive.
	Buffers []uintptr

	// Children and Dictionary describe the structs below.
	Children   []ArrayBuilder
	Dictionary *ArrayBuilder
}

// Build returns the array. The owner, which may be nil, is kept until the last struct is released;
// one with a method Close is closed then, on the thread that releases. A panic of it goes no
// further.
//
// Errors: EINVAL for a length, offset or null count out of range, more than 256 levels or 2^22
// structs; ENOMEM. Then the owner is still the caller's.
func (b *ArrayBuilder) Build(owner any) (*Array, error) {
	s := newSlot(&arrayKind)
	if err := b.build(owner, s.raw); err != nil {
		s.free()
		return nil, err
	}
	array := &Array{}
	array.hold(s)
	return array, nil
}

// BuildOn returns the array as a device array. SyncEvent is 0 or of the type that the device type has
// (docs/synchronization.md): the address of the handle as a rule, in C memory or pinned, valid until
// the owner is closed.
//
// Errors: as Build; EINVAL also for an event on a device type that has none.
func (b *ArrayBuilder) BuildOn(deviceType abi.DeviceType, deviceID int64, syncEvent uintptr, owner any) (*DeviceArray, error) {
	if info, known := deviceType.Info(); syncEvent != 0 && known && info.EventPointer == abi.EventNone {
		return nil, invalid("array builder: sync_event not NULL: expected NULL, because the device type has no event")
	}
	var raw abi.ArrowArray
	if err := b.build(owner, &raw); err != nil {
		return nil, err
	}
	return newDeviceArray(abi.ArrowDeviceArray{
		Array: raw, DeviceID: deviceID, DeviceType: deviceType, SyncEvent: syncEvent,
	}), nil
}

// build fills the struct at the root, unless there is an error.
func (b *ArrayBuilder) build(owner any, root *abi.ArrowArray) error {
	structs, buffers := 0, 0
	if err := b.count(&structs, &buffers, 0); err != nil {
		return invalid("array builder: %v", err)
	}
	handle, ok := newHandle(owner)
	if !ok {
		return noMemory("array builder")
	}
	block, ok := newBlock[abi.ArrowArray](structs, buffers, 0, handle, 0)
	if !ok {
		dropHandle(handle)
		return noMemory("array builder")
	}
	free := freeBlock[abi.ArrowArray]{block.structs[1:], block.list, block.addresses, nil}
	b.write(root, block.address, &free)
	return nil
}

func (b *ArrayBuilder) count(structs, buffers *int, depth int) error {
	*structs++
	*buffers += len(b.Buffers)
	switch {
	case depth == maxDepth:
		return fmt.Errorf("nested too deep: expected at most %d levels", maxDepth)
	case *structs > maxStructs:
		return fmt.Errorf("too many structs: expected at most %d", maxStructs)
	case b.Length < 0 || b.Offset < 0 || b.NullCount < -1 || b.NullCount > b.Length:
		return errors.New("length, offset or null_count out of range: expected 0 or more, null_count -1 to length")
	}
	for i := range b.Children {
		if err := b.Children[i].count(structs, buffers, depth+1); err != nil {
			return err
		}
	}
	if b.Dictionary == nil {
		return nil
	}
	return b.Dictionary.count(structs, buffers, depth+1)
}

// write fills the struct and those below it.
func (b *ArrayBuilder) write(raw *abi.ArrowArray, block uintptr, free *freeBlock[abi.ArrowArray]) {
	buffers := take(&free.addresses, len(b.Buffers))
	copy(buffers, b.Buffers)
	children := take(&free.structs, len(b.Children))
	*raw = abi.ArrowArray{
		Length: b.Length, NullCount: b.NullCount, Offset: b.Offset,
		NBuffers: int64(len(buffers)), Buffers: addressOf(buffers),
		NChildren: int64(len(children)), Children: addressOf(take(&free.list, len(children))),
		Release: releaseArray, PrivateData: block,
	}
	for i := range children {
		b.Children[i].write(&children[i], block, free)
	}
	if b.Dictionary != nil {
		take(&free.list, 1)
		dictionary := take(&free.structs, 1)
		raw.Dictionary = addressOf(dictionary)
		b.Dictionary.write(&dictionary[0], block, free)
	}
}
