// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

/*
#include "block.h"

// cgo takes the address of a function without expanding macros in its name.
static uintptr_t address_of_release_schema(void) { return (uintptr_t)fletching_release_schema; }
static uintptr_t address_of_release_array(void) { return (uintptr_t)fletching_release_array; }
*/
import "C"

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// The C and Go layouts are equal: a difference in either direction does not compile.
const (
	_ = uint(unsafe.Sizeof(abi.ArrowSchema{}) - C.sizeof_struct_ArrowSchema)
	_ = uint(C.sizeof_struct_ArrowSchema - unsafe.Sizeof(abi.ArrowSchema{}))
	_ = uint(unsafe.Sizeof(abi.ArrowArray{}) - C.sizeof_struct_ArrowArray)
	_ = uint(C.sizeof_struct_ArrowArray - unsafe.Sizeof(abi.ArrowArray{}))
	_ = uint(unsafe.Sizeof(abi.ArrowDeviceArray{}) - C.sizeof_struct_ArrowDeviceArray)
	_ = uint(C.sizeof_struct_ArrowDeviceArray - unsafe.Sizeof(abi.ArrowDeviceArray{}))
)

const addressSize = unsafe.Sizeof(uintptr(0))

var (
	releaseSchema = abi.ArrowSchemaReleaseFunc(C.address_of_release_schema())
	releaseArray  = abi.ArrowArrayReleaseFunc(C.address_of_release_array())
)

// base is a struct type with nested structs of the same type.
type base interface {
	abi.ArrowSchema | abi.ArrowArray
}

// block is the content of an exported struct, in one C allocation: the structs, including the root; the
// addresses of all structs except the root; further addresses; and bytes. It contains no Go pointers.
// The C half counts the unreleased structs and frees the block with the last one.
type block[B base] struct {
	address   uintptr
	structs   []B
	list      []uintptr // the address of each struct except the root, for lists of children
	addresses []uintptr
	bytes     []byte
}

// newBlock allocates a block, whose structs, addresses and bytes are undefined. The caller must fill them in and pass
// the structs on; it may ignore the root. The block owns the value of the handle and a reference to the share; either
// may be 0. ok is false if out of memory.
func newBlock[B base](structs, addresses, bytes int, handle uintptr, share uintptr) (b block[B], ok bool) {
	var node B
	if structs > maxStructs || addresses > math.MaxInt/16 { // no size may overflow 64 bits
		return b, false
	}
	before := C.sizeof_struct_FletchingBlock + uint64(structs)*uint64(unsafe.Sizeof(node))
	lists := uint64(structs-1+addresses) * uint64(addressSize)
	size := before + lists + uint64(bytes)
	if size > math.MaxInt {
		return b, false
	}
	start := unsafe.Pointer(C.fletching_block_new(C.size_t(size), C.size_t(structs), C.uintptr_t(handle), C.uintptr_t(share)))
	if start == nil {
		return b, false
	}
	b.address = uintptr(start)
	b.structs = unsafe.Slice((*B)(unsafe.Add(start, C.sizeof_struct_FletchingBlock)), structs)
	both := unsafe.Slice((*uintptr)(unsafe.Add(start, before)), structs-1+addresses)
	b.list, b.addresses = both[:structs-1:structs-1], both[structs-1:]
	b.bytes = unsafe.Slice((*byte)(unsafe.Add(start, before+lists)), bytes)
	for i := range b.list {
		b.list[i] = uintptr(unsafe.Pointer(&b.structs[i+1]))
	}
	return b, true
}

// addressOf returns 0 for an empty list.
func addressOf[T any](list []T) uintptr {
	if len(list) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(list)))
}

// freeBlock is the unused remainder of a block that is being filled.
type freeBlock[B base] struct {
	structs   []B
	list      []uintptr
	addresses []uintptr
	bytes     []byte
}

// take removes and returns the first elements.
func take[T any](free *[]T, count int) []T {
	taken := (*free)[:count:count]
	*free = (*free)[count:]
	return taken
}

// newHandle returns 0 for nil. ok is false if all handles are in use, which happens on 32-bit targets.
func newHandle(value any) (handle uintptr, ok bool) {
	if value == nil {
		return 0, true
	}
	return callbacks.TryNewHandle(value)
}

// dropHandle deletes the handle and does not close the value.
func dropHandle(handle uintptr) {
	if handle != 0 {
		callbacks.DeleteHandle(handle)
	}
}

