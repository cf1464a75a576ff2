/* The tables of the oracle, written by hand from upstream's header and from nothing else.
 *
 * Only names, kinds and types stand here; sizes, offsets and values are the compiler's answer. A
 * type that is not upstream's does not compile (tables.c and calls.c assert it).
 *
 * To add a struct: one row in STRUCTS (after the structs that it embeds), one FIELDS_ list, and one
 * ARGUMENTS_ line per callback.
 */
#ifndef FLETCHING_TESTS_ORACLE_UPSTREAM_H
#define FLETCHING_TESTS_ORACLE_UPSTREAM_H

#include <arrow/c/abi.h>

/* Plain names, so that a list can name a struct with a tag and a typedef without one in the same
 * way. */
typedef struct ArrowSchema ArrowSchema;
typedef struct ArrowArray ArrowArray;
typedef struct ArrowDeviceArray ArrowDeviceArray;
typedef struct ArrowArrayStream ArrowArrayStream;
typedef struct ArrowDeviceArrayStream ArrowDeviceArrayStream;
typedef struct ArrowAsyncTask ArrowAsyncTask;
typedef struct ArrowAsyncProducer ArrowAsyncProducer;
typedef struct ArrowAsyncDeviceStreamHandler ArrowAsyncDeviceStreamHandler;

#define STRUCTS(X)          \
  X(ArrowSchema)            \
  X(ArrowArray)             \
  X(ArrowDeviceArray)       \
  X(ArrowArrayStream)       \
  X(ArrowDeviceArrayStream) \
  X(ArrowAsyncTask)         \
  X(ArrowAsyncProducer)     \
  X(ArrowAsyncDeviceStreamHandler)

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

/* A(kind, index, name, type), without argument 0, which is always S* self.
 * Kinds: OBJECT (pointer to a struct), TEXT (const char*), CODE (int), COUNT (int64_t). */

#define ARGUMENTS_ArrowSchema_release(A)
#define ARGUMENTS_ArrowArray_release(A)

#define ARGUMENTS_ArrowArrayStream_get_schema(A) A(OBJECT, 1, out, ArrowSchema*)
#define ARGUMENTS_ArrowArrayStream_get_next(A) A(OBJECT, 1, out, ArrowArray*)
#define ARGUMENTS_ArrowArrayStream_get_last_error(A)
#define ARGUMENTS_ArrowArrayStream_release(A)

#define ARGUMENTS_ArrowDeviceArrayStream_get_schema(A) A(OBJECT, 1, out, ArrowSchema*)
#define ARGUMENTS_ArrowDeviceArrayStream_get_next(A) A(OBJECT, 1, out, ArrowDeviceArray*)
#define ARGUMENTS_ArrowDeviceArrayStream_get_last_error(A)
#define ARGUMENTS_ArrowDeviceArrayStream_release(A)

#define ARGUMENTS_ArrowAsyncTask_extract_data(A) A(OBJECT, 1, out, ArrowDeviceArray*)

#define ARGUMENTS_ArrowAsyncProducer_request(A) A(COUNT, 1, n, int64_t)
#define ARGUMENTS_ArrowAsyncProducer_cancel(A)

#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_on_schema(A) \
  A(OBJECT, 1, stream_schema, ArrowSchema*)
#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_on_next_task(A) \
  A(OBJECT, 1, task, ArrowAsyncTask*)                           \
  A(TEXT, 2, metadata, const char*)
#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_on_error(A) \
  A(CODE, 1, code, int)                                     \
  A(TEXT, 2, message, const char*)                          \
  A(TEXT, 3, metadata, const char*)
#define ARGUMENTS_ArrowAsyncDeviceStreamHandler_release(A)

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
  X(ARROW_DEVICE_HEXAGON)

/* The function type of each callback: ArrowSchema_release and so on. */
#define RESULT_VOID void
#define RESULT_CODE int
#define RESULT_TEXT const char*
#define DECLARE(kind, index, name, type) , type name
#define SIGNATURE_INTEGER(S, field, type)
#define SIGNATURE_INTEGERS(S, field, type)
#define SIGNATURE_POINTER(S, field, type)
#define SIGNATURE_STRUCT(S, field, type)
#define SIGNATURE_CALLBACK(S, field, result) \
  typedef RESULT_##result S##_##field(S* self ARGUMENTS_##S##_##field(DECLARE));
#define SIGNATURE(S, kind, field, type) SIGNATURE_##kind(S, field, type)
#define SIGNATURES(S) FIELDS_##S(SIGNATURE, S)

STRUCTS(SIGNATURES)

#endif /* FLETCHING_TESTS_ORACLE_UPSTREAM_H */
