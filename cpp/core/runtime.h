// SPDX-License-Identifier: Apache-2.0
//
// The operations of a vendor's runtime, as a table of functions.
#ifndef FLETCHING_CORE_RUNTIME_H
#define FLETCHING_CORE_RUNTIME_H

#include "failure.h"
#include "fletching/events.h"
#include "library.h"

// The answer of a query of an event.
enum event_state { EVENT_DONE, EVENT_PENDING, EVENT_FAILED };

// Where an event is from. CUDA: its context, and how to know that again. HIP: its device.
struct origin {
  void* context;
  uint64_t id;  // 0 where the driver has no cuCtxGetId
  int32_t device;
  bool is_primary;
};

struct FletchingRecordedEvent {
  void* event;  // sync_event points here
  const struct runtime* runtime;
  struct origin origin;
  int64_t process;
};

// True for success, else the failure is set. Handles are those of the vendor. All are NULL for a
// runtime whose events cannot be waited on by a call.
struct runtime {
  const char* name;  // NULL for none
  bool (*synchronize)(const struct runtime* self, const struct FletchingEvent* event, void* handle,
                      struct failure* failure);
  bool (*wait_on)(const struct runtime* self, const struct FletchingEvent* event, void* handle,
                  const struct FletchingStream* stream, int on_capture, struct failure* failure);
  bool (*ready)(const struct runtime* self, const struct FletchingEvent* event, void* handle,
                bool* is_done, struct failure* failure);
  // An event that was created is in `recorded` also after a failure.
  bool (*record)(const struct runtime* self, struct FletchingRecordedEvent* recorded,
                 const struct FletchingStream* stream, int on_capture, struct failure* failure);
  // Whether the work on the stream is done, or can never run. A failure is no answer.
  bool (*has_passed)(const struct runtime* self, const struct FletchingRecordedEvent* recorded,
                     struct failure* failure);
  // Whether the context of the origin is destroyed, and its streams with it.
  bool (*is_gone)(const struct runtime* self, const struct origin* origin);
  // Whether work can never run on the stream again, because its device is lost.
  bool (*is_lost)(const struct runtime* self, const struct FletchingStream* stream);
  // Finishes other work on the queue after a failed command, before a release.
  void (*settle)(const struct runtime* self, const struct FletchingRecordedEvent* recorded);
  void (*destroy)(const struct runtime* self, const struct FletchingRecordedEvent* recorded);
  // Runs the body where the event is from, and in the mode in which no other thread's capture is in
  // its way, nor it in theirs.
  void (*run_at_origin)(const struct runtime* self, const struct FletchingRecordedEvent* recorded,
                        void (*body)(void*), void* data);
  bool (*finish)(const struct runtime* self, const struct FletchingStream* stream,
                 struct failure* failure);
  // A default stream that is used later, maybe on another thread, is made to name the same one.
  bool (*resolve)(const struct runtime* self, struct FletchingStream* stream,
                  struct failure* failure);
  // The context that is current on this thread, or NULL.
  bool (*get_current)(void** context, struct failure* failure);
  const struct graph_runtime* graph;  // of one whose streams can be captured into a graph
  // The reason why events cannot be recorded, or ""; the alternative to a wait, or NULL.
  const char* no_record;
  const char* instead_of_wait;
};

// The handle that sync_event is the address of.
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
