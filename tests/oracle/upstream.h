/* The tables of the oracle, written by hand from upstream's headers alone.
 *
 * They contain only names, kinds and types; the compiler adds sizes, offsets and values. A type
 * that differs from upstream's does not compile (asserted in tables.c and calls.c).
 *
 * To add a struct: one row in STRUCTS (after the structs that it embeds), one FIELDS_ list, and one
 * ARGUMENTS_ line per callback.
 */
#ifndef FLETCHING_TESTS_ORACLE_UPSTREAM_H
#define FLETCHING_TESTS_ORACLE_UPSTREAM_H

#include <arrow/c/abi.h>
#include <dlpack/dlpack.h>

/* Typedefs, so that a list can name structs with and without a tag in the same way. */
typedef struct ArrowSchema ArrowSchema;
typedef struct ArrowArray ArrowArray;
typedef struct ArrowDeviceArray ArrowDeviceArray;
typedef struct ArrowArrayStream ArrowArrayStream;
typedef struct ArrowDeviceArrayStream ArrowDeviceArrayStream;
typedef struct ArrowAsyncTask ArrowAsyncTask;
typedef struct ArrowAsyncProducer ArrowAsyncProducer;
typedef struct ArrowAsyncDeviceStreamHandler ArrowAsyncDeviceStreamHandler;

#define STRUCTS(X)                 \
  X(ArrowSchema)                   \
  X(ArrowArray)                    \
  X(ArrowDeviceArray)              \
  X(ArrowArrayStream)              \
  X(ArrowDeviceArrayStream)        \
  X(ArrowAsyncTask)                \
  X(ArrowAsyncProducer)            \
  X(ArrowAsyncDeviceStreamHandler) \
  X(DLPackVersion)                 \
  X(DLDevice)                      \
  X(DLDataType)                    \
  X(DLTensor)                      \
  X(DLManagedTensor)               \
  X(DLManagedTensorVersioned)      \
  X(DLPackExchangeAPIHeader)       \
  X(DLPackExchangeAPI)

/* X(S, kind, field, type). Kinds: INTEGER, INTEGERS (an array; type is the element's), POINTER,
 * STRUCT (embedded; type is a name from STRUCTS), CALLBACK (type is the result: VOID, CODE or
 * TEXT). */

#define FIELDS_ArrowSchema(X, S)          \
  X(S, POINTER, format, const char*)      \
  X(S, POINTER, name, const char*)        \
  X(S, POINTER, metadata, const char*)    \
  X(S, INTEGER, flags, int64_t)           \
  X(S, INTEGER, n_children, int64_t)      \
  X(S, POINTER, children, ArrowSchema**)  \
  X(S, POINTER, dictionary, ArrowSchema*) \
  X(S, CALLBACK, release, VOID)           \
  X(S, POINTER, private_data, void*)

#define FIELDS_ArrowArray(X, S)          \
  X(S, INTEGER, length, int64_t)         \
  X(S, INTEGER, null_count, int64_t)     \
  X(S, INTEGER, offset, int64_t)         \
  X(S, INTEGER, n_buffers, int64_t)      \
  X(S, INTEGER, n_children, int64_t)     \
  X(S, POINTER, buffers, const void**)   \
  X(S, POINTER, children, ArrowArray**)  \
  X(S, POINTER, dictionary, ArrowArray*) \
  X(S, CALLBACK, release, VOID)          \
  X(S, POINTER, private_data, void*)

#define FIELDS_ArrowDeviceArray(X, S)         \
  X(S, STRUCT, array, ArrowArray)             \
  X(S, INTEGER, device_id, int64_t)           \
  X(S, INTEGER, device_type, ArrowDeviceType) \
  X(S, POINTER, sync_event, void*)            \
  X(S, INTEGERS, reserved, int64_t)

#define FIELDS_ArrowArrayStream(X, S)  \
  X(S, CALLBACK, get_schema, CODE)     \
  X(S, CALLBACK, get_next, CODE)       \
  X(S, CALLBACK, get_last_error, TEXT) \
  X(S, CALLBACK, release, VOID)        \
  X(S, POINTER, private_data, void*)

