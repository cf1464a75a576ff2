// SPDX-License-Identifier: Apache-2.0

//go:build fletching_upstream

package upstream

// #include <arrow/c/abi.h>
// #include <dlpack/dlpack.h>
import "C"

import "reflect"

// Structs contains every struct of the headers, keyed by its C name. The types are used only as data, so that any
// spec compiles with them.
var Structs = map[string]reflect.Type{
	"ArrowSchema":                   reflect.TypeFor[C.struct_ArrowSchema](),
	"ArrowArray":                    reflect.TypeFor[C.struct_ArrowArray](),
	"ArrowDeviceArray":              reflect.TypeFor[C.struct_ArrowDeviceArray](),
	"ArrowArrayStream":              reflect.TypeFor[C.struct_ArrowArrayStream](),
	"ArrowDeviceArrayStream":        reflect.TypeFor[C.struct_ArrowDeviceArrayStream](),
	"ArrowAsyncTask":                reflect.TypeFor[C.struct_ArrowAsyncTask](),
	"ArrowAsyncProducer":            reflect.TypeFor[C.struct_ArrowAsyncProducer](),
	"ArrowAsyncDeviceStreamHandler": reflect.TypeFor[C.struct_ArrowAsyncDeviceStreamHandler](),
	"DLPackVersion":                 reflect.TypeFor[C.DLPackVersion](),
	"DLDevice":                      reflect.TypeFor[C.DLDevice](),
	"DLDataType":                    reflect.TypeFor[C.DLDataType](),
	"DLTensor":                      reflect.TypeFor[C.DLTensor](),
	"DLManagedTensor":               reflect.TypeFor[C.DLManagedTensor](),
	"DLManagedTensorVersioned":      reflect.TypeFor[C.DLManagedTensorVersioned](),
	"DLPackExchangeAPIHeader":       reflect.TypeFor[C.DLPackExchangeAPIHeader](),
	"DLPackExchangeAPI":             reflect.TypeFor[C.DLPackExchangeAPI](),
}

// Integers contains every macro with an integer value.
var Integers = map[string]int64{
	"ARROW_FLAG_DICTIONARY_ORDERED":              C.ARROW_FLAG_DICTIONARY_ORDERED,
	"ARROW_FLAG_NULLABLE":                        C.ARROW_FLAG_NULLABLE,
	"ARROW_FLAG_MAP_KEYS_SORTED":                 C.ARROW_FLAG_MAP_KEYS_SORTED,
	"ARROW_DEVICE_CPU":                           C.ARROW_DEVICE_CPU,
	"ARROW_DEVICE_CUDA":                          C.ARROW_DEVICE_CUDA,
	"ARROW_DEVICE_CUDA_HOST":                     C.ARROW_DEVICE_CUDA_HOST,
	"ARROW_DEVICE_OPENCL":                        C.ARROW_DEVICE_OPENCL,
	"ARROW_DEVICE_VULKAN":                        C.ARROW_DEVICE_VULKAN,
	"ARROW_DEVICE_METAL":                         C.ARROW_DEVICE_METAL,
	"ARROW_DEVICE_VPI":                           C.ARROW_DEVICE_VPI,
	"ARROW_DEVICE_ROCM":                          C.ARROW_DEVICE_ROCM,
	"ARROW_DEVICE_ROCM_HOST":                     C.ARROW_DEVICE_ROCM_HOST,
	"ARROW_DEVICE_EXT_DEV":                       C.ARROW_DEVICE_EXT_DEV,
	"ARROW_DEVICE_CUDA_MANAGED":                  C.ARROW_DEVICE_CUDA_MANAGED,
	"ARROW_DEVICE_ONEAPI":                        C.ARROW_DEVICE_ONEAPI,
	"ARROW_DEVICE_WEBGPU":                        C.ARROW_DEVICE_WEBGPU,
	"ARROW_DEVICE_HEXAGON":                       C.ARROW_DEVICE_HEXAGON,
	"DLPACK_MAJOR_VERSION":                       C.DLPACK_MAJOR_VERSION,
	"DLPACK_MINOR_VERSION":                       C.DLPACK_MINOR_VERSION,
	"DLPACK_FLAG_BITMASK_READ_ONLY":              C.DLPACK_FLAG_BITMASK_READ_ONLY,
	"DLPACK_FLAG_BITMASK_IS_COPIED":              C.DLPACK_FLAG_BITMASK_IS_COPIED,
	"DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED": C.DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
}

// Enums contains the enumerators of every enum, keyed by its name.
var Enums = map[string]map[string]int64{
	"DLDeviceType": {
		"kDLCPU":         C.kDLCPU,
		"kDLCUDA":        C.kDLCUDA,
		"kDLCUDAHost":    C.kDLCUDAHost,
		"kDLOpenCL":      C.kDLOpenCL,
		"kDLVulkan":      C.kDLVulkan,
		"kDLMetal":       C.kDLMetal,
		"kDLVPI":         C.kDLVPI,
		"kDLROCM":        C.kDLROCM,
		"kDLROCMHost":    C.kDLROCMHost,
		"kDLExtDev":      C.kDLExtDev,
		"kDLCUDAManaged": C.kDLCUDAManaged,
		"kDLOneAPI":      C.kDLOneAPI,
		"kDLWebGPU":      C.kDLWebGPU,
		"kDLHexagon":     C.kDLHexagon,
		"kDLMAIA":        C.kDLMAIA,
		"kDLTrn":         C.kDLTrn,
	},
	"DLDataTypeCode": {
		"kDLInt":                C.kDLInt,
		"kDLUInt":               C.kDLUInt,
		"kDLFloat":              C.kDLFloat,
		"kDLOpaqueHandle":       C.kDLOpaqueHandle,
		"kDLBfloat":             C.kDLBfloat,
		"kDLComplex":            C.kDLComplex,
		"kDLBool":               C.kDLBool,
		"kDLFloat8_e3m4":        C.kDLFloat8_e3m4,
		"kDLFloat8_e4m3":        C.kDLFloat8_e4m3,
		"kDLFloat8_e4m3b11fnuz": C.kDLFloat8_e4m3b11fnuz,
		"kDLFloat8_e4m3fn":      C.kDLFloat8_e4m3fn,
		"kDLFloat8_e4m3fnuz":    C.kDLFloat8_e4m3fnuz,
		"kDLFloat8_e5m2":        C.kDLFloat8_e5m2,
		"kDLFloat8_e5m2fnuz":    C.kDLFloat8_e5m2fnuz,
		"kDLFloat8_e8m0fnu":     C.kDLFloat8_e8m0fnu,
		"kDLFloat6_e2m3fn":      C.kDLFloat6_e2m3fn,
		"kDLFloat6_e3m2fn":      C.kDLFloat6_e3m2fn,
		"kDLFloat4_e2m1fn":      C.kDLFloat4_e2m1fn,
	},
}

// Texts contains every macro with a string value.
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
