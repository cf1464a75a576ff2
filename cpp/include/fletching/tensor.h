/* SPDX-License-Identifier: Apache-2.0
 *
 * DLPack tensors as device arrays and back, in C, without a copy unless the caller asks for one
 * (dlpack.h; array API, "__dlpack__"). C99 and C++.
 *
 * Types: docs/dlpack.md has the table. Numbers that both have keep their type. A type that Arrow
 * lacks, such as bfloat16, is the extension arrow.opaque with the vendor "DLPack", both ways.
 *
 * Errors: 0 or an errno value, and a sentence in `message`, as in events.h.
 *   EINVAL   a struct is malformed, or released
 *   ENOTSUP  the other side has no such type, order of elements, or nulls
 *   ERANGE   a device id that DLPack's 32 bits cannot hold
 *   ENOMEM, and those of events.h, where a stream is given.
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

/** The most dimensions of a tensor, as in NumPy and PyTorch; DLPack has no limit. */
#define FLETCHING_TENSOR_DIMENSIONS 64

/* --- The stream argument of __dlpack__ --- */

/* 0 is none of them: an ordering that was forgotten is an error. */
#define FLETCHING_ORDER_NOTHING 1 /* the consumer synchronizes, or has waited */
#define FLETCHING_ORDER_HOST 2    /* the work is done on return */
#define FLETCHING_ORDER_STREAM 3  /* a stream waits for the work */

/** Who waits for the producer's work. */
struct FletchingTensorStream {
  struct FletchingStream stream; /* of FLETCHING_ORDER_STREAM */
  int32_t ordering;
};

/** Reads the argument for data on this device type; NULL is Python's None.
 *
 * CUDA: None or 1 is the legacy default stream, 2 the per-thread stream, -1 none, 0 is refused.
 * ROCm: None or 0 is the default stream, -1 none, 1 and 2 are refused. Other positive numbers are
 * handles. With None and memory that the host reads, pinned or managed, the host is ordered, which
 * includes the default stream. Other devices accept None only, which orders the host. */
FLETCHING_EXPORT int FletchingTensorStreamRead(ArrowDeviceType type, const int64_t* argument,
                                               struct FletchingTensorStream* stream,
                                               struct FletchingMessage* message);

/* --- Device arrays as tensors --- */

/* Options of an export. */
#define FLETCHING_TENSOR_AS_STORAGE 1u     /* types that DLPack lacks become what stores them */
#define FLETCHING_TENSOR_WRITABLE 2u       /* the array is the caller's alone; else read-only */
#define FLETCHING_TENSOR_COPIED 4u         /* the array is a copy for this consumer */
#define FLETCHING_TENSOR_IGNORE_NULLS 8u   /* the memory in their place is exported as it is */
#define FLETCHING_TENSOR_EVENT_HANDLED 16u /* the consumer waits for sync_event in another way */
/** `data` is a multiple of 256, as dlpack.h demands, with the first element at byte_offset. By
 * default it points to the first element: some consumers ignore byte_offset. On devices whose
 * buffers are handles it is the handle in any case. */
#define FLETCHING_TENSOR_ALIGNED 32u
/** No memory is read, the validity bitmaps included: for a caller that cannot know whether the
 * buffers are as the struct says. A null_count of -1 with a bitmap counts as nulls. */
#define FLETCHING_TENSOR_NO_READS 2048u

/** Moves `array`, of type `schema`, into a new tensor.
 *
 * Shape: the array's length, then one dimension for each fixed-size list around the values, or the
 * dimensions of arrow.fixed_shape_tensor. Strides are always set. A tensor without elements has a
 * NULL pointer.
 *
 * `stream`, unless NULL, is first ordered behind the array's sync_event, which lives on in the
 * tensor. Without one, an array with an event is refused unless it is EVENT_HANDLED. The stream is
 * used during the call only.
 *
 * Nulls are an error. When the host can read the validity bitmap and no work is pending, it is
 * read, unless NO_READS; otherwise a null_count of -1 counts as nulls.
 *
 * Ownership: on success the deleter of *tensor releases the array, on any thread. After an error
 * the array is the caller's and *tensor is NULL. The schema stays the caller's. */