#define FIELDS_ArrowDeviceArrayStream(X, S)   \
  X(S, INTEGER, device_type, ArrowDeviceType) \
  X(S, CALLBACK, get_schema, CODE)            \
  X(S, CALLBACK, get_next, CODE)              \
  X(S, CALLBACK, get_last_error, TEXT)        \
  X(S, CALLBACK, release, VOID)               \
  X(S, POINTER, private_data, void*)

#define FIELDS_ArrowAsyncTask(X, S)  \
  X(S, CALLBACK, extract_data, CODE) \
  X(S, POINTER, private_data, void*)

#define FIELDS_ArrowAsyncProducer(X, S)           \
  X(S, INTEGER, device_type, ArrowDeviceType)     \
  X(S, CALLBACK, request, VOID)                   \
  X(S, CALLBACK, cancel, VOID)                    \
  X(S, POINTER, additional_metadata, const char*) \
  X(S, POINTER, private_data, void*)

#define FIELDS_ArrowAsyncDeviceStreamHandler(X, S) \
  X(S, CALLBACK, on_schema, CODE)                  \
  X(S, CALLBACK, on_next_task, CODE)               \
  X(S, CALLBACK, on_error, VOID)                   \
  X(S, CALLBACK, release, VOID)                    \
  X(S, POINTER, producer, ArrowAsyncProducer*)     \
  X(S, POINTER, private_data, void*)

#define FIELDS_DLPackVersion(X, S) \
  X(S, INTEGER, major, uint32_t)   \
  X(S, INTEGER, minor, uint32_t)

#define FIELDS_DLDevice(X, S)              \
  X(S, INTEGER, device_type, DLDeviceType) \
  X(S, INTEGER, device_id, int32_t)

#define FIELDS_DLDataType(X, S) \
  X(S, INTEGER, code, uint8_t)  \
  X(S, INTEGER, bits, uint8_t)  \
  X(S, INTEGER, lanes, uint16_t)

#define FIELDS_DLTensor(X, S)      \
  X(S, POINTER, data, void*)       \
  X(S, STRUCT, device, DLDevice)   \
  X(S, INTEGER, ndim, int32_t)     \
  X(S, STRUCT, dtype, DLDataType)  \
  X(S, POINTER, shape, int64_t*)   \
  X(S, POINTER, strides, int64_t*) \
  X(S, INTEGER, byte_offset, uint64_t)

#define FIELDS_DLManagedTensor(X, S) \
  X(S, STRUCT, dl_tensor, DLTensor)  \
  X(S, POINTER, manager_ctx, void*)  \
  X(S, CALLBACK, deleter, VOID)

#define FIELDS_DLManagedTensorVersioned(X, S) \
  X(S, STRUCT, version, DLPackVersion)        \
  X(S, POINTER, manager_ctx, void*)           \
  X(S, CALLBACK, deleter, VOID)               \
  X(S, INTEGER, flags, uint64_t)              \
  X(S, STRUCT, dl_tensor, DLTensor)

#define FIELDS_DLPackExchangeAPIHeader(X, S) \
  X(S, STRUCT, version, DLPackVersion)       \
  X(S, POINTER, prev_api, DLPackExchangeAPIHeader*)

#define FIELDS_DLPackExchangeAPI(X, S)                        \
  X(S, STRUCT, header, DLPackExchangeAPIHeader)               \
  X(S, CALLBACK, managed_tensor_allocator, CODE)              \
  X(S, CALLBACK, managed_tensor_from_py_object_no_sync, CODE) \
  X(S, CALLBACK, managed_tensor_to_py_object_no_sync, CODE)   \
  X(S, CALLBACK, dltensor_from_py_object_no_sync, CODE)       \
  X(S, CALLBACK, current_work_stream, CODE)

/* F(kind, 0, name, type) for the first argument, A(kind, index, name, type) for the others.
 * Kinds: SELF (pointer to the struct around the callback), OBJECT (any other pointer to data), TEXT
 * (const char*), FUNCTION (a function pointer), CODE (int, or an enum or integer of that width),
 * COUNT (int64_t). */

#define ARGUMENTS_ArrowSchema_release(F, A) F(SELF, 0, self, ArrowSchema*)
#define ARGUMENTS_ArrowArray_release(F, A) F(SELF, 0, self, ArrowArray*)

