// SPDX-License-Identifier: Apache-2.0

// Prints how Go names device types: each number goes through a device array.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/fletching/fletching/bindings/go/abi"
)

func main() {
	for _, argument := range os.Args[1:] {
		number, err := strconv.ParseInt(argument, 10, 32)
		if err != nil {
			panic(err)
		}
		var array abi.ArrowDeviceArray
		array.DeviceType = abi.DeviceType(number)
		fmt.Println(array.DeviceType)
	}
}
