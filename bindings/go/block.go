// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

/*
#include "block.h"

// cgo takes the address of a function by its name before the macros.
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

// The layouts in C and in Go are the same: a difference in either direction does not compile.
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

// base is a struct that has others of its type below it.
type base interface {
	abi.ArrowSchema | abi.ArrowArray
}

// block is everything below a struct that we export, in one allocation of C: the structs, the root
// among them, the addresses of all but the root, further addresses, and bytes. It holds no pointer
// of Go. The C half counts the structs that are not released and then frees it.
type block[B base] struct {
	address   uintptr
	structs   []B
	list      []uintptr // the address of each struct but the root, for lists of children
	addresses []uintptr
	bytes     []byte
}

// newBlock makes room. All structs have to be filled and handed on. The block keeps the value of
// the handle and a use of the share; either may be 0. ok is false when there is no memory.
func newBlock[B base](structs, addresses, bytes int, handle uintptr, share uintptr) (b block[B], ok bool) {
	var node B
	if structs > maxStructs || addresses > math.MaxInt/16 { // so that no size overflows 64 bits
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

// addressOf is 0 for an empty list.
func addressOf[T any](list []T) uintptr {
	if len(list) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(list)))
}

// freeBlock is what is not in use yet of a block that is being filled.
type freeBlock[B base] struct {
	structs   []B
	list      []uintptr
	addresses []uintptr
	bytes     []byte
}

// take cuts the first elements off.
func take[T any](free *[]T, count int) []T {
	taken := (*free)[:count:count]
	*free = (*free)[count:]
	return taken
}

// newHandle is 0 for nil. ok is false when all handles are in use, which happens on 32-bit targets.
func newHandle(value any) (handle uintptr, ok bool) {
	if value == nil {
		return 0, true
	}
	return callbacks.TryNewHandle(value)
}

// dropHandle does not close the value.
func dropHandle(handle uintptr) {
	if handle != 0 {
		callbacks.DeleteHandle(handle)
	}
}

// dropValue is called by C when the last struct that needs the value is released. A value that owns a struct
// is not closed here: C releases the struct afterwards, so that owners of owners need no recursion.
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

// due moves the struct of an owner out. Returns nil for a closed owner, and without memory after a release here.
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

// callArrayRelease releases our leaf, when it is the last of its block, without the way from Go to C
// and back to Go. It does what fletching_release_array does.
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
	C.fletching_block_free(C.uintptr_t(raw.PrivateData)) // a number, so that cgo checks no pointer
	return true
}

// attach hooks a struct of any producer: the value is dropped after its release.
func attach[B base](target *B, value any) error {
	handle, ok := newHandle(value)
	if !ok {
		return noMemory("attach")
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
		return noMemory("attach")
	}
	return nil
}

// makeShared moves a struct into a share, and leaves one that has a use of it.
func makeShared[B base](source *B) error {
	var code C.int
	switch source := any(source).(type) {
	case *abi.ArrowSchema:
		code = C.fletching_share_schema(cSchema(source))
	case *abi.ArrowArray:
		code = C.fletching_share_array(cArray(source))
	}
	if code != 0 {
		return noMemory("share")
	}
	return nil
}

// takeWithEvent moves a child out: the event of the parent lives until both are released.
func takeWithEvent(parent, child, out *abi.ArrowArray) error {
	if C.fletching_take_with_event(cArray(parent), cArray(child), cArray(out)) != 0 {
		return noMemory("take_child")
	}
	return nil
}

func cSchema(schema *abi.ArrowSchema) *C.struct_ArrowSchema {
	return (*C.struct_ArrowSchema)(unsafe.Pointer(schema))
}

func cArray(array *abi.ArrowArray) *C.struct_ArrowArray {
	return (*C.struct_ArrowArray)(unsafe.Pointer(array))
}
