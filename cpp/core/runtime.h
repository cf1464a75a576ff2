// SPDX-License-Identifier: Apache-2.0
//
// The operations of a vendor's runtime, as a table of functions.
#ifndef FLETCHING_CORE_RUNTIME_H
#define FLETCHING_CORE_RUNTIME_H

#include "failure.h"
#include "fletching/events.h"
#include "found_devices.h"
#include "library.h"

// Result of an event query.
enum event_state { EVENT_DONE, EVENT_PENDING, EVENT_FAILED };

// Origin of an event. CUDA: its context, and data to recognize it. HIP: its device.
struct origin {
  void* context;
  uint64_t id;  // 0 if the driver lacks cuCtxGetId
  int32_t device;
  bool is_primary;
};

struct FletchingRecordedEvent {
  void* event;  // sync_event points here
  const struct runtime* runtime;
  struct origin origin;
  int64_t process;
};

// Functions return true on success and otherwise set the failure. Handles are the vendor's. All
// functions are NULL if a call cannot wait on the runtime's events.
struct runtime {
  const char* name;  // NULL if there is no runtime
  bool (*synchronize)(const struct runtime* self, const struct FletchingEvent* event, void* handle,
                      struct failure* failure);
  bool (*wait_on)(const struct runtime* self, const struct FletchingEvent* event, void* handle,
                  const struct FletchingStream* stream, int on_capture, struct failure* failure);
  bool (*ready)(const struct runtime* self, const struct FletchingEvent* event, void* handle,
                bool* is_done, struct failure* failure);
  // If an event was created, `recorded` contains it even after a failure.
  bool (*record)(const struct runtime* self, struct FletchingRecordedEvent* recorded,
                 const struct FletchingStream* stream, int on_capture, struct failure* failure);
  // Whether the work on the stream is done or can never run. After a failure this is unknown.
  bool (*has_passed)(const struct runtime* self, const struct FletchingRecordedEvent* recorded,
                     struct failure* failure);
  // Whether the origin's context is destroyed, and its streams with it.
  bool (*is_gone)(const struct runtime* self, const struct origin* origin);
  // Whether work can never run on the stream again because its device is lost.
  bool (*is_lost)(const struct runtime* self, const struct FletchingStream* stream);
  // Finishes the other work on the queue after a failed command, before a release.
  void (*settle)(const struct runtime* self, const struct FletchingRecordedEvent* recorded);
  void (*destroy)(const struct runtime* self, const struct FletchingRecordedEvent* recorded);
  // Runs the body at the event's origin, in the mode in which captures of other threads and the
  // body do not interfere.
  void (*run_at_origin)(const struct runtime* self, const struct FletchingRecordedEvent* recorded,
                        void (*body)(void*), void* data);
  bool (*finish)(const struct runtime* self, const struct FletchingStream* stream,
                 struct failure* failure);
  // Replaces a default stream by a handle that denotes the same stream on other threads.
  bool (*resolve)(const struct runtime* self, struct FletchingStream* stream,
                  struct failure* failure);
  // Returns this thread's current context, or NULL.
  bool (*get_current)(void** context, struct failure* failure);
  const struct graph_runtime* graph;  // if streams can be captured into a graph
  // Reason why events cannot be recorded, or ""; alternative to a wait, or NULL.
  const char* no_record;
  const char* instead_of_wait;
  const char* title;  // in the device report
  // Lists the devices. NULL: no_devices is the reason.
  void (*find_devices)(struct found_devices* found);
  const char* no_devices;
};

// Reads the handle at the address sync_event.
static bool get_handle(const struct FletchingEvent* event, const char* device, void** handle,
                       struct failure* failure) {
  const uintptr_t lowest = 4096;  // lower addresses are never mapped
  const uintptr_t address = (uintptr_t)event->sync_event;
  if (address < lowest || address % _Alignof(void*) != 0) {
    return fail(failure, EINVAL,
                "sync_event of %s: not the address of a handle: expected an aligned address; hint: "
                "pass the handle's address, not the handle",
                device);
  }
  memcpy(handle, event->sync_event, sizeof *handle);
  return *handle != NULL ||
         fail(failure, EINVAL, "sync_event of %s: the handle is NULL: expected an event", device);
}

#endif  // FLETCHING_CORE_RUNTIME_H
