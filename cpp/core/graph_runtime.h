// SPDX-License-Identifier: Apache-2.0
//
// Event operations for runtimes with stream capture into graphs: CUDA and HIP. Their functions have
// the same signatures. They differ in the context or device that must be current.
#ifndef FLETCHING_CORE_GRAPH_RUNTIME_H
#define FLETCHING_CORE_GRAPH_RUNTIME_H

#include "runtime.h"

// Common functions. cuda.h and hip.h provide the vendor's names.
#define GRAPH_FUNCTIONS(X)                                                \
  X(init, (uint32_t flags))                                               \
  X(exchange_mode, (int32_t* mode))                                       \
  X(is_capturing, (void* stream, int32_t* status))                        \
  X(stream_wait_event, (void* stream, void* event, uint32_t flags))       \
  X(stream_synchronize, (void* stream))                                   \
  X(event_synchronize, (void* event))                                     \
  X(event_query, (void* event))                                           \
  X(event_create, (void** event, uint32_t flags))                         \
  X(event_record, (void* event, void* stream))                            \
  X(event_record_with_flags, (void* event, void* stream, uint32_t flags)) \
  X(event_destroy, (void* event))

#define DECLARE(member, parameters) int32_t(FLETCHING_CALL* member) parameters;
struct graph_functions {
  GRAPH_FUNCTIONS(DECLARE)
};
#undef DECLARE

#define DECLARE(member, parameters) const char* member;
struct graph_names {
  GRAPH_FUNCTIONS(DECLARE)
};
#undef DECLARE

// A temporary change of the thread's current CUDA context or HIP device.
struct scope {
  void* current;  // CUDA: the current context
  bool is_pushed;
  bool is_retained;  // CUDA: holds a reference to the primary context of `device`
  bool is_changed;   // HIP: `device` is the previous device
  int32_t device;
};

struct graph_runtime {
  struct vendor_library* library;
  const struct graph_functions* functions;
  const struct graph_names* names;
  // Constants. Capture status 0 means not captured, 1 captured.
  int32_t not_in_capture;  // CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
  int32_t relaxed_mode;
  uint32_t event_flags;
  uint32_t wait_external;
  uint32_t record_external;
  enum event_state (*state)(int32_t answer);
  bool (*is_lost)(int32_t answer);

  bool (*load)(struct failure* failure);
  // Whether the call succeeded.
  bool (*check)(const char* function, int32_t result, struct failure* failure);
  // Converts the handle for this runtime.
  void* (*stream)(void* handle);
  // Fails with ENOTSUP if graphs cannot record or wait on an event at each launch.
  bool (*has_external_events)(bool is_record, struct failure* failure);
  // Enters the place of a stream, a place where any event can be queried, or the origin of an
  // event. enter_origin returns EVENT_DONE if the event was destroyed with its context and
  // EVENT_PENDING if it exists. leave() must be called after each of them, even after a failure.
  bool (*enter_stream)(struct scope* scope, const struct FletchingStream* stream,
                       struct failure* failure);
  bool (*enter_any)(struct scope* scope, const struct FletchingEvent* event,
                    struct failure* failure);
  enum event_state (*enter_origin)(struct scope* scope, const struct origin* origin,
                                   struct failure* failure);
  // Like enter_origin, for release callbacks, which may expect the origin to be current.
  enum event_state (*enter_place)(struct scope* scope, const struct origin* origin,
                                  struct failure* failure);
  bool (*get_origin)(struct scope* scope, struct origin* origin, struct failure* failure);
  bool (*leave)(struct scope* scope, struct failure* failure);
};

#define GRAPH_HAS(self, member, failure) \
  has_function((self)->library, (self)->functions->member != NULL, (self)->names->member, failure)
#define GRAPH_CHECK(self, member, result, failure) \
  (self)->check((self)->names->member, result, failure)

// Saved capture mode of the thread. In relaxed mode, calls that are unsafe during captures neither
// fail nor invalidate a capture.
struct relaxed {
  int32_t before;
  bool is_set;
};

