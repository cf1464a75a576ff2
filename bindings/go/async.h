/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of a consumer to its producer. Each is recorded for its thread while it runs, because
 * Go cannot identify a thread: the release of the handler must not wait for the calls that it is
 * nested in. */
#ifndef FLETCHING_GO_ASYNC_H
#define FLETCHING_GO_ASYNC_H

#include <stdint.h>

#include "fletching_core.h"

#define fletching_async_extract FLETCHING_PREFIXED(AsyncExtract)
#define fletching_async_request FLETCHING_PREFIXED(AsyncRequest)
#define fletching_async_cancel FLETCHING_PREFIXED(AsyncCancel)
#define fletching_async_here FLETCHING_PREFIXED(AsyncHere)

/* The target of the call: a task or the producer object. */
enum { kFletchingToTask, kFletchingToProducer };

/* `stream` is any number that is unique to the stream. The task is built from its two fields. */
int fletching_async_extract(uintptr_t stream, uintptr_t extract_data, uintptr_t private_data,
                            uint8_t* out);
void fletching_async_request(uintptr_t stream, uintptr_t request, uintptr_t producer, int64_t n);
void fletching_async_cancel(uintptr_t stream, uintptr_t cancel, uintptr_t producer);

/* Number of calls of the kind that run on this thread. */
int fletching_async_here(uintptr_t stream, int kind);

#endif /* FLETCHING_GO_ASYNC_H */
