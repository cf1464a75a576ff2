// SPDX-License-Identifier: Apache-2.0

package callbacks

// static void look(void* holder) { (void)holder; }
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// maxDepth is the maximum nesting depth, as in package fletching. It stops the walk of a cyclic tree.
const maxDepth = 256

// tree is the interface that schemas and arrays share.
type tree[T any] interface {
	ChildAddresses() []uintptr
	Child(i int) *T
	DictionaryStruct() *T
}

// CheckPinned looks for addresses of unpinned Go memory, which the garbage collector may free while C
// uses it. It walks the struct that object points to, its children and its dictionary, and returns an
// error that names the first such field. It returns nil for a released struct, and an error for a tree
// of more than 256 levels.
//
// Tests and debug builds of exporters should call it before they pass the struct to C. It relies on
// cgo's pointer check: it finds no mistakes if GODEBUG=cgocheck=0 disables that check, and none in
// memory on a goroutine's stack. On 32-bit targets it may mistake an opaque number, such as a handle,
// for an address.
func CheckPinned(object any) error {
	value := reflect.ValueOf(object)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("CheckPinned: wrong type: expected a pointer to a struct, got %T", object)
	}
	return checkStruct(value.Elem().Type().Name(), value, 0)
}

func checkStruct(path string, object reflect.Value, depth int) error {
	if object.IsNil() {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("CheckPinned: nested too deep: expected at most %d levels", maxDepth)
	}
	if known, _ := object.Interface().(interface{ IsReleased() bool }); known != nil && known.IsReleased() {
		return nil
	}
	for i := range object.Elem().NumField() {
		field := object.Elem().Field(i)
		name := path + "." + object.Elem().Type().Field(i).Name
		var problem error
		switch field.Kind() {
		case reflect.Uintptr:
			problem = checkAddress(name, uintptr(field.Uint()))
		case reflect.Struct:
			problem = checkStruct(name, field.Addr(), depth)
		}
		if problem != nil {
			return problem
		}
	}
	switch known := object.Interface().(type) {
	case tree[abi.ArrowSchema]:
		return checkTree(path, known, depth+1)
	case tree[abi.ArrowArray]:
		if buffers, _ := known.(interface{ BufferAddresses() []uintptr }); buffers != nil {
			if problem := checkList(path+".Buffers", buffers.BufferAddresses()); problem != nil {
				return problem
			}
		}
		return checkTree(path, known, depth+1)
	}
	return nil
}

func checkTree[T any](path string, object tree[T], depth int) error {
	addresses := object.ChildAddresses()
	if problem := checkList(path+".Children", addresses); problem != nil {
		return problem
	}
	for i := range addresses {
		child := reflect.ValueOf(object.Child(i))
		if problem := checkStruct(fmt.Sprintf("%s.Children[%d]", path, i), child, depth); problem != nil {
			return problem
		}
	}
	return checkStruct(path+".Dictionary", reflect.ValueOf(object.DictionaryStruct()), depth)
}

func checkList(path string, addresses []uintptr) error {
	for i, address := range addresses {
		if problem := checkAddress(fmt.Sprintf("%s[%d]", path, i), address); problem != nil {
			return problem
		}
	}
	return nil
}

// checkAddress passes Go memory that contains the address to cgo, which panics if the address is not allowed.
func checkAddress(path string, address uintptr) (problem error) {
	if address == 0 {
		return nil
	}
	defer func() {
		if recover() != nil {
			problem = fmt.Errorf("%s: unpinned Go memory: expected C memory or pinned Go memory, "+
				"got %#x; hint: pin it with runtime.Pinner until the release", path, address)
		}
	}()
	holder := &struct{ address unsafe.Pointer }{abi.Pointer(address)}
	C.look(unsafe.Pointer(holder))
	return nil
}
