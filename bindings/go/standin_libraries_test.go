// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// everyError are the errors of all operations, with an event whose handle nothing gets to.
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
	expectCount(t, "what was not taken", releases, 0)
	other.Close()
	return errors
}

func TestStandinMissingLibraryIsNamed(t *testing.T) {
	gpu.InProcess(t, func(t *testing.T) {
		if gpu.Exists("libcuda.so.1") {
			t.Skip("this machine has CUDA")
		}
		handle := gpu.Alloc(8)
		defer gpu.Free(handle)
		*(*uintptr)(gpu.At(handle)) = 0x1000
		array := awaited(t, abi.DeviceCUDA, handle)
		defer array.Close()
		ctx, cancel := context.WithCancel(background) // with one that may end, the current context is asked for
		defer cancel()
		expectCode(t, array.Synchronize(ctx), syscall.ENOENT, "CUDA driver API: cannot load libcuda.so.1")
		for _, err := range everyError(t, abi.DeviceCUDA) {
			expectCode(t, err, syscall.ENOENT, "CUDA driver API: cannot load libcuda.so.1, libcuda.so; hint: ", "cannot open")
		}
	})
}

func TestStandinMissingSymbolIsNamed(t *testing.T) {
	gpu.OnBoth(t, "standin-broken", func(t *testing.T, api *gpu.API) {
		symbol := map[abi.DeviceType]string{abi.DeviceCUDA: "libcuda.so.1 has no cuStreamWaitEvent",
			abi.DeviceROCM: "libamdhip64.so.7 has no hipStreamWaitEvent"}[api.Type]
		for _, err := range everyError(t, api.Type) {
			expectCode(t, err, syscall.ENOSYS, symbol)
		}
	})
}

// A library of that name without the functions, which the loader of the other process finds.
func TestStandinLibfletchingWithoutTheFunction(t *testing.T) {
	gpu.Need(t, "standin/libcuda.so.1")
	folder := t.TempDir()
	succeed(t, os.Symlink(filepath.Join(gpu.Folder(), "standin", "libcuda.so.1"), filepath.Join(folder, "libfletching.so.0.1")))
	t.Setenv("LD_LIBRARY_PATH", folder)
	gpu.InProcess(t, func(t *testing.T) {
		handle := gpu.Alloc(8)
		defer gpu.Free(handle)
		*(*uintptr)(gpu.At(handle)) = 0x1000
		array := awaited(t, abi.DeviceVulkan, handle)
		defer array.Close()
		ready, err := array.ReadyVulkan(fletching.VulkanContext{})
		expectCode(t, err, syscall.ENOSYS, "libfletching.so.0.1 has no FletchingDeviceArrayReadyVulkan; hint: ")
		if ready {
			t.Error("ready with an error")
		}
	})
}

func oneRound(t *testing.T, api *gpu.API) {
	gated := api.NewGated()
	array, _, _ := countedArray(t, api.Type)
	succeed(t, array.ExportWithEvent(streamOf(api, gated.Producer)))
	succeed(t, array.WaitOn(streamOf(api, gated.Consumer)))
	succeed(t, array.WaitOn(streamOf(api, gated.Consumer).With(fletching.ExternalEvent))) // nothing is captured
	succeed(t, array.Synchronize(background))
	expectReady(t, array, true)
	array.Close()
	array, releases, _ := countedArray(t, api.Type)
	succeed(t, array.ReleaseAfter(streamOf(api, gated.Consumer)))
	releases.waitFor(1)
	gated.End()
}

// Only what an operation calls has to be there.
func TestStandinNameless(t *testing.T) {
	gpu.OnCUDA(t, "standin-nameless", oneRound)
}

func TestStandinOldLibraryDoesWhatItCan(t *testing.T) {
	gpu.OnBoth(t, "standin-old", oneRound)
}

func TestStandinOldLibraryHasNoExternalEvent(t *testing.T) {
	gpu.OnCUDA(t, "standin-old", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		array, _, _ := countedArray(t, api.Type)
		api.BeginCapture(gated.Producer)
		err := array.ExportWithEvent(streamOf(api, gated.Producer).With(fletching.ExternalEvent))
		expectCode(t, err, syscall.ENOTSUP, "libcuda.so.1 has no cuEventRecordWithFlags", "CUDA 11.1")
		if array.SyncEvent() != 0 {
			t.Error("there is an event")
		}
		api.DestroyGraph(api.EndCapture(gated.Producer))
		array.Close()
		gated.End()
	})
}

func TestNoRuntimeRecordsEventsOfOtherDevices(t *testing.T) {
	for device, why := range map[abi.DeviceType]string{
		abi.DeviceVulkan: "set by a command buffer",
		abi.DeviceOneAPI: "C++ object",
		abi.DeviceMetal:  "signaled by a command buffer",
		9999:             "on unknown(9999): no runtime",
	} {
		array, releases, _ := countedArray(t, device)
		stream := fletching.NewStream(device, 0)
		expectCode(t, array.ExportWithEvent(stream), syscall.ENOTSUP, "export_with_event", why)
		expectCode(t, array.ReleaseAfter(stream), syscall.ENOTSUP, "release_after", why)
		expectCount(t, "an array", releases, 0)
		array.Close()
	}
}
