/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrappers of the core's functions for Go. Handles are numbers, because Go must not treat them as
 * pointers. A successful call writes no message. */
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

/* FletchingVulkanWaitContext. */
struct VulkanNumbers {
  uintptr_t device, producer_queue, queue, get_device_proc_addr;
  uint32_t set_stages;
};

struct Outcome {
  int code;
  int is_ready;
  char* text; /* from malloc, after a failure; NULL if out of memory */
};

static inline struct Outcome outcome_of(int code, const int* is_ready,
                                        const struct FletchingMessage* message) {
  struct Outcome outcome = {code, is_ready != NULL && *is_ready, NULL};
  if (code == 0) return outcome;
  const size_t size = strlen(message->text) + 1;
  outcome.text = malloc(size);
  if (outcome.text != NULL) memcpy(outcome.text, message->text, size);
  return outcome;
}

#define STREAM(numbers)                                                                            \
  (struct FletchingStream){(void*)(numbers).handle, (numbers).device_id, NULL, (numbers).runtime}, \
      (numbers).on_capture
#define VULKAN(numbers)                                                               \
  &(const struct FletchingVulkanWaitContext) {                                        \
    (void*)(numbers).device, (void*)(numbers).producer_queue, (void*)(numbers).queue, \
        (numbers).set_stages, (void (*)(void))(numbers).get_device_proc_addr          \
  }
#define DEFINE(name, parameters, function, ...)                         \
  static inline struct Outcome name parameters {                        \
    struct FletchingMessage message;                                    \
    return outcome_of(function(__VA_ARGS__, &message), NULL, &message); \
  }
#define DEFINE_READY(name, parameters, function, ...)                             \
  static inline struct Outcome name parameters {                                  \
    struct FletchingMessage message;                                              \
    int ready = 0;                                                                \
    return outcome_of(function(__VA_ARGS__, &ready, &message), &ready, &message); \
  }

typedef struct ArrowDeviceArray Array;
DEFINE(synchronize, (const Array* array), FletchingDeviceArraySynchronize, array)
DEFINE_READY(ready, (const Array* array), FletchingDeviceArrayReady, array)
DEFINE(wait_on, (const Array* array, struct StreamNumbers to), FletchingDeviceArrayWaitOn, array,
       STREAM(to))
DEFINE(export_with_event, (Array * array, struct StreamNumbers of),
       FletchingDeviceArrayExportWithEvent, array, STREAM(of))
DEFINE(release_after, (Array * array, struct StreamNumbers of), FletchingDeviceArrayReleaseAfter,
       array, STREAM(of))
DEFINE(synchronize_vulkan, (const Array* array, struct VulkanNumbers of),
       FletchingDeviceArraySynchronizeVulkan, array, VULKAN(of))
DEFINE_READY(ready_vulkan, (const Array* array, struct VulkanNumbers of),
             FletchingDeviceArrayReadyVulkan, array, VULKAN(of))
DEFINE(wait_on_vulkan, (const Array* array, struct VulkanNumbers of, uintptr_t command_buffer),
       FletchingDeviceArrayWaitOnVulkan, array, VULKAN(of), (void*)command_buffer)

int FLETCHING_PREFIXED(StartRelease)(struct FletchingRelease* release); /* in core.go */
static inline void set_release_starter(void) {
  FletchingSetReleaseStarter(FLETCHING_PREFIXED(StartRelease));
}

#endif /* FLETCHING_GO_EVENTS_H */
