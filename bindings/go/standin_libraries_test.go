// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// everyError returns the errors of all operations, with an event whose handle is never used.
func everyError(t *testing.T, deviceType abi.DeviceType) []error {
	handle := gpu.Alloc(8)
	defer gpu.Free(handle)
	*(*uintptr)(gpu.At(handle)) = 0x1000
	array := awaited(t, deviceType, handle)
	defer array.Close()
	other, releases, _ := countedArray(t, deviceType)
	stream := fletching.NewStream(deviceType, 0)
	_, err := array.Ready()
	errors := []error{array.Synchronize(background), array.WaitOn(stream), err, other.ExportWithEvent(stream),
		other.ReleaseAfter(stream)}
	expectCount(t, "what is leaked", releases, 0)
	if !other.IsReleased() {
		t.Error("ReleaseAfter has not taken the array")
	}
	return errors
}

func TestStandinMissingLibraryErrorNamesLibrary(t *testing.T) {
	gpu.InProcess(t, func(t *testing.T) {
		if gpu.Exists("libcuda.so.1") {
			t.Skip("this machine has CUDA")
		}
		handle := gpu.Alloc(8)
		defer gpu.Free(handle)
		*(*uintptr)(gpu.At(handle)) = 0x1000
		array := awaited(t, abi.DeviceCUDA, handle)
		defer array.Close()
		ctx, cancel := context.WithCancel(background) // with a context that may end, the current context is queried
		defer cancel()
		expectCode(t, array.Synchronize(ctx), syscall.ENOENT, "CUDA driver API: cannot load libcuda.so.1")
		for _, err := range everyError(t, abi.DeviceCUDA) {
			expectCode(t, err, syscall.ENOENT, "CUDA driver API: cannot load libcuda.so.1, libcuda.so; hint: ", "cannot open")
		}
	})
}

func TestExportWithEventRejectsDevicesWithoutRuntime(t *testing.T) {
	for device, why := range map[abi.DeviceType]string{
		abi.DeviceVulkan: "set by a command buffer",
		abi.DeviceOneAPI: "C++ object",
		abi.DeviceMetal:  "signaled by a command buffer",
		9999:             "device type unknown(9999): no runtime",
	} {
		array, releases, _ := countedArray(t, device)
		stream := fletching.NewStream(device, 0)
		expectCode(t, array.ExportWithEvent(stream), syscall.ENOTSUP, "ExportWithEvent", why)
		array.Close()
		expectCount(t, "an array", releases, 1)
	}
}

// Without a runtime and a stream there is no work to wait for.
func TestReleaseAfterReleasesHostArrayImmediately(t *testing.T) {
	array, releases, _ := countedArray(t, abi.DeviceCPU)
	succeed(t, array.ReleaseAfter(fletching.NewStream(abi.DeviceCPU, 0)))
	expectCount(t, "an array", releases, 1)
}
