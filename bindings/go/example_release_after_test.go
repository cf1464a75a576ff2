// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
)

// sumOnGPU imports an array whose data may still be pending and makes a kernel read it, without
// blocking. launch enqueues the kernel on the CUstream.
func sumOnGPU(address unsafe.Pointer, cuStream uintptr, launch func(values uintptr, length int64) error) error {
	array, err := fletching.ImportDeviceArray(address)
	if err != nil {
		return err
	}
	stream := fletching.NewStream(array.DeviceType(), cuStream)
	if err := array.WaitOn(stream); err != nil {
		array.Close() // no kernel reads it
		return err
	}
	if err := launch(array.Buffer(1), array.Length()); err != nil {
		array.Close()
		return err
	}
	// Close would free the memory under the kernel. ReleaseAfter also takes the array if it returns an error:
	// then it has released the array after the kernel, or leaked it.
	return array.ReleaseAfter(stream)
}

func ExampleDeviceArray_ReleaseAfter() {
	_ = sumOnGPU // a consumer calls it with the address of a struct that a C producer filled
}