FLETCHING_EXPORT int FletchingTensorExport(const struct ArrowSchema* schema,
                                           struct ArrowDeviceArray* array,
                                           const struct FletchingTensorStream* stream,
                                           uint32_t options, DLManagedTensorVersioned** tensor,
                                           struct FletchingMessage* message);

/** The same as the struct from before DLPack 1.0. It has no flags: EINVAL unless WRITABLE. */
FLETCHING_EXPORT int FletchingLegacyTensorExport(const struct ArrowSchema* schema,
                                                 struct ArrowDeviceArray* array,
                                                 const struct FletchingTensorStream* stream,
                                                 uint32_t options, DLManagedTensor** tensor,
                                                 struct FletchingMessage* message);

/* --- Tensors as device arrays --- */

/* Options of an import, with FLETCHING_TENSOR_AS_STORAGE. */
/** Fixed-size lists within each other, the last dimension varying fastest, in the place of
 * arrow.fixed_shape_tensor, which has any order of the inner dimensions. */
#define FLETCHING_TENSOR_LISTS 64u
/** Elements that are not in an order that Arrow can express, or not aligned, are gathered in new
 * memory of the CPU, if the host can read them. Without it they are ENOTSUP. */
#define FLETCHING_TENSOR_COPY 128u

/** Makes `schema` and `array` of a tensor. The first dimension is the array's length; a tensor
 * without dimensions is an array of length 1. byte_offset is added to the pointer, or to
 * ArrowArray.offset on devices whose buffers are handles. NULL strides mean row-major order.
 *
 * `stream`, unless NULL, is the stream that the producer was given: the array gets a sync_event
 * that happens when the current work on the stream is done. Before a copy, which has no event, the
 * host waits for the stream. With FLETCHING_ORDER_NOTHING or HOST, and without a stream, the array
 * has no event.
 *
 * *flags, unless `flags` is NULL, becomes DLPACK_FLAG_BITMASK_READ_ONLY and IS_COPIED as they are
 * of the array; a legacy tensor counts as read-only.
 *
 * Ownership: the tensor is consumed in any case. Its deleter is called when the array and each
 * child moved out of it are released, on any thread; at once after an error and after a copy. Of a
 * tensor with another major version only the deleter is used. After an error, `schema` and `array`
 * are released structs. */
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

/** A tensor of memory that is the caller's, without a schema: copies `like` with its shape and
 * strides, NULL for row-major order. On success the deleter of *tensor calls `release(owner)`,
 * once, on any thread; after an error it is not called and *tensor is NULL. `flags` are DLPack's.
 */
FLETCHING_EXPORT int FletchingTensorCreate(const DLTensor* like, uint64_t flags, void* owner,
                                           void (*release)(void* owner),
                                           DLManagedTensorVersioned** tensor,
                                           struct FletchingMessage* message);

/* --- DLPack's table of functions, DLPackExchangeAPI --- */

/** For `managed_tensor_allocator` of a table: new memory of the CPU, aligned to 256 bytes and not
 * initialized, of the type and shape of the prototype, row-major. Returns 0, or -1 after a call of
 * `set_error`, which may be NULL, with "MemoryError" or "BufferError". */
FLETCHING_EXPORT int FletchingTensorAllocate(DLTensor* prototype, DLManagedTensorVersioned** tensor,
                                             void* error_context,
                                             void (*set_error)(void* error_context,
                                                               const char* kind, const char* text));

/** The table of major version 1, among `first` and its predecessors; NULL if no table has it.
 * `first` is the pointer of a framework's capsule "dlpack_exchange_api". Tables live as long as the
 * process.
 */
