// SPDX-License-Identifier: Apache-2.0

// The floor of the cases of `make bench-go`, hand-written with cgo: one Go object per owner, one C call
// per release and per C allocation. It checks no arguments, does not detect unclosed owners, and keeps
// all pins in one variable.
package main

// #cgo CFLAGS: -O2 -I${SRCDIR}/../../../../cpp/include -I${SRCDIR}/../../../../cpp/bench/c
// #include "native.h"
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/bench/internal/peer"
)

var (
	leaf   = peer.Leaf()
	raw    = new(abi.ArrowDeviceArray)
	values = make([]int64, peer.Rows)
	last   *owned
	pinned *runtime.Pinner
)

// owned is the user's object.
type owned struct{ raw abi.ArrowDeviceArray }

func move(source *abi.ArrowDeviceArray) *owned {
	array := &owned{*source}
	source.Array.Release = 0
	return array
}

func (o *owned) close() { C.floor_release((*C.struct_ArrowArray)(unsafe.Pointer(&o.raw.Array))) }

func importLeaf() {
	*raw = leaf
	last = move(raw)
	last.close()
}

func exportLeaf() {
	pinned = new(runtime.Pinner)
	pinned.Pin(&values[0])
	exported := C.floor_new(peer.Rows, C.uintptr_t(uintptr(unsafe.Pointer(&values[0]))), 1)
	if exported == nil {
		panic("out of memory")
	}
	raw.Array = *(*abi.ArrowArray)(unsafe.Pointer(exported))
	last = move(raw)
	last.close()
}

// held is the user's object: a tensor, or a schema and an array.
type held struct {
	tensor uintptr
	schema abi.ArrowSchema
	array  abi.ArrowDeviceArray
}

var (
	lastTensor   *held
	lastImported *held
)

func tensor() {
	*raw = leaf
	last = move(raw)
	lastTensor = &held{tensor: uintptr(C.floor_to_dlpack((*C.struct_ArrowDeviceArray)(unsafe.Pointer(&last.raw))))}
	lastImported = new(held)
	schema, array := (*C.struct_ArrowSchema)(unsafe.Pointer(&lastImported.schema)), (*C.struct_ArrowDeviceArray)(unsafe.Pointer(&lastImported.array))
	C.floor_from_dlpack(C.uintptr_t(lastTensor.tensor), schema, array)
	C.floor_release_schema(schema)
	C.floor_release(&array.array)
}

//export floor_go_unpin
func floor_go_unpin(C.uintptr_t) { pinned.Unpin() }

func main() {
	peer.Main(map[string]func(){"import": importLeaf, "export": exportLeaf, "tensor": tensor})
}
