/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack tensors as device arrays and back, in C. Copies only on request (dlpack.h; array API,
 * "__dlpack__"). C99 and C++.
 *
 * Types: see the table in docs/dlpack.md. Number types that both have are kept. A type that Arrow
 * lacks, such as bfloat16, is the extension arrow.opaque with the vendor "DLPack", both ways.
 *
 * Errors: 0 or an errno value, and a sentence in `message`, as in events.h.
 *   EINVAL   a struct is malformed or released
 *   ENOTSUP  the target does not support the type, order of elements, or nulls
 *   ERANGE   a device id does not fit into DLPack's 32 bits
 *   ENOMEM, and the errors of events.h if a stream is passed.
 *
 * Threads: any thread may call every function; use one struct from one thread at a time. */
#ifndef FLETCHING_TENSOR_H
#define FLETCHING_TENSOR_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/events.h"
#include "fletching/export.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The maximum number of dimensions, as in NumPy and PyTorch; DLPack has no limit. */
#define FLETCHING_TENSOR_DIMENSIONS 64

/* --- The stream argument of __dlpack__ --- */

/* 0 is invalid, so that a missing ordering is an error. */
#define FLETCHING_ORDER_NOTHING 1 /* the consumer synchronizes, or has waited */
#define FLETCHING_ORDER_HOST 2    /* the work is done on return */
#define FLETCHING_ORDER_STREAM 3  /* a stream waits for the work */

/** The side that waits for the producer's work. */
struct FletchingTensorStream {
  struct FletchingStream stream; /* of FLETCHING_ORDER_STREAM */
  int32_t ordering;
};

/** Parses the argument for data on this device type; NULL is Python's None.
 *
 * CUDA: None and 1 are the legacy default stream, 2 is the per-thread default stream, -1 means no
 * synchronization, and 0 is rejected. ROCm: None and 0 are the default stream, -1 means no
 * synchronization, and 1 and 2 are rejected. Other positive numbers are handles. None with pinned
 * or managed memory, which the host can read, orders the host, which includes the default stream.
 * Other devices accept only None, which orders the host. */
FLETCHING_EXPORT int FletchingTensorStreamRead(ArrowDeviceType type, const int64_t* argument,
                                               struct FletchingTensorStream* stream,
                                               struct FletchingMessage* message);

/* --- Device arrays as tensors --- */

/* Options of an export. */
#define FLETCHING_TENSOR_AS_STORAGE 1u     /* export types that DLPack lacks as their storage */
#define FLETCHING_TENSOR_WRITABLE 2u       /* the caller is the array's only user; else read-only */
#define FLETCHING_TENSOR_COPIED 4u         /* the array is a copy for this consumer */
#define FLETCHING_TENSOR_IGNORE_NULLS 8u   /* export the memory of null slots as it is */
#define FLETCHING_TENSOR_EVENT_HANDLED 16u /* the consumer waits for sync_event in another way */
/** Makes `data` a multiple of 256, as dlpack.h requires, with the first element at byte_offset. By
 * default it points to the first element, because some consumers ignore byte_offset. On devices
 * whose buffers are handles it is always the handle. */
#define FLETCHING_TENSOR_ALIGNED 32u
/** Reads no memory, not even validity bitmaps: for a caller that cannot know whether the buffers
 * match the struct. A null_count of -1 with a bitmap counts as nulls. */
#define FLETCHING_TENSOR_NO_READS 2048u

/** Moves `array`, of type `schema`, into a new tensor.
 *
 * Shape: the array's length, followed by one dimension per fixed-size list around the values, or
 * the dimensions of arrow.fixed_shape_tensor. Strides are always set. The pointer of a tensor
 * without elements is NULL.
 *
 * `stream`, unless NULL, is first ordered after the array's sync_event, which lives until the
 * tensor is deleted. Without a stream, an array with an event is rejected unless EVENT_HANDLED is
 * set. The stream is used during the call only.
 *
 * Nulls are an error. If the host can read the validity bitmap and no work is pending, the bitmap
 * is read, unless NO_READS is set; otherwise a null_count of -1 counts as nulls.
 *
 * Ownership: on success the deleter of *tensor releases the array, on any thread. On error the
 * caller still owns the array, and *tensor is NULL. The caller keeps the schema. */
