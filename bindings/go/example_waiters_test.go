// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// queues waits on the events of a runtime that the package does not support.
type queues struct{ fletching.UnsupportedWaiter }

func (queues) Synchronize(context.Context, fletching.SyncEvent) error { return nil }

func (queues) WaitOn(event fletching.SyncEvent, stream fletching.Stream) error {
	fmt.Println("queue", stream.Handle(), "of", stream.DeviceType(), "waits")
	return nil
}

func (queues) Ready(fletching.SyncEvent) (bool, error) { return true, nil }

func ExampleRegisterWaiter() {
	if err := fletching.RegisterWaiter(abi.DeviceOneAPI, queues{}); err != nil {
		panic(err)
	}
	defer fletching.UnregisterWaiter(abi.DeviceOneAPI)
	builder := fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0, 4096}}
	array := must(builder.BuildOn(abi.DeviceOneAPI, 0, 8192, nil))
	defer array.Close()
	fmt.Println(array.Synchronize(context.Background()), must(array.Ready()))
	queue := fletching.NewStream(abi.DeviceOneAPI, 7)
	fmt.Println(array.WaitOn(queue))
	// Output:
	// <nil> true
	// queue 7 of oneapi waits
	// <nil>
}

// Makes a stream that is captured into a CUDA graph wait at each launch of the graph.
func ExampleStream_With() {
	capture := func(array *fletching.DeviceArray, cuStream uintptr) error {
		return array.WaitOn(fletching.NewStream(abi.DeviceCUDA, cuStream).With(fletching.ExternalEvent))
	}
	_ = capture
}

// Uses the legacy default stream of device 1, independent of the array's device.
func ExampleStream_OnDevice() {
	wait := func(array *fletching.DeviceArray) error {
		return array.WaitOn(fletching.NewStream(abi.DeviceCUDA, 0).OnDevice(1))
	}
	_ = wait
}

func ExampleDeviceArray_SynchronizeVulkan() {
	wait := func(ctx context.Context, array *fletching.DeviceArray, device, producer, queue, commandBuffer uintptr) error {
		vulkan := fletching.VulkanContext{Device: device, ProducerQueue: producer, Queue: queue}
		if commandBuffer != 0 {
			return array.WaitOnVulkan(vulkan, commandBuffer)
		}
		if ready, err := array.ReadyVulkan(vulkan); ready || err != nil {
			return err
		}
		return array.SynchronizeVulkan(ctx, vulkan)
	}
	_ = wait
}

// Counts the pending releases before the process exits.
func ExamplePendingReleases() {
	fmt.Println(fletching.PendingReleases().Pending >= 0)
	// Output: true
}
