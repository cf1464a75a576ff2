// SPDX-License-Identifier: Apache-2.0

//go:build fletching_upstream

package upstream

// #include <arrow/c/abi.h>
import "C"

import "reflect"

// Structs holds every struct of the header, by its name in C. The types serve as data only, so that
// any spec compiles beside them.
var Structs = map[string]reflect.Type{
	"ArrowSchema":                   reflect.TypeFor[C.struct_ArrowSchema](),
	"ArrowArray":                    reflect.TypeFor[C.struct_ArrowArray](),
	"ArrowDeviceArray":              reflect.TypeFor[C.struct_ArrowDeviceArray](),
	"ArrowArrayStream":              reflect.TypeFor[C.struct_ArrowArrayStream](),
	"ArrowDeviceArrayStream":        reflect.TypeFor[C.struct_ArrowDeviceArrayStream](),
	"ArrowAsyncTask":                reflect.TypeFor[C.struct_ArrowAsyncTask](),
	"ArrowAsyncProducer":            reflect.TypeFor[C.struct_ArrowAsyncProducer](),
	"ArrowAsyncDeviceStreamHandler": reflect.TypeFor[C.struct_ArrowAsyncDeviceStreamHandler](),
}

// Integers holds every macro with an integer value.
var Integers = map[string]int64{
	"ARROW_FLAG_DICTIONARY_ORDERED": C.ARROW_FLAG_DICTIONARY_ORDERED,
	"ARROW_FLAG_NULLABLE":           C.ARROW_FLAG_NULLABLE,
	"ARROW_FLAG_MAP_KEYS_SORTED":    C.ARROW_FLAG_MAP_KEYS_SORTED,
	"ARROW_DEVICE_CPU":              C.ARROW_DEVICE_CPU,
	"ARROW_DEVICE_CUDA":             C.ARROW_DEVICE_CUDA,
	"ARROW_DEVICE_CUDA_HOST":        C.ARROW_DEVICE_CUDA_HOST,
	"ARROW_DEVICE_OPENCL":           C.ARROW_DEVICE_OPENCL,
	"ARROW_DEVICE_VULKAN":           C.ARROW_DEVICE_VULKAN,
	"ARROW_DEVICE_METAL":            C.ARROW_DEVICE_METAL,
	"ARROW_DEVICE_VPI":              C.ARROW_DEVICE_VPI,
	"ARROW_DEVICE_ROCM":             C.ARROW_DEVICE_ROCM,
	"ARROW_DEVICE_ROCM_HOST":        C.ARROW_DEVICE_ROCM_HOST,
	"ARROW_DEVICE_EXT_DEV":          C.ARROW_DEVICE_EXT_DEV,
	"ARROW_DEVICE_CUDA_MANAGED":     C.ARROW_DEVICE_CUDA_MANAGED,
	"ARROW_DEVICE_ONEAPI":           C.ARROW_DEVICE_ONEAPI,
	"ARROW_DEVICE_WEBGPU":           C.ARROW_DEVICE_WEBGPU,
	"ARROW_DEVICE_HEXAGON":          C.ARROW_DEVICE_HEXAGON,
}

// Texts holds every macro with a text as its value.
var Texts = map[string]string{
	"ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT":       C.ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT,
	"ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE": C.ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE,
	"ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT":           C.ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT,
	"ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE":     C.ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE,
	"ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT":           C.ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT,
	"ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE":     C.ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE,
	"ARROW_STATISTICS_KEY_MAX_VALUE_EXACT":                C.ARROW_STATISTICS_KEY_MAX_VALUE_EXACT,
	"ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE":          C.ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE,
	"ARROW_STATISTICS_KEY_MIN_VALUE_EXACT":                C.ARROW_STATISTICS_KEY_MIN_VALUE_EXACT,
	"ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE":          C.ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE,
	"ARROW_STATISTICS_KEY_NULL_COUNT_EXACT":               C.ARROW_STATISTICS_KEY_NULL_COUNT_EXACT,
	"ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE":         C.ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE,
	"ARROW_STATISTICS_KEY_ROW_COUNT_EXACT":                C.ARROW_STATISTICS_KEY_ROW_COUNT_EXACT,
	"ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE":          C.ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE,
}
