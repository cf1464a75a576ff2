// SPDX-License-Identifier: Apache-2.0

//go:build fletching_upstream

package upstream

// #include <arrow/c/abi.h>
// #include <dlpack/dlpack.h>
//
// // X(struct, callback, result, parameters): cgo does not expose C function types, so the signatures
// // are repeated here, and the C compiler compares them with the header.
// #define CALLBACKS(X)                                                                          \
//   X(ArrowSchema, release, void, (struct ArrowSchema*))                                        \
//   X(ArrowArray, release, void, (struct ArrowArray*))                                          \
//   X(ArrowArrayStream, get_schema, int, (struct ArrowArrayStream*, struct ArrowSchema*))       \
//   X(ArrowArrayStream, get_next, int, (struct ArrowArrayStream*, struct ArrowArray*))          \
//   X(ArrowArrayStream, get_last_error, const char*, (struct ArrowArrayStream*))                \
//   X(ArrowArrayStream, release, void, (struct ArrowArrayStream*))                              \
//   X(ArrowDeviceArrayStream, get_schema, int,                                                  \
//     (struct ArrowDeviceArrayStream*, struct ArrowSchema*))                                    \
//   X(ArrowDeviceArrayStream, get_next, int,                                                    \
//     (struct ArrowDeviceArrayStream*, struct ArrowDeviceArray*))                               \
//   X(ArrowDeviceArrayStream, get_last_error, const char*, (struct ArrowDeviceArrayStream*))    \
//   X(ArrowDeviceArrayStream, release, void, (struct ArrowDeviceArrayStream*))                  \
//   X(ArrowAsyncTask, extract_data, int, (struct ArrowAsyncTask*, struct ArrowDeviceArray*))    \
//   X(ArrowAsyncProducer, request, void, (struct ArrowAsyncProducer*, int64_t))                 \
//   X(ArrowAsyncProducer, cancel, void, (struct ArrowAsyncProducer*))                           \
//   X(ArrowAsyncDeviceStreamHandler, on_schema, int,                                            \
//     (struct ArrowAsyncDeviceStreamHandler*, struct ArrowSchema*))                             \
//   X(ArrowAsyncDeviceStreamHandler, on_next_task, int,                                         \
//     (struct ArrowAsyncDeviceStreamHandler*, struct ArrowAsyncTask*, const char*))             \
//   X(ArrowAsyncDeviceStreamHandler, on_error, void,                                            \
//     (struct ArrowAsyncDeviceStreamHandler*, int, const char*, const char*))                   \
//   X(ArrowAsyncDeviceStreamHandler, release, void, (struct ArrowAsyncDeviceStreamHandler*))      \
//   X(DLManagedTensor, deleter, void, (DLManagedTensor*))                                         \
//   X(DLManagedTensorVersioned, deleter, void, (DLManagedTensorVersioned*))                       \
//   X(DLPackExchangeAPI, managed_tensor_allocator, int,                                           \
//     (DLTensor*, DLManagedTensorVersioned**, void*,                                              \
//      void (*)(void*, const char*, const char*)))                                                \
//   X(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync, int,                              \
//     (void*, DLManagedTensorVersioned**))                                                        \
//   X(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, int,                                \
//     (DLManagedTensorVersioned*, void**))                                                        \
//   X(DLPackExchangeAPI, dltensor_from_py_object_no_sync, int, (void*, DLTensor*))                \
//   X(DLPackExchangeAPI, current_work_stream, int, (DLDeviceType, int32_t, void**))
//
// // Typedefs, so that a list can name structs with and without a tag in the same way.
// typedef struct ArrowSchema ArrowSchema;
// typedef struct ArrowArray ArrowArray;
// typedef struct ArrowArrayStream ArrowArrayStream;
// typedef struct ArrowDeviceArrayStream ArrowDeviceArrayStream;
// typedef struct ArrowAsyncTask ArrowAsyncTask;
// typedef struct ArrowAsyncProducer ArrowAsyncProducer;
// typedef struct ArrowAsyncDeviceStreamHandler ArrowAsyncDeviceStreamHandler;
//
// #define COMPARE(owner, callback, result, parameters)                                          \
//   _Static_assert(__builtin_types_compatible_p(__typeof__(((owner*)0)->callback),              \
//                                               result(*) parameters),                          \
//                  #owner "." #callback " has another signature upstream");
// CALLBACKS(COMPARE)
//
// #define ROW(owner, callback, result, parameters) {#owner "." #callback, #result " " #parameters},
// static const char* const kSignatures[][2] = {CALLBACKS(ROW)};
//
// static int signature_count(void) { return sizeof(kSignatures) / sizeof(kSignatures[0]); }
// static const char* signature_text(int index, int column) { return kSignatures[index][column]; }
import "C"

// Signatures returns the signature of every callback, keyed by "struct.callback".
func Signatures() map[string]string {
	signatures := map[string]string{}
	for i := range C.signature_count() {
		signatures[C.GoString(C.signature_text(i, 0))] = C.GoString(C.signature_text(i, 1))
	}
	return signatures
}
