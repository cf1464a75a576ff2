// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// A consumer's kernels read the buffers of an array that is not ready yet.
func ExampleDeviceArray_ReleaseAfter() {
	read := func(array *fletching.DeviceArray, cuStream uintptr, launch func(buffer uintptr) error) error {
		stream := fletching.NewStream(array.DeviceType(), cuStream)
		if err := array.WaitOn(stream); err != nil {
			array.Close() // nothing reads it
			return err
		}
		if err := launch(array.Buffer(1)); err != nil {
			array.Close()
			return err
		}
		// Close would free the memory under the kernel. After an error, close it when the stream has
		// passed.
		return array.ReleaseAfter(stream)
	}
	_ = read
}

// A producer hands on what a kernel has yet to fill.
func ExampleDeviceArray_ExportWithEvent() {
	export := func(array *fletching.DeviceArray, cuStream uintptr, destination unsafe.Pointer) error {
		if err := array.ExportWithEvent(fletching.NewStream(abi.DeviceCUDA, cuStream)); err != nil {
			return err
		}
		return array.Export(destination)
	}
	_ = export
}

// The host waits, but no longer than a request lives.
func ExampleDeviceArray_Synchronize() {
	copyOut := func(ctx context.Context, array *fletching.DeviceArray) error {
		defer array.Close()
		if err := array.Synchronize(ctx); err != nil {
			return fmt.Errorf("waiting for the data: %w", err)
		}
		return nil // and copy what is at array.Buffer(1)
	}
	_ = copyOut
}
