// SPDX-License-Identifier: Apache-2.0

// The floor of the cases of `make bench-go`, hand-written with cgo: one object of Go for what the user
// holds, one call of C for each release and each allocation of C. It checks nothing, notices no owner
// that are not closed, and keeps what is pinned in one variable.
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

// held belongs to the user: a tensor, or the schema and array of one.
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
