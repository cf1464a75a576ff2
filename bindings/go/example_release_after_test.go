// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
)

// sumOnGPU imports an array, whose data may not be there yet, and lets a kernel read it. It blocks
// nowhere. Launch enqueues the kernel on the CUstream.
func sumOnGPU(address unsafe.Pointer, cuStream uintptr, launch func(values uintptr, length int64) error) error {
	array, err := fletching.ImportDeviceArray(address)
	if err != nil {
		return err
	}
	stream := fletching.NewStream(array.DeviceType(), cuStream)
	if err := array.WaitOn(stream); err != nil {
		array.Close() // nothing reads it
		return err
	}
	if err := launch(array.Buffer(1), array.Length()); err != nil {
		array.Close()
		return err
	}
	// Close would free the memory under the kernel. After an error here the array is not closed: a real
	// program keeps it, and closes it when the stream has passed.
	return array.ReleaseAfter(stream)
}

func ExampleDeviceArray_ReleaseAfter() {
	_ = sumOnGPU // called with the address that a producer in C has filled
}
