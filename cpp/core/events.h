// SPDX-License-Identifier: Apache-2.0
//
// Waits on an event of any device type.
#ifndef FLETCHING_CORE_EVENTS_H
#define FLETCHING_CORE_EVENTS_H

#include "waiter.h"

static bool check_event(const struct FletchingEvent* event, struct failure* failure) {
  return event != NULL || fail(failure, EINVAL, "event: NULL: expected an event");
}

// Sets `event` to the event of a live array.
static bool event_of(const struct ArrowDeviceArray* array, struct FletchingEvent* event,
                     struct failure* failure) {
  if (array == NULL) return fail(failure, EINVAL, "array: NULL: expected a device array");
  if (array->array.release == NULL) {
    return fail(failure, EINVAL,
                "array is released: expected a live array; hint: wait before the release");
  }
  *event = (struct FletchingEvent){.sync_event = array->sync_event,
                                   .device_id = array->device_id,
                                   .device_type = array->device_type};
  return true;
}

// Fills in the device and runtime that the caller left unspecified.
static bool complete_stream(struct FletchingStream* stream, ArrowDeviceType type, int64_t device_id,
                            struct failure* failure) {
  const int32_t own = device_runtime(type);
  if (stream->runtime == FLETCHING_RUNTIME_NONE) stream->runtime = own;
  if (stream->runtime == own) {
    if (stream->device_id < 0) stream->device_id = device_id;
    return true;
  }
  const struct runtime* got = numbered_runtime(stream->runtime);
  const bool has_runtime = got != NULL && got->name != NULL;
  return fail(failure, EINVAL, "stream of another runtime: expected one of %s, got one %s%s",
              label_of(type).text, has_runtime ? "of " : "without a runtime",
              has_runtime ? got->name : "");
}

static bool synchronize_event(const struct FletchingEvent* event, struct failure* failure) {
  void* handle = NULL;
  const struct runtime* runtime = runtime_of(event->device_type);
  if (event->sync_event == NULL) return true;
  if (runtime->synchronize == NULL) return waiter_synchronize(event, failure);
  return get_handle(event, label_of(event->device_type).text, &handle, failure) &&
         runtime->synchronize(runtime, event, handle, failure);
}

static bool wait_on_event(const struct FletchingEvent* event, struct FletchingStream stream,
                          int on_capture, struct failure* failure) {
  void* handle = NULL;
  const struct runtime* runtime = runtime_of(event->device_type);
  if (event->sync_event == NULL) return true;
  if (!complete_stream(&stream, event->device_type, event->device_id, failure)) {
    return false;
  }
  if (runtime->wait_on == NULL) return waiter_wait_on(event, stream.handle, failure);
  return get_handle(event, label_of(event->device_type).text, &handle, failure) &&
         runtime->wait_on(runtime, event, handle, &stream, on_capture, failure);
}

static bool ask_event(const struct FletchingEvent* event, bool* is_done, struct failure* failure) {
  void* handle = NULL;
  const struct runtime* runtime = runtime_of(event->device_type);
  *is_done = event->sync_event == NULL;
  if (*is_done) return true;
  if (runtime->ready == NULL) return waiter_ready(event, is_done, failure);
  return get_handle(event, label_of(event->device_type).text, &handle, failure) &&
         runtime->ready(runtime, event, handle, is_done, failure);
}

int FletchingEventSynchronize(const struct FletchingEvent* event,
                              struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  (void)(check_event(event, &failure) && synchronize_event(event, &failure));
  return report(&failure, message);
}

int FletchingDeviceArraySynchronize(const struct ArrowDeviceArray* array,
                                    struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingEvent event = {0};
  no_failure(&failure);
  (void)(event_of(array, &event, &failure) && synchronize_event(&event, &failure));
  return report(&failure, message);
}

int FletchingEventWaitOn(const struct FletchingEvent* event, struct FletchingStream stream,
                         int on_capture, struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  (void)(check_event(event, &failure) && wait_on_event(event, stream, on_capture, &failure));
  return report(&failure, message);
}

int FletchingDeviceArrayWaitOn(const struct ArrowDeviceArray* array, struct FletchingStream stream,
                               int on_capture, struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingEvent event = {0};
  no_failure(&failure);
  (void)(event_of(array, &event, &failure) && wait_on_event(&event, stream, on_capture, &failure));
  if (failure.code == EBUSY) {
    add_hint(&failure,
             "wait before the capture begins, or pass FLETCHING_CAPTURE_EXTERNAL_EVENT for a wait "
             "at each launch of the graph");
  }
  return report(&failure, message);
}

