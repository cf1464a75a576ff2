// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// exportFromGPU hands on memory of a GPU that a kernel on the CUstream has yet to fill. The owner's Close
// frees it, after the last release.
func exportFromGPU(memory uintptr, length int64, owner any, device abi.DeviceType, cuStream uintptr, out unsafe.Pointer) error {
	builder := fletching.ArrayBuilder{Length: length, Buffers: []uintptr{0, memory}}
	array, err := builder.BuildOn(device, 0, 0, owner)
	if err != nil {
		return err
	}
	defer array.Close() // which does nothing after Export
	if err := array.ExportWithEvent(fletching.NewStream(device, cuStream)); err != nil {
		return err
	}
	return array.Export(out)
}

func ExampleDeviceArray_ExportWithEvent() {
	_ = exportFromGPU // called with the address of an ArrowDeviceArray of a consumer in C
}
