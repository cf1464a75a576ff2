/* SPDX-License-Identifier: Apache-2.0
 *
 * How to wait on events that Fletching does not know: of SYCL, of Metal, of ext_dev, of device
 * types that are newer than this header. A library that knows them fills the struct and registers
 * it, see register_waiter in fletching/waiter.hpp.
 */
#ifndef FLETCHING_WAITER_H
#define FLETCHING_WAITER_H

#include <stdint.h>

#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Three functions and what they need.
 *
 * Each receives `context` of this struct, and sync_event and device_id as the ArrowDeviceArray has
 * them; sync_event is never NULL. Each returns 0, or an errno value after it has written into
 * message->text why, which is never NULL and empty before the call. None may throw. They are called
 * from any thread, from several at once, and not after the process has begun to exit.
 *
 * A function is NULL when the runtime does not support it: a caller of that operation gets an
 * error that says so.
 */
struct FletchingWaiter {
  /** Blocks the calling thread until the event has happened. */
  int (*synchronize)(void* context, void* sync_event, int64_t device_id,
                     struct FletchingMessage* message);
  /** Lets what is enqueued from now on wait for the event, and returns while it is still pending.
   * `stream` is the consumer's stream or queue, whatever that is in this runtime; may be NULL. */
  int (*wait_on)(void* context, void* sync_event, int64_t device_id, void* stream,
                 struct FletchingMessage* message);
  /** Sets *ready to 1 when the event has happened, and to 0 when it is pending. */
  int (*ready)(void* context, void* sync_event, int64_t device_id, int* ready,
               struct FletchingMessage* message);
  /** Passed to the functions; it has to outlive every call. */
  void* context;
};

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_WAITER_H */