static int report_ready(bool is_done, const struct failure* failure, int* ready,
                        struct FletchingMessage* message) {
  *ready = failure->code == 0 && is_done;
  return report(failure, message);
}

static int no_ready(struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  (void)fail(&failure, EINVAL, "ready: NULL: expected an address for the result");
  return report(&failure, message);
}

int FletchingEventReady(const struct FletchingEvent* event, int* ready,
                        struct FletchingMessage* message) {
  struct failure failure;
  bool is_done = false;
  if (ready == NULL) return no_ready(message);
  no_failure(&failure);
  (void)(check_event(event, &failure) && ask_event(event, &is_done, &failure));
  return report_ready(is_done, &failure, ready, message);
}

int FletchingDeviceArrayReady(const struct ArrowDeviceArray* array, int* ready,
                              struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingEvent event = {0};
  bool is_done = false;
  if (ready == NULL) return no_ready(message);
  no_failure(&failure);
  (void)(event_of(array, &event, &failure) && ask_event(&event, &is_done, &failure));
  return report_ready(is_done, &failure, ready, message);
}

// --- Vulkan ---

static bool check_vulkan(const struct FletchingEvent* event,
                         const struct FletchingVulkanWaitContext* context,
                         struct failure* failure) {
  if (context == NULL) {
    return fail(failure, EINVAL, "context: NULL: expected the VkDevice of the event");
  }
  return device_runtime(event->device_type) == FLETCHING_RUNTIME_VULKAN ||
         fail(failure, EINVAL, "expected an event of Vulkan, got one of %s",
              label_of(event->device_type).text);
}

int FletchingEventSynchronizeVulkan(const struct FletchingEvent* event,
                                    const struct FletchingVulkanWaitContext* context,
                                    struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (check_event(event, &failure) && event->sync_event != NULL &&
      check_vulkan(event, context, &failure)) {
    (void)vulkan_synchronize(event, context, &failure);
  }
  return report(&failure, message);
}

int FletchingEventWaitOnVulkan(const struct FletchingEvent* event,
                               const struct FletchingVulkanWaitContext* context,
                               void* command_buffer, struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (check_event(event, &failure) && event->sync_event != NULL &&
      check_vulkan(event, context, &failure)) {
    (void)vulkan_wait_on(event, context, command_buffer, &failure);
  }
  return report(&failure, message);
}

int FletchingEventReadyVulkan(const struct FletchingEvent* event,
                              const struct FletchingVulkanWaitContext* context, int* ready,
                              struct FletchingMessage* message) {
  struct failure failure;
  bool is_done = false;
  if (ready == NULL) return no_ready(message);
  no_failure(&failure);
  if (check_event(event, &failure)) {
    is_done = event->sync_event == NULL;
    (void)(is_done || (check_vulkan(event, context, &failure) &&
                       vulkan_ready(event, context, &is_done, &failure)));
  }
  return report_ready(is_done, &failure, ready, message);
}

// Returns NULL and sets the failure if the array is not usable.
static const struct FletchingEvent* vulkan_event_of(
    const struct ArrowDeviceArray* array, const struct FletchingVulkanWaitContext* context,
    struct FletchingEvent* event, struct failure* failure) {
  no_failure(failure);
  if (context == NULL) {
    fail(failure, EINVAL, "context: NULL: expected the VkDevice of the event");
    return NULL;
  }
  return event_of(array, event, failure) ? event : NULL;
}

int FletchingDeviceArraySynchronizeVulkan(const struct ArrowDeviceArray* array,
                                          const struct FletchingVulkanWaitContext* context,
                                          struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingEvent event = {0};
  if (vulkan_event_of(array, context, &event, &failure) == NULL) return report(&failure, message);
  return FletchingEventSynchronizeVulkan(&event, context, message);
}

int FletchingDeviceArrayWaitOnVulkan(const struct ArrowDeviceArray* array,
                                     const struct FletchingVulkanWaitContext* context,
                                     void* command_buffer, struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingEvent event = {0};
  if (vulkan_event_of(array, context, &event, &failure) == NULL) return report(&failure, message);
  return FletchingEventWaitOnVulkan(&event, context, command_buffer, message);
}

int FletchingDeviceArrayReadyVulkan(const struct ArrowDeviceArray* array,
                                    const struct FletchingVulkanWaitContext* context, int* ready,
                                    struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingEvent event = {0};
  if (ready == NULL) return no_ready(message);
  *ready = 0;
  if (vulkan_event_of(array, context, &event, &failure) == NULL) return report(&failure, message);
  return FletchingEventReadyVulkan(&event, context, ready, message);
}

#endif  // FLETCHING_CORE_EVENTS_H