// HIP before ROCm 5.0 has no capture modes.
static bool relax(const struct graph_runtime* self, struct relaxed* mode, struct failure* failure) {
  *mode = (struct relaxed){self->relaxed_mode, false};
  if (self->functions->exchange_mode == NULL) return true;
  const int32_t result = self->functions->exchange_mode(&mode->before);
  // The call may report an earlier error even if it set the mode.
  mode->is_set = result == 0 || mode->before != self->relaxed_mode;
  return GRAPH_CHECK(self, exchange_mode, result, failure);
}

static bool restore(const struct graph_runtime* self, struct relaxed* mode,
                    struct failure* failure) {
  if (!mode->is_set) return true;
  mode->is_set = false;
  int32_t exchanged = mode->before;
  const int32_t result = self->functions->exchange_mode(&exchanged);
  // The call may report an earlier error; `exchanged` shows whether it set the mode.
  if (result != 0 && exchanged == mode->before) (void)self->functions->exchange_mode(&exchanged);
  return GRAPH_CHECK(self, exchange_mode, result, failure);
}

// Not repeated in a child of fork: there the next call fails as the initialization would.
static bool initialize(const struct graph_runtime* self, struct failure* failure) {
  if (!self->load(failure)) return false;
  if (atomic_load_explicit(&self->library->is_initialized, memory_order_acquire)) return true;
  const bool is_done =
      GRAPH_HAS(self, init, failure) && GRAPH_CHECK(self, init, self->functions->init(0), failure);
  if (is_done) atomic_store_explicit(&self->library->is_initialized, true, memory_order_release);
  return is_done;
}

static bool refuse_capture(const struct vendor_library* library, const char* got,
                           struct failure* failure) {
  return fail(failure, EBUSY, "%s: expected a stream that is not captured, got %s", library->title,
              got);
}

#define CAPTURED "one that is being captured into a graph"
#define CAPTURE_INVALIDATED CAPTURED ", and whose capture is invalid and not ended"

// Sets *is_captured. Fails with EBUSY if the stream is captured and `on_capture` does not allow it.
// The stream's place must be entered. Does not disturb the capture.
static bool check_capture(const struct graph_runtime* self, void* stream, int on_capture,
                          bool* is_captured, struct failure* failure) {
  *is_captured = false;
  if (self->functions->is_capturing == NULL) return true;
  int32_t status = 0;
  const int32_t result = self->functions->is_capturing(stream, &status);
  const char* got = CAPTURED;
  if (result == self->not_in_capture) {
    got =
        "the legacy default stream while a stream that is ordered with it is being captured into a "
        "graph";
  } else {
    if (!GRAPH_CHECK(self, is_capturing, result, failure)) return false;
    *is_captured = status != 0;
    if (status == 0 || (status == 1 && on_capture == FLETCHING_CAPTURE_EXTERNAL_EVENT)) return true;
    if (status != 1) got = CAPTURE_INVALIDATED;
  }
  return refuse_capture(self->library, got, failure);
}

static bool graph_synchronize(const struct runtime* runtime, const struct FletchingEvent* event,
                              void* handle, struct failure* failure) {
  const struct graph_runtime* self = runtime->graph;
  struct relaxed mode = {0};
  struct scope scope = {0};
  const bool is_ready = initialize(self, failure) && GRAPH_HAS(self, event_synchronize, failure) &&
                        relax(self, &mode, failure) && self->enter_any(&scope, event, failure);
  const bool is_done = is_ready && GRAPH_CHECK(self, event_synchronize,
                                               self->functions->event_synchronize(handle), failure);
  const bool has_left = self->leave(&scope, failure);
  return restore(self, &mode, failure) && has_left && is_done;
}

// Works in any context.
static bool graph_ready(const struct runtime* runtime, const struct FletchingEvent* event,
                        void* handle, bool* is_done, struct failure* failure) {
  (void)event;
  const struct graph_runtime* self = runtime->graph;
  struct relaxed mode = {0};
  const bool can_ask = initialize(self, failure) && GRAPH_HAS(self, event_query, failure) &&
                       relax(self, &mode, failure);
  enum event_state state = EVENT_FAILED;
  if (can_ask) {
    const int32_t answer = self->functions->event_query(handle);
    state = self->state(answer);
    *is_done = state == EVENT_DONE;
    if (state == EVENT_FAILED) (void)GRAPH_CHECK(self, event_query, answer, failure);
  }
  return restore(self, &mode, failure) && state != EVENT_FAILED;
}

