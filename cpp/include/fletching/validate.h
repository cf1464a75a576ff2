// SPDX-License-Identifier: Apache-2.0
//
// The validation layer of libfletching: wraps a struct, a stream or the handler of an async stream
// and reports each call that violates a rule of the Arrow C interfaces or of DLPack. C99 and C++.
// Only libfletching contains these functions.
//
// Threads: a wrapped stream reports overlapping calls, a wrapped handler overlapping handler calls.
// Any thread may call the other functions.
#ifndef FLETCHING_VALIDATE_H
#define FLETCHING_VALIDATE_H

#include <stddef.h>
#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/export.h"
#include "fletching/handover.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A rule violation. The strings are valid during the report only. */
struct FletchingFinding {
  const char* rule;     /* the id in docs/reference/rules: "stream.callbacks-set" */
  const char* severity; /* "error", "warning" or "note" */
  const char* party;    /* the violating side: "producer", "consumer"; "both" if not known */
  const char* path;     /* "get_next[2].array.children[1]" */
  const char* message;  /* "expected X, got Y" */
  const char* history;  /* the last calls on the object with their results, one per line */
};

/** Receives a finding, on the thread of the violating call. Must not call into the stream. Two
 * threads may report at once. */
typedef void (*FletchingFindingReport)(void* context, const struct FletchingFinding* finding);

#define FLETCHING_VALIDATE_PROTOCOL 0 /* the order of the calls; reads no data, walks no tree */
/* Also checks the members of each schema and array, and compares each batch with the stream's
 * schema. */
#define FLETCHING_VALIDATE_SHAPE 1
/* Also reads the buffers of each batch in CPU, pinned or managed memory, never other device memory.
 * Waits on the host for the event of the batch first. If the wait fails, reports the finding
 * "limit.event" and does not read the buffers. A buffer that is shorter than the structs and the
 * offsets imply is read past its end. */
#define FLETCHING_VALIDATE_DATA 2

/* Stress: valid but unusual behavior, to reveal peers that rely on the usual behavior. A peer that
 * violates a rule can crash. */
/* Overwrites memory at the end of its lifetime: the members of a schema or array that the consumer
 * releases, and the copies of error messages and metadata that it receives. A producer's error
 * message or metadata that changes too early is a finding. */
#define FLETCHING_STRESS_POISON 1u
/* Moves the struct of a stream to another address for every call. The producer fills schemas and
 * arrays at an address from which they are moved. A later write to that address is a finding,
 * except for the array of an async task. */
#define FLETCHING_STRESS_MOVE 2u
/* Replaces private_data of schemas, arrays, streams, handlers and tasks by a non-address. */
#define FLETCHING_STRESS_PRIVATE_DATA 4u
/* Runs the producer's release of a schema, array or stream on another thread while the caller
 * waits. */
#define FLETCHING_STRESS_THREAD 8u
/* Delays the producer's release of a schema or array until the next call on the stream, other than
 * get_last_error, has returned, or until after the release of the stream. */
#define FLETCHING_STRESS_DELAY 16u
/* Reports the findings of FletchingValidateLive when the program exits. `report` and `context` must
 * live until then. */
#define FLETCHING_STRESS_REPORT_AT_EXIT 32u

/** Options of the validation layer. Zero the struct before you fill it, so that members of later
 * versions are zero. */
struct FletchingValidateOptions {
  size_t size;   /* sizeof(struct FletchingValidateOptions) */
  int32_t level; /* FLETCHING_VALIDATE_... */
  /* NULL: one line on stderr for each finding. */
  FletchingFindingReport report;
  /* Passed to `report`. Must outlive the stream, its schemas and its batches. */
  void* context;
  uint32_t stress; /* FLETCHING_STRESS_...; a `size` that ends before this member is accepted */
};

/** Takes the stream, and writes a stream that validates every call to the same address.
 *
 * `options` may be NULL: level PROTOCOL, findings on stderr. The layer keeps the records of the
 * 4,096 most recently released streams, schemas and batches, so that a call on one of them is a
 * finding and not a crash. If a record cannot be allocated, the batch passes unvalidated. A
 * concurrent call is rejected: EINVAL, or NULL from get_last_error; a concurrent release leaks the
 * stream.
 *
 * EINVAL for NULL, a released stream and an unknown size, level or stress; ENOMEM. On error the
 * stream is unchanged. */