FLETCHING_EXPORT const DLPackExchangeAPI* FletchingExchangeFind(
    const DLPackExchangeAPIHeader* first);

/** A new tensor of the framework, like the prototype. The caller owns it. Errors: ENOSYS when the
 * table lacks the function, ENOMEM, and EIO with the framework's message. */
FLETCHING_EXPORT int FletchingExchangeAllocate(const DLPackExchangeAPI* api,
                                               const DLTensor* prototype,
                                               DLManagedTensorVersioned** tensor,
                                               struct FletchingMessage* message);

/** The stream on which the framework works now, for a tensor that the functions without
 * synchronization return; FLETCHING_ORDER_NOTHING on a device without events. Errors: ENOTSUP on
 * devices other than those of CUDA and ROCm, ENOSYS, and EIO. For memory that the host reads, CUDA
 * is asked for the current context: ENOENT if its library is not found. */
FLETCHING_EXPORT int FletchingExchangeWorkStream(const DLPackExchangeAPI* api, DLDevice device,
                                                 struct FletchingTensorStream* stream,
                                                 struct FletchingMessage* message);

/* --- The parts, for descriptions other than DLPack's --- */

/* Options of FletchingTensorDescribe, with AS_STORAGE and IGNORE_NULLS. */
#define FLETCHING_TENSOR_HOST_READABLE 256u /* the validity bitmaps may be read now */
#define FLETCHING_TENSOR_TIMES 512u /* the target has durations, and timestamps without zone */
#define FLETCHING_TENSOR_MASK 1024u /* the target describes the nulls of the outermost array */

/** The values of an array. Every pointer is into the array and its schema. */
struct FletchingTensorView {
  const struct ArrowSchema* values; /* the type of the values */
  const void* buffer;               /* of the values */
  uint64_t byte_offset;             /* from the buffer to the first element */
  uint64_t bytes;                   /* of all elements; 0: there is none */
  DLDataType dtype;
  int32_t is_padded; /* 1: each value narrower than a byte has a byte */
  int32_t ndim;
  int64_t shape[FLETCHING_TENSOR_DIMENSIONS];
  int64_t strides[FLETCHING_TENSOR_DIMENSIONS]; /* in elements */
};

/** The first half of an export. Reads no memory but validity bitmaps, these when HOST_READABLE. */
FLETCHING_EXPORT int FletchingTensorDescribe(const struct ArrowSchema* schema,
                                             const struct ArrowArray* array, uint32_t options,
                                             struct FletchingTensorView* view,
                                             struct FletchingMessage* message);

/** A tensor that an array can show without a copy. The texts are static. */
struct FletchingTensorLayout {
  const char* format;    /* of the values */
  const char* extension; /* their extension type, or NULL */
  const char* type_name; /* a parameter of arrow.opaque, or NULL */
  const void* buffer;    /* the first value's address, or a handle */
  int64_t offset;        /* values of a handle to skip */
  int64_t n_values;
  int32_t parts; /* 2 of a complex number, whose storage is a list of two; else 1 */
  int32_t ndim;
  /* Values within an element are dimensions too, and the first dimension is the array's length. */
  int64_t shape[FLETCHING_TENSOR_DIMENSIONS + 2];
  /* The inner dimensions as they are in memory, from the outside in: ndim - 1 indices of shape. */
  int32_t order[FLETCHING_TENSOR_DIMENSIONS + 2];
};

/** The first half of an import. Of the tensor, `data`, `device`, `ndim`, `dtype`, `shape`,
 * `strides` and `byte_offset` are read. ENOTSUP when only a copy has the order or the alignment
 * that Arrow needs. */
FLETCHING_EXPORT int FletchingTensorArrange(const DLTensor* tensor, uint32_t options,
                                            struct FletchingTensorLayout* layout,
                                            struct FletchingMessage* message);

/** Its second half: `release(owner)` is called once, when the array and each child moved out of it
 * are released. After an error it has not been called, and `schema` and `array` are released
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