static bool graph_wait_on(const struct runtime* runtime, const struct FletchingEvent* event,
                          void* handle, const struct FletchingStream* stream, int on_capture,
                          struct failure* failure) {
  (void)event;
  const struct graph_runtime* self = runtime->graph;
  struct scope scope = {0};
  bool is_captured = false;
  void* native = self->stream(stream->handle);
  bool waits = initialize(self, failure) && GRAPH_HAS(self, stream_wait_event, failure) &&
               self->enter_stream(&scope, stream, failure) &&
               check_capture(self, native, on_capture, &is_captured, failure) &&
               (!is_captured || self->has_external_events(false, failure));
  if (waits) {
    const int32_t result =
        self->functions->stream_wait_event(native, handle, is_captured ? self->wait_external : 0);
    waits = GRAPH_CHECK(self, stream_wait_event, result, failure);
  }
  return self->leave(&scope, failure) && waits;
}

static bool create_and_record(const struct graph_runtime* self,
                              struct FletchingRecordedEvent* recorded, void* stream,
                              bool is_captured, struct failure* failure) {
  if (is_captured && !self->has_external_events(true, failure)) return false;
  const int32_t created = self->functions->event_create(&recorded->event, self->event_flags);
  if (created != 0) recorded->event = NULL;
  if (!GRAPH_CHECK(self, event_create, created, failure)) return false;
  if (!is_captured) {
    const int32_t result = self->functions->event_record(recorded->event, stream);
    return GRAPH_CHECK(self, event_record, result, failure);
  }
  const int32_t result =
      self->functions->event_record_with_flags(recorded->event, stream, self->record_external);
  return GRAPH_CHECK(self, event_record_with_flags, result, failure);
}

static bool can_record(const struct graph_runtime* self, struct failure* failure) {
  return GRAPH_HAS(self, event_create, failure) && GRAPH_HAS(self, event_destroy, failure) &&
         GRAPH_HAS(self, event_record, failure);
}

static bool graph_record(const struct runtime* runtime, struct FletchingRecordedEvent* recorded,
                         const struct FletchingStream* stream, int on_capture,
                         struct failure* failure) {
  const struct graph_runtime* self = runtime->graph;
  struct relaxed mode = {0};
  struct scope scope = {0};
  bool is_captured = false;
  void* native = self->stream(stream->handle);
  const bool is_recorded = initialize(self, failure) && can_record(self, failure) &&
                           relax(self, &mode, failure) &&
                           self->enter_stream(&scope, stream, failure) &&
                           self->get_origin(&scope, &recorded->origin, failure) &&
                           check_capture(self, native, on_capture, &is_captured, failure) &&
                           create_and_record(self, recorded, native, is_captured, failure);
  const bool has_left = self->leave(&scope, failure);
  return restore(self, &mode, failure) && has_left && is_recorded;
}

// relax() may report the lost device of another context, so query the event itself.
static bool graph_has_passed(const struct runtime* runtime,
                             const struct FletchingRecordedEvent* recorded,
                             struct failure* failure) {
  const struct graph_runtime* self = runtime->graph;
  struct relaxed mode;
  bool has_passed = false;
  bool is_lost = false;
  if (relax(self, &mode, failure) || self->is_lost(failure->result)) {
    no_failure(failure);
    struct scope scope = {0};
    const enum event_state there = self->enter_origin(&scope, &recorded->origin, failure);
    is_lost = there == EVENT_FAILED && self->is_lost(failure->result);
    has_passed = there == EVENT_DONE;
    if (there == EVENT_PENDING) {
      const int32_t answer = self->functions->event_query(recorded->event);
      has_passed = self->state(answer) == EVENT_DONE || self->is_lost(answer);
      if (self->state(answer) == EVENT_FAILED)
        (void)GRAPH_CHECK(self, event_query, answer, failure);
    }
    // An error from leave() does not concern the event: ignore it.
    struct failure ignored;
    no_failure(&ignored);
    (void)self->leave(&scope, &ignored);
  }
  struct failure ignored;
  no_failure(&ignored);
  (void)restore(self, &mode, &ignored);
  return has_passed || is_lost;
}

