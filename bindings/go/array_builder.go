// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"fmt"

	"github.com/fletching/fletching/bindings/go/abi"
)

// ArrayBuilder describes an array with all its children. It is plain data that needs no Close. Build and
// BuildOn may be called repeatedly.
//
// The structs and the lists of buffers and children of an array are in one C allocation. It is freed
// when the last struct is released: the array, or a child that was moved out of it.
//
// See "Release callback semantics for producers" in the Arrow C data interface.
type ArrayBuilder struct {
	// Length is the number of values.
	Length int64

	// NullCount is the number of nulls, or -1 if it is unknown.
	NullCount int64

	// Offset is the index of the first value in every buffer.
	Offset int64

	// Buffers are the addresses of the buffers: on the device, in C memory or in pinned Go memory
	// (runtime.Pinner); 0 for NULL. The buffers belong to the owner or outlive it. An address does
	// not keep Go memory alive.
	Buffers []uintptr

	// Children and Dictionary describe the nested structs.
	Children   []ArrayBuilder
	Dictionary *ArrayBuilder
}

// Build returns the array. The owner, which may be nil, is kept until the last struct is released. If
// it has a Close method, it is called then, on the releasing thread. A panic of Close is recovered.
//
// Errors: EINVAL for a length, offset or null count out of range and for more than 256 levels or 2^22
// structs, ENOMEM. After an error the caller still owns the owner.
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

// BuildOn returns the array as a device array. SyncEvent is 0 or an event of the kind that the device type
// uses (docs/synchronization.md): usually the address of a handle, in C memory or pinned, which is valid
// until the owner is closed.
//
// Errors: as Build, and EINVAL for an event on a device type without events.
func (b *ArrayBuilder) BuildOn(deviceType abi.DeviceType, deviceID int64, syncEvent uintptr, owner any) (*DeviceArray, error) {
	if info, known := deviceType.Info(); syncEvent != 0 && known && info.EventPointer == abi.EventNone {
		return nil, invalid("ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event")
	}
	var raw abi.ArrowArray
	if err := b.build(owner, &raw); err != nil {
		return nil, err
	}
	return newDeviceArray(abi.ArrowDeviceArray{
		Array: raw, DeviceID: deviceID, DeviceType: deviceType, SyncEvent: syncEvent,
	}), nil
}

// build fills the root struct unless it returns an error.
func (b *ArrayBuilder) build(owner any, root *abi.ArrowArray) error {
	structs, buffers := 0, 0
	if err := b.count(&structs, &buffers, 0); err != nil {
		return invalid("ArrayBuilder: %v", err)
	}
	handle, ok := newHandle(owner)
	if !ok {
		return noMemory("ArrayBuilder")
	}
	block, ok := newBlock[abi.ArrowArray](structs, buffers, 0, handle, 0)
	if !ok {
		dropHandle(handle)
		return noMemory("ArrayBuilder")
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

// write fills the struct and its nested structs.
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
