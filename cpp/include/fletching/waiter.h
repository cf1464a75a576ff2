/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiters for events that Fletching does not support itself: SYCL, Metal, ext_dev, and device types
 * newer than this header. A library that supports them fills the struct and registers it; see
 * register_waiter in fletching/waiter.hpp.
 */
#ifndef FLETCHING_WAITER_H
#define FLETCHING_WAITER_H

#include <stdint.h>

#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Functions that wait on the events of one device type.
 *
 * Each receives `context` of this struct, and sync_event and device_id of the ArrowDeviceArray;
 * sync_event is never NULL. Each returns 0, or an errno value after writing the reason to
 * message->text; `message` is never NULL, and is empty before the call. None may throw. They are
 * called from any thread, concurrently, but not after the process has begun to exit.
 *
 * A function may be NULL if the runtime does not support it: the operation then returns an error.
 */
struct FletchingWaiter {
  /** Blocks the calling thread until the event has completed. */
  int (*synchronize)(void* context, void* sync_event, int64_t device_id,
                     struct FletchingMessage* message);
  /** Makes later work on the stream wait for the event, and returns while it is still pending.
   * `stream` is the consumer's stream or queue in this runtime; may be NULL. */
  int (*wait_on)(void* context, void* sync_event, int64_t device_id, void* stream,
                 struct FletchingMessage* message);
  /** Sets *ready to 1 if the event has completed, and to 0 if it is pending. */
  int (*ready)(void* context, void* sync_event, int64_t device_id, int* ready,
               struct FletchingMessage* message);
  /** Passed to the functions; must outlive every call. */
  void* context;
};

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_WAITER_H */
