/* SPDX-License-Identifier: Apache-2.0
 *
 * The plain C functions that `fletching validate LIBRARY:FUNCTION --as ROLE` calls, one type for
 * each role. C99 and C++.
 *
 * Every function returns 0, or a positive errno value: ENOTSUP or ENOSYS for a valid struct of a
 * kind that the library does not support. It must not throw.
 *
 * A producer fills `out` structs, which are zeroed before the call and belong to the caller after a
 * result of 0. On an error it leaves them released.
 *
 * A consumer takes ownership of its structs: it releases them, or moves them out and releases them
 * later, before it returns or soon afterwards on its own thread. On an error it may leave a struct
 * whole; the caller releases it.
 *
 * Threads: one call at a time, always on the same thread.
 */
#ifndef FLETCHING_ROLES_H
#define FLETCHING_ROLES_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/conformance.h"
#include "fletching/dlpack.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Producers --- */

/** array-producer */
typedef int (*FletchingArrayProducer)(struct ArrowSchema* schema, struct ArrowArray* array);
/** device-array-producer */
typedef int (*FletchingDeviceArrayProducer)(struct ArrowSchema* schema,
                                            struct ArrowDeviceArray* array);
/** stream-producer */
typedef int (*FletchingStreamProducer)(struct ArrowArrayStream* out);
/** device-stream-producer */
typedef int (*FletchingDeviceStreamProducer)(struct ArrowDeviceArrayStream* out);
/** async-producer: starts to send CPU batches to the handler, and returns. On an error it has not
 * called the handler, and the caller releases it. */
typedef int (*FletchingAsyncProducer)(struct ArrowAsyncDeviceStreamHandler* handler);
/** tensor-producer: `*out` is NULL before the call. */
typedef int (*FletchingTensorProducer)(DLManagedTensorVersioned** out);

/* --- Consumers --- */

/** array-consumer */
typedef int (*FletchingArrayConsumer)(struct ArrowSchema* schema, struct ArrowArray* array);
/** device-array-consumer */
typedef int (*FletchingDeviceArrayConsumer)(struct ArrowSchema* schema,
                                            struct ArrowDeviceArray* array);
/** stream-consumer */
typedef int (*FletchingStreamConsumer)(struct ArrowArrayStream* in);
/** device-stream-consumer */
typedef int (*FletchingDeviceStreamConsumer)(struct ArrowDeviceArrayStream* in);
/** async-consumer: makes a handler, which the caller gives to a producer. It reads on its own
 * threads or inside the handler calls. */
typedef int (*FletchingAsyncConsumer)(struct ArrowAsyncDeviceStreamHandler** out);
/** tensor-consumer: takes the tensor also on an error. */
typedef int (*FletchingTensorConsumer)(DLManagedTensorVersioned* tensor);
/** legacy-tensor-consumer: the same for a tensor of before DLPack 1.0. */
typedef int (*FletchingLegacyTensorConsumer)(DLManagedTensor* tensor);

/* --- The run --- */

/** The name of the role at an index from 0: "array-producer"; NULL past the last. */
FLETCHING_CONFORMANCE_EXPORT const char* FletchingConformanceRole(int32_t index);

/** Calls the function, which has the type of the role, in each case of the role. The structs of a
 * producer pass through the validation layer at `level` (FLETCHING_VALIDATE_...). The role is the
 * group of the results. `options` and `wrong` may be NULL.
 *
 * Returns 0 if the run completed. EINVAL for NULL, an unknown role, size or level, or a case that
 * does not exist; ENOMEM. */
FLETCHING_CONFORMANCE_EXPORT int FletchingConformanceRunFunction(
    const char* role, void (*function)(void), int32_t level,
    const struct FletchingConformanceOptions* options, int64_t* wrong,
    struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_ROLES_H */
