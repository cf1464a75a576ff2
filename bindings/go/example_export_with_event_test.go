// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// exportFromGPU exports GPU memory that a kernel on the CUstream has yet to fill. The owner's Close
// frees it, after the last release.
func exportFromGPU(memory uintptr, length int64, owner any, device abi.DeviceType, cuStream uintptr, out unsafe.Pointer) error {
	builder := fletching.ArrayBuilder{Length: length, Buffers: []uintptr{0, memory}}
	array, err := builder.BuildOn(device, 0, 0, owner)
	if err != nil {
		return err
	}
	defer array.Close() // no effect after Export
	if err := array.ExportWithEvent(fletching.NewStream(device, cuStream)); err != nil {
		return err
	}
	return array.Export(out)
}

func ExampleDeviceArray_ExportWithEvent() {
	_ = exportFromGPU // called with the address of a C consumer's ArrowDeviceArray
}