#define ARGUMENTS_ArrowArrayStream_get_schema(F, A) \
  F(SELF, 0, self, ArrowArrayStream*) A(OBJECT, 1, out, ArrowSchema*)
#define ARGUMENTS_ArrowArrayStream_get_next(F, A) \
  F(SELF, 0, self, ArrowArrayStream*) A(OBJECT, 1, out, ArrowArray*)
#define ARGUMENTS_ArrowArrayStream_get_last_error(F, A) F(SELF, 0, self, ArrowArrayStream*)
#define ARGUMENTS_ArrowArrayStream_release(F, A) F(SELF, 0, self, ArrowArrayStream*)

#define ARGUMENTS_ArrowDeviceArrayStream_get_schema(F, A) \
  F(SELF, 0, self, ArrowDeviceArrayStream*) A(OBJECT, 1, out, ArrowSchema*)
#define ARGUMENTS_ArrowDeviceArrayStream_get_next(F, A) \
  F(SELF, 0, self, ArrowDeviceArrayStream*) A(OBJECT, 1, out, ArrowDeviceArray*)
#define ARGUMENTS_ArrowDeviceArrayStream_get_last_error(F, A) \
  F(SELF, 0, self, ArrowDeviceArrayStream*)
#define ARGUMENTS_ArrowDeviceArrayStream_release(F, A) F(SELF, 0, self, ArrowDeviceArrayStream*)

#define ARGUMENTS_ArrowAsyncTask_extract_data(F, A) \
  F(SELF, 0, self, ArrowAsyncTask*) A(OBJECT, 1, out, ArrowDeviceArray*)

#define ARGUMENTS_ArrowAsyncProducer_request(F, A) \
  F(SELF, 0, self, ArrowAsyncProducer*) A(COUNT, 1, n, int64_t)
#define ARGUMENTS_ArrowAsyncProducer_cancel(F, A) F(SELF, 0, self, ArrowAsyncProducer*)

#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_on_schema(F, A) \
  F(SELF, 0, self, ArrowAsyncDeviceStreamHandler*)              \
  A(OBJECT, 1, stream_schema, ArrowSchema*)
#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_on_next_task(F, A) \
  F(SELF, 0, self, ArrowAsyncDeviceStreamHandler*)                 \
  A(OBJECT, 1, task, ArrowAsyncTask*)                              \
  A(TEXT, 2, metadata, const char*)
#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_on_error(F, A) \
  F(SELF, 0, self, ArrowAsyncDeviceStreamHandler*)             \
  A(CODE, 1, code, int)                                        \
  A(TEXT, 2, message, const char*)                             \
  A(TEXT, 3, metadata, const char*)
#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_release(F, A) \
  F(SELF, 0, self, ArrowAsyncDeviceStreamHandler*)

#define ARGUMENTS_DLManagedTensor_deleter(F, A) F(SELF, 0, self, DLManagedTensor*)
#define ARGUMENTS_DLManagedTensorVersioned_deleter(F, A) F(SELF, 0, self, DLManagedTensorVersioned*)

typedef void SetErrorFunction(void* error_ctx, const char* kind, const char* message);
#define ARGUMENTS_DLPackExchangeAPI_managed_tensor_allocator(F, A) \
  F(OBJECT, 0, prototype, DLTensor*)                               \
  A(OBJECT, 1, out, DLManagedTensorVersioned**)                    \
  A(OBJECT, 2, error_ctx, void*)                                   \
  A(FUNCTION, 3, set_error, SetErrorFunction*)
#define ARGUMENTS_DLPackExchangeAPI_managed_tensor_from_py_object_no_sync(F, A) \
  F(OBJECT, 0, py_object, void*)                                                \
  A(OBJECT, 1, out, DLManagedTensorVersioned**)
#define ARGUMENTS_DLPackExchangeAPI_managed_tensor_to_py_object_no_sync(F, A) \
  F(OBJECT, 0, tensor, DLManagedTensorVersioned*)                             \
  A(OBJECT, 1, out_py_object, void**)
#define ARGUMENTS_DLPackExchangeAPI_dltensor_from_py_object_no_sync(F, A) \
  F(OBJECT, 0, py_object, void*)                                          \
  A(OBJECT, 1, out, DLTensor*)