static bool graph_is_gone(const struct runtime* runtime, const struct origin* origin) {
  struct scope scope = {0};
  struct failure ignored;
  no_failure(&ignored);
  const bool is_gone = origin->context != NULL &&
                       runtime->graph->enter_origin(&scope, origin, &ignored) == EVENT_DONE;
  (void)runtime->graph->leave(&scope, &ignored);
  return is_gone;
}

// Whether the stream's context or device is lost, so that events can no longer be recorded on it.
static bool graph_is_lost(const struct runtime* runtime, const struct FletchingStream* stream) {
  const struct graph_runtime* self = runtime->graph;
  struct scope scope = {0};
  struct failure failure;
  struct failure ignored;
  int32_t status = 0;
  no_failure(&failure);
  no_failure(&ignored);
  const bool can_ask =
      self->enter_stream(&scope, stream, &failure) && GRAPH_HAS(self, is_capturing, &failure) &&
      GRAPH_CHECK(self, is_capturing,
                  self->functions->is_capturing(self->stream(stream->handle), &status), &failure);
  (void)self->leave(&scope, &ignored);
  return !can_ask && self->is_lost(failure.result);
}

// No other call destroys the event: continue without the relaxed mode, and retry once if the
// context could not be entered.
static void graph_destroy(const struct runtime* runtime,
                          const struct FletchingRecordedEvent* recorded) {
  const struct graph_runtime* self = runtime->graph;
  struct failure ignored;
  struct relaxed mode;
  no_failure(&ignored);
  (void)relax(self, &mode, &ignored);
  bool is_tried = false;
  for (int attempt = 0; attempt < 2 && !is_tried; ++attempt) {
    struct scope scope = {0};
    const enum event_state there = self->enter_origin(&scope, &recorded->origin, &ignored);
    is_tried = there != EVENT_FAILED;
    if (there == EVENT_PENDING) (void)self->functions->event_destroy(recorded->event);
    (void)self->leave(&scope, &ignored);
  }
  (void)restore(self, &mode, &ignored);
}

static void graph_run_at_origin(const struct runtime* runtime,
                                const struct FletchingRecordedEvent* recorded, void (*body)(void*),
                                void* data) {
  const struct graph_runtime* self = runtime->graph;
  struct failure ignored;
  struct relaxed mode;
  struct scope scope = {0};
  no_failure(&ignored);
  (void)relax(self, &mode, &ignored);
  (void)self->enter_place(&scope, &recorded->origin, &ignored);
  body(data);
  (void)self->leave(&scope, &ignored);
  (void)restore(self, &mode, &ignored);
}

// Retries once, because the first failure may be left over from earlier work.
static bool graph_finish(const struct runtime* runtime, const struct FletchingStream* stream,
                         struct failure* failure) {
  const struct graph_runtime* self = runtime->graph;
  for (int attempt = 0; attempt < 2; ++attempt) {
    struct relaxed mode = {0};
    struct scope scope = {0};
    bool is_captured = false;
    void* native = self->stream(stream->handle);
    no_failure(failure);
    bool is_finished = initialize(self, failure) && GRAPH_HAS(self, stream_synchronize, failure) &&
                       relax(self, &mode, failure) && self->enter_stream(&scope, stream, failure) &&
                       check_capture(self, native, FLETCHING_CAPTURE_REFUSE, &is_captured, failure);
    if (is_finished) {
      const int32_t result = self->functions->stream_synchronize(native);
      is_finished = GRAPH_CHECK(self, stream_synchronize, result, failure);
    }
    const bool has_left = self->leave(&scope, failure);
    if (restore(self, &mode, failure) && has_left && is_finished) return true;
    if (failure->code == EBUSY) return false;
  }
  return false;
}

static void settle_nothing(const struct runtime* runtime,
                           const struct FletchingRecordedEvent* recorded) {
  (void)runtime, (void)recorded;
}

#endif  // FLETCHING_CORE_GRAPH_RUNTIME_H