FLETCHING_EXPORT int FletchingTensorExport(const struct ArrowSchema* schema,
                                           struct ArrowDeviceArray* array,
                                           const struct FletchingTensorStream* stream,
                                           uint32_t options, DLManagedTensorVersioned** tensor,
                                           struct FletchingMessage* message);

/** Like FletchingTensorExport, for the struct from before DLPack 1.0. It has no flags: EINVAL
 * unless WRITABLE. */
FLETCHING_EXPORT int FletchingLegacyTensorExport(const struct ArrowSchema* schema,
                                                 struct ArrowDeviceArray* array,
                                                 const struct FletchingTensorStream* stream,
                                                 uint32_t options, DLManagedTensor** tensor,
                                                 struct FletchingMessage* message);

/* --- Tensors as device arrays --- */

/* Options of an import, with FLETCHING_TENSOR_AS_STORAGE. */
/** Nested fixed-size lists, whose last dimension varies fastest, instead of
 * arrow.fixed_shape_tensor, which allows any order of the inner dimensions. */
#define FLETCHING_TENSOR_LISTS 64u
/** Copies elements that are misaligned, or in an order that Arrow lacks, to new CPU memory if the
 * host can read them. Without this option they are ENOTSUP. */
#define FLETCHING_TENSOR_COPY 128u

/** Makes `schema` and `array` from a tensor. The first dimension is the array's length; a tensor
 * without dimensions becomes an array of length 1. byte_offset is added to the pointer, or to
 * ArrowArray.offset on devices whose buffers are handles. NULL strides mean row-major order.
 *
 * `stream`, unless NULL, is the stream that was passed to the producer: the array gets a sync_event
 * that completes when the current work on the stream is done. Before a copy, which has no event,
 * the host waits for the stream. With FLETCHING_ORDER_NOTHING or HOST, and without a stream, the
 * array has no event.
 *
 * *flags, unless `flags` is NULL, receives DLPACK_FLAG_BITMASK_READ_ONLY and IS_COPIED for the
 * array; a legacy tensor counts as read-only.
 *
 * Ownership: the tensor is consumed in every case. Its deleter runs when the array and every child
 * moved out of it are released, on any thread; or at once on error and after a copy. A tensor with
 * another major version is only deleted. After an error, `schema` and `array` are released structs.
 */
