// SPDX-License-Identifier: Apache-2.0

// Prints the Go names of device types and data-type codes, passing each number through a struct.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/fletching/fletching/bindings/go/abi"
)

func main() {
	for _, argument := range os.Args[1:] {
		kind, digits, _ := strings.Cut(argument, ":")
		number, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			panic(err)
		}
		if kind == "code" {
			dataType := abi.DLDataType{Code: uint8(number)}
			fmt.Println(abi.DLDataTypeCode(dataType.Code))
			continue
		}
		var array abi.ArrowDeviceArray
		array.DeviceType = abi.DeviceType(number)
		fmt.Println(array.DeviceType)
	}
}
