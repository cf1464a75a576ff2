// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "fletching_core.h"
import "C"

import (
	"os"
	"unsafe"
)

// validates reports whether FLETCHING_VALIDATE is set: libfletching then validates the structs that cross the
// boundary of this package.
var validates = os.Getenv("FLETCHING_VALIDATE") != ""

const (
	directionImport = C.FLETCHING_HANDOVER_IMPORT
	directionExport = C.FLETCHING_HANDOVER_EXPORT

	numberSchema       = C.FLETCHING_HANDOVER_SCHEMA
	numberArray        = C.FLETCHING_HANDOVER_ARRAY
	numberDeviceArray  = C.FLETCHING_HANDOVER_DEVICE_ARRAY
	numberStream       = C.FLETCHING_HANDOVER_STREAM
	numberDeviceStream = C.FLETCHING_HANDOVER_DEVICE_STREAM
	numberHandler      = C.FLETCHING_HANDOVER_HANDLER
	numberTensor       = C.FLETCHING_HANDOVER_TENSOR
	numberLegacyTensor = C.FLETCHING_HANDOVER_LEGACY_TENSOR
)

// handOver wraps the struct at the address in place.
func handOver(direction, number int32, address unsafe.Pointer) {
	C.FletchingHandOver(C.int32_t(direction), C.int32_t(number), address)
}

// validated returns the address of a handler or tensor, or of its wrapper.
func validated(direction, number int32, address unsafe.Pointer) unsafe.Pointer {
	if !validates || address == nil {
		return address
	}
	given := address // C gets the address of a copy: the parameter's would put it on the heap in every call
	handOver(direction, number, unsafe.Pointer(&given))
	return given
}

func tensorNumber(isLegacy bool) int32 {
	if isLegacy {
		return numberLegacyTensor
	}
	return numberTensor
}