// dropValue is called by C when the last struct that needs the value is released. It does not close a value
// that owns a struct: C releases that struct afterwards, so that chains of owners need no recursion.
func dropValue(handle C.uintptr_t) *C.struct_FletchingShare {
	value, _ := callbacks.DeleteHandle(uintptr(handle))
	if holder, ok := value.(interface {
		due() *C.struct_FletchingShare
	}); ok {
		if due := holder.due(); due != nil {
			return due
		}
	}
	discard(value)
	return nil
}

func (s *Schema) due() *C.struct_FletchingShare {
	if s == nil {
		return nil
	}
	return due(&s.owner, func(raw *abi.ArrowSchema) *C.struct_FletchingShare { return C.fletching_due_schema(cSchema(raw)) })
}

func (a *Array) due() *C.struct_FletchingShare {
	if a == nil {
		return nil
	}
	return due(&a.owner, func(raw *abi.ArrowArray) *C.struct_FletchingShare { return C.fletching_due_array(cArray(raw)) })
}

func (a *DeviceArray) due() *C.struct_FletchingShare {
	if a == nil {
		return nil
	}
	return due(&a.owner, func(raw *abi.ArrowDeviceArray) *C.struct_FletchingShare {
		return C.fletching_due_array(cArray(&raw.Array))
	})
}

func (s *Shared[T]) due() *C.struct_FletchingShare {
	if s == nil {
		return nil
	}
	return s.owner.due()
}

// due moves an owner's struct out. It returns nil if the owner is closed. If there is no memory, it releases
// the struct and returns nil.
func due[R raw](o *owner[R], moved func(*R) *C.struct_FletchingShare) *C.struct_FletchingShare {
	if o.IsReleased() {
		return nil
	}
	s := o.leave()
	if s == nil {
		return nil
	}
	link := moved(s.raw)
	if link == nil {
		s.kind.release(s.raw)
	}
	s.free()
	return link
}

// callArrayRelease releases our own leaf, if it is the last struct of its block, without crossing
// from Go to C and back to Go. It has the same effect as fletching_release_array.
func callArrayRelease(raw *abi.ArrowArray) (called bool) {
	if raw.Release != releaseArray {
		return callbacks.CallArrowArrayRelease(raw)
	}
	return releaseBlock(raw)
}

func releaseBlock(raw *abi.ArrowArray) (called bool) {
	if raw.NChildren != 0 || raw.Dictionary != 0 {
		return callbacks.CallArrowArrayRelease(raw)
	}
	block := (*C.struct_FletchingBlock)(abi.Pointer(raw.PrivateData))
	if block.owner == 0 || block.share != nil || atomic.LoadUintptr((*uintptr)(unsafe.Pointer(&block.structs))) != 1 {
		return callbacks.CallArrowArrayRelease(raw)
	}
	raw.Release = 0
	value, _ := callbacks.DeleteHandle(uintptr(block.owner))
	discard(value)
	C.fletching_block_free(C.uintptr_t(raw.PrivateData)) // a number, so that cgo makes no pointer check
	return true
}

// attach hooks a struct of any producer, so that the value is dropped after its release.
func attach[B base](target *B, value any) error {
	handle, ok := newHandle(value)
	if !ok {
		return noMemory("Attach")
	}
	var code C.int
	switch target := any(target).(type) {
	case *abi.ArrowSchema:
		code = C.fletching_attach_schema(cSchema(target), C.uintptr_t(handle))
	case *abi.ArrowArray:
		code = C.fletching_attach_array(cArray(target), C.uintptr_t(handle))
	}
	if code != 0 {
		dropHandle(handle)
		return noMemory("Attach")
	}
	return nil
}

// makeShared moves a struct into a share and replaces it with a struct that references the share.
func makeShared[B base](source *B) error {
	var code C.int
	switch source := any(source).(type) {
	case *abi.ArrowSchema:
		code = C.fletching_share_schema(cSchema(source))
	case *abi.ArrowArray:
		code = C.fletching_share_array(cArray(source))
	}
	if code != 0 {
		return noMemory("Share")
	}
	return nil
}

// takeWithEvent moves a child out. The parent's event is valid until both are released.
func takeWithEvent(operation string, parent, child, out *abi.ArrowArray) error {
	if C.fletching_take_with_event(cArray(parent), cArray(child), cArray(out)) != 0 {
		return noMemory(operation)
	}
	return nil
}

func cSchema(schema *abi.ArrowSchema) *C.struct_ArrowSchema {
	return (*C.struct_ArrowSchema)(unsafe.Pointer(schema))
}

func cArray(array *abi.ArrowArray) *C.struct_ArrowArray {
	return (*C.struct_ArrowArray)(unsafe.Pointer(array))
}