#define ARGUMENTS_DLPackExchangeAPI_current_work_stream(F, A) \
  F(CODE, 0, device_type, DLDeviceType)                       \
  A(CODE, 1, device_id, int32_t)                              \
  A(OBJECT, 2, out_current_stream, void**)

/* Integer macros. */
#define CONSTANTS(X)               \
  X(ARROW_FLAG_DICTIONARY_ORDERED) \
  X(ARROW_FLAG_NULLABLE)           \
  X(ARROW_FLAG_MAP_KEYS_SORTED)    \
  X(ARROW_DEVICE_CPU)              \
  X(ARROW_DEVICE_CUDA)             \
  X(ARROW_DEVICE_CUDA_HOST)        \
  X(ARROW_DEVICE_OPENCL)           \
  X(ARROW_DEVICE_VULKAN)           \
  X(ARROW_DEVICE_METAL)            \
  X(ARROW_DEVICE_VPI)              \
  X(ARROW_DEVICE_ROCM)             \
  X(ARROW_DEVICE_ROCM_HOST)        \
  X(ARROW_DEVICE_EXT_DEV)          \
  X(ARROW_DEVICE_CUDA_MANAGED)     \
  X(ARROW_DEVICE_ONEAPI)           \
  X(ARROW_DEVICE_WEBGPU)           \
  X(ARROW_DEVICE_HEXAGON)          \
  X(DLPACK_MAJOR_VERSION)          \
  X(DLPACK_MINOR_VERSION)          \
  X(DLPACK_FLAG_BITMASK_READ_ONLY) \
  X(DLPACK_FLAG_BITMASK_IS_COPIED) \
  X(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)

/* X(enumerator), one list per enum. */
#define ENUMERATORS_DLDeviceType(X) \
  X(kDLCPU)                         \
  X(kDLCUDA)                        \
  X(kDLCUDAHost)                    \
  X(kDLOpenCL)                      \
  X(kDLVulkan)                      \
  X(kDLMetal)                       \
  X(kDLVPI)                         \
  X(kDLROCM)                        \
  X(kDLROCMHost)                    \
  X(kDLExtDev)                      \
  X(kDLCUDAManaged)                 \
  X(kDLOneAPI)                      \
  X(kDLWebGPU)                      \
  X(kDLHexagon)                     \
  X(kDLMAIA)                        \
  X(kDLTrn)

#define ENUMERATORS_DLDataTypeCode(X) \
  X(kDLInt)                           \
  X(kDLUInt)                          \
  X(kDLFloat)                         \
  X(kDLOpaqueHandle)                  \
  X(kDLBfloat)                        \
  X(kDLComplex)                       \
  X(kDLBool)                          \
  X(kDLFloat8_e3m4)                   \
  X(kDLFloat8_e4m3)                   \
  X(kDLFloat8_e4m3b11fnuz)            \
  X(kDLFloat8_e4m3fn)                 \
  X(kDLFloat8_e4m3fnuz)               \
  X(kDLFloat8_e5m2)                   \
  X(kDLFloat8_e5m2fnuz)               \
  X(kDLFloat8_e8m0fnu)                \
  X(kDLFloat6_e2m3fn)                 \
  X(kDLFloat6_e3m2fn)                 \
  X(kDLFloat4_e2m1fn)

#define ENUMS(X)  \
  X(DLDeviceType) \
  X(DLDataTypeCode)

/* The function type of each callback: ArrowSchema_release and so on. */
#define RESULT_VOID void
#define RESULT_CODE int
#define RESULT_TEXT const char*
#define DECLARE_FIRST(kind, index, name, type) type name
#define DECLARE(kind, index, name, type) , type name
#define SIGNATURE_INTEGER(S, field, type)
#define SIGNATURE_INTEGERS(S, field, type)
#define SIGNATURE_POINTER(S, field, type)
#define SIGNATURE_STRUCT(S, field, type)
#define SIGNATURE_CALLBACK(S, field, result) \
  typedef RESULT_##result S##_##field(ARGUMENTS_##S##_##field(DECLARE_FIRST, DECLARE));
#define SIGNATURE(S, kind, field, type) SIGNATURE_##kind(S, field, type)
#define SIGNATURES(S) FIELDS_##S(SIGNATURE, S)

STRUCTS(SIGNATURES)

#endif /* FLETCHING_TESTS_ORACLE_UPSTREAM_H */