FLETCHING_EXPORT int FletchingValidateStream(struct ArrowArrayStream* stream,
                                             const struct FletchingValidateOptions* options,
                                             struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingValidateDeviceStream(struct ArrowDeviceArrayStream* stream,
                                                   const struct FletchingValidateOptions* options,
                                                   struct FletchingMessage* message);

/** Takes a consumer's handler, and writes a handler for the producer to the same address. It
 * validates every call of the producer. Its `producer` member is an object that validates the
 * consumer's calls: request, cancel, and extract_data of every task.
 *
 * Lifetime: the consumer's handler keeps its address until the producer releases the new handler,
 * which releases the consumer's. The layer writes only its member `producer`. The caller releases
 * the new handler if no producer takes it. The layer owns the memory of the new handler and the
 * producer object: both stay valid until 4,096 later streams, schemas, tasks and batches are
 * released, so that a late call is a finding and not a crash.
 *
 * A call after release and a concurrent handler call are rejected (EINVAL). A release during
 * another call takes effect when that call returns.
 *
 * The layer cannot know whether an error preceded a cancel: it reports an on_error after cancel
 * unless a request or extraction has failed.
 *
 * EINVAL for NULL and an unknown size, level or stress; ENOMEM. On error the handler is unchanged.
 * A missing callback is a finding; calls to it return ENOSYS. */
FLETCHING_EXPORT int FletchingValidateAsyncHandler(struct ArrowAsyncDeviceStreamHandler** handler,
                                                   const struct FletchingValidateOptions* options,
                                                   struct FletchingMessage* message);

/** Wraps a schema or an array in place: validates the call of release. A level above PROTOCOL
 * checks the members first, and compares the array with `schema`, which may be NULL. The stress
 * options MOVE and DELAY have no effect.
 *
 * EINVAL for NULL, a released struct and an unknown size, level or stress; ENOMEM. On error the
 * struct is unchanged. */
FLETCHING_EXPORT int FletchingValidateSchema(struct ArrowSchema* schema,
                                             const struct FletchingValidateOptions* options,
                                             struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingValidateArray(const struct ArrowSchema* schema,
                                            struct ArrowArray* array,
                                            const struct FletchingValidateOptions* options,
                                            struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingValidateDeviceArray(const struct ArrowSchema* schema,
                                                  struct ArrowDeviceArray* array,
                                                  const struct FletchingValidateOptions* options,
                                                  struct FletchingMessage* message);

/** Takes *tensor, and replaces it with a tensor that validates the call of its deleter. A level
 * above PROTOCOL checks the members first; the data is never read. The layer owns the new struct,
 * its shape and its strides, and keeps them like records: a second call of the deleter is a finding
 * and not a crash. Only the stress options POISON, THREAD and REPORT_AT_EXIT have an effect.
 *
 * EINVAL for NULL, an ndim outside of 0 to 64, a NULL shape of a tensor with dimensions, and an
 * unknown size, level or stress; ENOTSUP for another major version; ENOMEM. On error the tensor is
 * unchanged. */
FLETCHING_EXPORT int FletchingValidateTensor(DLManagedTensorVersioned** tensor,
                                             const struct FletchingValidateOptions* options,
                                             struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingValidateLegacyTensor(DLManagedTensor** tensor,
                                                   const struct FletchingValidateOptions* options,
                                                   struct FletchingMessage* message);

/** Reports every validated schema, batch, array, tensor and async handler that is not released, and
 * every task that is not extracted, to the report of its stream or struct. Returns their number, or
 * -1 if out of memory. Call it when the consumer is done. */
FLETCHING_EXPORT int64_t FletchingValidateLive(void);

/** Compares an array with its schema, like level SHAPE for every batch: reads the structs, never a
 * buffer. Level DATA reads the buffers too. Writes the number of findings to *findings, which may
 * be NULL; reports at most 64, and one more for a failed wait.
 *
 * EINVAL for NULL, an unknown size, level or stress; ENOMEM. A finding is not an error. */
FLETCHING_EXPORT int FletchingCheckArray(const struct ArrowSchema* schema,
                                         const struct ArrowArray* array,
                                         const struct FletchingValidateOptions* options,
                                         int64_t* findings, struct FletchingMessage* message);
FLETCHING_EXPORT int FletchingCheckDeviceArray(const struct ArrowSchema* schema,
                                               const struct ArrowDeviceArray* array,
                                               const struct FletchingValidateOptions* options,
                                               int64_t* findings, struct FletchingMessage* message);

/** Wraps a struct in place if the environment variable FLETCHING_VALIDATE is set. The bindings call
 * this function on every import and export. `direction` and `kind`: see fletching/handover.h.
 *
 * "log" prints each finding as one line on stderr. "abort" also calls abort() after the first
 * finding of severity "error". The level follows after a colon: "log:protocol", "log:shape" (the
 * default), "log:data". Any other value is one line on stderr, and the struct is unchanged. The
 * variable is read once.
 *
 * Released and wrapped structs are unchanged. If wrapping fails, the struct is unchanged, and the
 * reason is one line on stderr. An array is compared with its schema only in a stream. */
FLETCHING_EXPORT void FletchingValidateHandover(int32_t direction, int32_t kind, void* address);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_VALIDATE_H */
