// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package callbacks_test

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// exported pins Go memory until C releases the array.
type exported struct{ pinner runtime.Pinner }

func (e *exported) Release(array *abi.ArrowArray) {
	e.pinner.Unpin()
	callbacks.DeleteHandle(array.PrivateData)
	fmt.Println("released")
}

// Exports Go memory to C as an array. README.md has the same example with a C consumer.
func Example() {
	values := []int32{4, 5, 6}
	buffers := &[2]uintptr{0, uintptr(unsafe.Pointer(&values[0]))} // no validity buffer
	owner := &exported{}
	owner.pinner.Pin(&values[0])
	owner.pinner.Pin(buffers)
	array := abi.ArrowArray{
		Length:      int64(len(values)),
		NBuffers:    2,
		Buffers:     uintptr(unsafe.Pointer(buffers)),
		Release:     callbacks.ArrowArrayReleaseStub(),
		PrivateData: callbacks.NewHandle(owner),
	}

	read := unsafe.Slice((*int32)(abi.Pointer(array.BufferAddresses()[1])), array.Length)
	fmt.Println(read)
	callbacks.ReleaseArrowArray(&array)
	fmt.Println(array.IsReleased())
	// Output:
	// [4 5 6]
	// released
	// true
}
