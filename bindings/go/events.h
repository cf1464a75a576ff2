/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of the core as Go makes them. A handle is a number in Go, which must not take it for a
 * pointer, and a call that succeeds writes no message. */
#ifndef FLETCHING_GO_EVENTS_H
#define FLETCHING_GO_EVENTS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fletching_core.h"

struct StreamNumbers {
  uintptr_t handle;
  int64_t device_id;
  int32_t runtime;
  int on_capture;
};

struct Outcome {
  int code;
  int is_ready;
  char* text; /* of malloc, after a failure; NULL without memory */
};

static inline struct Outcome outcome_of(int code, int is_ready,
                                        const struct FletchingMessage* message) {
  struct Outcome outcome = {code, is_ready, NULL};
  if (code == 0) return outcome;
  const size_t size = strlen(message->text) + 1;
  outcome.text = malloc(size);
  if (outcome.text != NULL) memcpy(outcome.text, message->text, size);
  return outcome;
}

static inline struct FletchingStream stream_of(struct StreamNumbers numbers) {
  const struct FletchingStream stream = {(void*)numbers.handle, numbers.device_id, NULL,
                                         numbers.runtime};
  return stream;
}

static inline struct Outcome synchronize(const struct ArrowDeviceArray* array) {
  struct FletchingMessage message;
  const int code = FletchingDeviceArraySynchronize(array, &message);
  return outcome_of(code, 0, &message);
}

static inline struct Outcome wait_on(const struct ArrowDeviceArray* array,
                                     struct StreamNumbers stream) {
  struct FletchingMessage message;
  const int code =
      FletchingDeviceArrayWaitOn(array, stream_of(stream), stream.on_capture, &message);
  return outcome_of(code, 0, &message);
}

static inline struct Outcome ready(const struct ArrowDeviceArray* array) {
  struct FletchingMessage message;
  int is_ready = 0;
  const int code = FletchingDeviceArrayReady(array, &is_ready, &message);
  return outcome_of(code, is_ready, &message);
}

static inline struct Outcome export_with_event(struct ArrowDeviceArray* array,
                                               struct StreamNumbers stream) {
  struct FletchingMessage message;
  const int code =
      FletchingDeviceArrayExportWithEvent(array, stream_of(stream), stream.on_capture, &message);
  return outcome_of(code, 0, &message);
}

/* Of core.go. */
int FLETCHING_PREFIXED(StartRelease)(struct FletchingRelease* release);

static inline void set_release_starter(void) {
  FletchingSetReleaseStarter(FLETCHING_PREFIXED(StartRelease));
}

static inline struct Outcome release_after(struct ArrowDeviceArray* array,
                                           struct StreamNumbers stream) {
  struct FletchingMessage message;
  const int code =
      FletchingDeviceArrayReleaseAfter(array, stream_of(stream), stream.on_capture, &message);
  return outcome_of(code, 0, &message);
}

/* FletchingVulkanWaitContext. */
struct VulkanNumbers {
  uintptr_t device, producer_queue, queue, get_device_proc_addr;
  uint32_t set_stages;
};

static inline struct FletchingVulkanWaitContext context_of(struct VulkanNumbers numbers) {
  const struct FletchingVulkanWaitContext context = {
      (void*)numbers.device, (void*)numbers.producer_queue, (void*)numbers.queue,
      numbers.set_stages, (void (*)(void))numbers.get_device_proc_addr};
  return context;
}

static inline struct Outcome synchronize_vulkan(const struct ArrowDeviceArray* array,
                                                struct VulkanNumbers numbers) {
  struct FletchingMessage message;
  const struct FletchingVulkanWaitContext context = context_of(numbers);
  const int code = FletchingDeviceArraySynchronizeVulkan(array, &context, &message);
  return outcome_of(code, 0, &message);
}

static inline struct Outcome wait_on_vulkan(const struct ArrowDeviceArray* array,
                                            struct VulkanNumbers numbers,
                                            uintptr_t command_buffer) {
  struct FletchingMessage message;
  const struct FletchingVulkanWaitContext context = context_of(numbers);
  const int code =
      FletchingDeviceArrayWaitOnVulkan(array, &context, (void*)command_buffer, &message);
  return outcome_of(code, 0, &message);
}

static inline struct Outcome ready_vulkan(const struct ArrowDeviceArray* array,
                                          struct VulkanNumbers numbers) {
  struct FletchingMessage message;
  int is_ready = 0;
  const struct FletchingVulkanWaitContext context = context_of(numbers);
  const int code = FletchingDeviceArrayReadyVulkan(array, &context, &is_ready, &message);
  return outcome_of(code, is_ready, &message);
}

#endif /* FLETCHING_GO_EVENTS_H */
