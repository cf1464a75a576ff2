/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of a consumer to its producer. Each is noted on its thread while it runs, so that the
 * release of the handler knows which of them it must not wait for: those further out on its own
 * thread. Go has no name for a thread. */
#ifndef FLETCHING_GO_ASYNC_H
#define FLETCHING_GO_ASYNC_H

#include <stdint.h>

#include "fletching_core.h"

#define fletching_async_extract FLETCHING_PREFIXED(AsyncExtract)
#define fletching_async_request FLETCHING_PREFIXED(AsyncRequest)
#define fletching_async_cancel FLETCHING_PREFIXED(AsyncCancel)
#define fletching_async_here FLETCHING_PREFIXED(AsyncHere)

/* The object of the call: a task, or the producer's. */
enum { kFletchingToTask, kFletchingToProducer };

/* `stream` is any number that is the stream's own. The task is made of its two fields. */
int fletching_async_extract(uintptr_t stream, uintptr_t extract_data, uintptr_t private_data,
                            uint8_t* out);
void fletching_async_request(uintptr_t stream, uintptr_t request, uintptr_t producer, int64_t n);
void fletching_async_cancel(uintptr_t stream, uintptr_t cancel, uintptr_t producer);

/* How many calls of the kind run on this thread. */
int fletching_async_here(uintptr_t stream, int kind);

#endif /* FLETCHING_GO_ASYNC_H */
