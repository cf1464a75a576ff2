// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"fmt"

	"github.com/fletching/fletching/bindings/go/abi"
)

func Example() {
	var array abi.ArrowDeviceArray // a real program gets it from C
	array.DeviceType = abi.DeviceCUDAHost
	array.DeviceID = 0

	if device, known := array.DeviceType.Info(); known {
		fmt.Println(array.DeviceType, "has events of type", device.EventType)
	}
	if array.IsReleased() {
		fmt.Println("the array is released")
	}
	fmt.Println(abi.DeviceType(1000)) // an unassigned number
	// Output:
	// cuda_host has events of type cudaEvent_t*
	// the array is released
	// unknown(1000)
}