FLETCHING_EXPORT int FletchingTensorImport(DLManagedTensorVersioned* tensor,
                                           const struct FletchingTensorStream* stream,
                                           uint32_t options, struct ArrowSchema* schema,
                                           struct ArrowDeviceArray* array, uint64_t* flags,
                                           struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingLegacyTensorImport(DLManagedTensor* tensor,
                                                 const struct FletchingTensorStream* stream,
                                                 uint32_t options, struct ArrowSchema* schema,
                                                 struct ArrowDeviceArray* array, uint64_t* flags,
                                                 struct FletchingMessage* message);

/** Makes a tensor from the caller's memory, without a schema: copies `like` with its shape and
 * strides, NULL for row-major order. On success the deleter of *tensor calls `release(owner)` once,
 * on any thread. On error `release` is not called, and *tensor is NULL. `flags` are DLPack's. */
FLETCHING_EXPORT int FletchingTensorCreate(const DLTensor* like, uint64_t flags, void* owner,
                                           void (*release)(void* owner),
                                           DLManagedTensorVersioned** tensor,
                                           struct FletchingMessage* message);

/* --- DLPack's function table, DLPackExchangeAPI --- */

/** For `managed_tensor_allocator` of a table: allocates uninitialized CPU memory, aligned to 256
 * bytes, with the type and shape of the prototype, row-major. Returns 0, or -1 after a call of
 * `set_error`, which may be NULL, with "MemoryError" or "BufferError". */
FLETCHING_EXPORT int FletchingTensorAllocate(DLTensor* prototype, DLManagedTensorVersioned** tensor,
                                             void* error_context,
                                             void (*set_error)(void* error_context,
                                                               const char* kind, const char* text));

/** Returns the table of major version 1 among `first` and its predecessors, or NULL. `first` is the
 * pointer in a framework's capsule "dlpack_exchange_api". Tables live until the process exits. */
FLETCHING_EXPORT const DLPackExchangeAPI* FletchingExchangeFind(
    const DLPackExchangeAPIHeader* first);

/** Allocates a tensor of the framework, like the prototype. The caller owns it. Errors: ENOSYS if
 * the table lacks the function, ENOMEM, and EIO with the framework's message. */
FLETCHING_EXPORT int FletchingExchangeAllocate(const DLPackExchangeAPI* api,
                                               const DLTensor* prototype,
                                               DLManagedTensorVersioned** tensor,
                                               struct FletchingMessage* message);

/** Returns the framework's current work stream, for tensors from the functions without
 * synchronization; FLETCHING_ORDER_NOTHING on a device without events. Errors: ENOTSUP on devices
 * other than CUDA and ROCm, ENOSYS, and EIO. For host-readable memory, queries CUDA for the current
 * context: ENOENT if its library is not found. */
FLETCHING_EXPORT int FletchingExchangeWorkStream(const DLPackExchangeAPI* api, DLDevice device,
                                                 struct FletchingTensorStream* stream,
                                                 struct FletchingMessage* message);

/* --- The building blocks, for formats other than DLPack --- */

/* Options of FletchingTensorDescribe, with AS_STORAGE and IGNORE_NULLS. */
#define FLETCHING_TENSOR_HOST_READABLE 256u /* the validity bitmaps may be read now */
#define FLETCHING_TENSOR_TIMES 512u /* the target has durations, and timestamps without zone */
#define FLETCHING_TENSOR_MASK 1024u /* the target describes the nulls of the outermost array */

/** The values of an array. Every pointer points into the array or its schema. */
struct FletchingTensorView {
  const struct ArrowSchema* values; /* the type of the values */
  const void* buffer;               /* of the values */
  uint64_t byte_offset;             /* from the buffer to the first element */
  uint64_t bytes;                   /* of all elements; 0 if there are none */
  DLDataType dtype;
  int32_t is_padded; /* 1: each value narrower than a byte occupies a byte */
  int32_t ndim;
  int64_t shape[FLETCHING_TENSOR_DIMENSIONS];
  int64_t strides[FLETCHING_TENSOR_DIMENSIONS]; /* in elements */
};

/** The first step of an export. Reads no memory except validity bitmaps, if HOST_READABLE. */
FLETCHING_EXPORT int FletchingTensorDescribe(const struct ArrowSchema* schema,
                                             const struct ArrowArray* array, uint32_t options,
                                             struct FletchingTensorView* view,
                                             struct FletchingMessage* message);

/** A tensor that an array can represent without a copy. The strings are static. */
struct FletchingTensorLayout {
  const char* format;    /* of the values */
  const char* extension; /* their extension type, or NULL */
  const char* type_name; /* a parameter of arrow.opaque, or NULL */
  const void* buffer;    /* the first value's address, or a handle */
  int64_t offset;        /* values to skip after a handle */
  int64_t n_values;
  int32_t parts; /* 2 for a complex number, whose storage is a list of two; else 1 */
  int32_t ndim;
  /* Includes the values within an element. The first dimension is the array's length. */
  int64_t shape[FLETCHING_TENSOR_DIMENSIONS + 2];
  /* The inner dimensions in memory order, outermost first: ndim - 1 indices of shape. */
  int32_t order[FLETCHING_TENSOR_DIMENSIONS + 2];
};

/** The first step of an import. Reads `data`, `device`, `ndim`, `dtype`, `shape`, `strides` and
 * `byte_offset` of the tensor. Returns ENOTSUP if Arrow needs another order or alignment,
 * which only a copy has.
 */
FLETCHING_EXPORT int FletchingTensorArrange(const DLTensor* tensor, uint32_t options,
                                            struct FletchingTensorLayout* layout,
                                            struct FletchingMessage* message);

/** The second step of an import: `release(owner)` is called once, when the array and every child
 * moved out of it are released. On error it is not called, and `schema` and `array` are released
 * structs. `release` may be NULL. */
FLETCHING_EXPORT int FletchingTensorWrap(const struct FletchingTensorLayout* layout,
                                         DLDevice device, uint32_t options, void* owner,
                                         void (*release)(void* owner), struct ArrowSchema* schema,
                                         struct ArrowDeviceArray* array,
                                         struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TENSOR_H */
