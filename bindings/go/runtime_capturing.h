// SPDX-License-Identifier: Apache-2.0
//
// The operations on events for runtimes whose streams can be captured into a graph. cuda.c and
// hip.c include this file once each, behind
//
//   TITLE, LIBRARY           the runtime and its library in errors
//   NAME(function)           "cuEventQuery" for EventQuery
//   FUNCTION(function)       the function in the table, NULL when the library lacks it
//   EVENT_CREATE             EventCreate or EventCreateWithFlags, which do the same
//   IMPLICIT, RELAXED_MODE, DISABLE_TIMING, WAIT_EXTERNAL, RECORD_EXTERNAL
//   STATE(code), IS_LOST(code), STREAM(stream)
//
// and the functions that `struct scope` has there.
#include <errno.h>

// Whether the call has succeeded.
static bool check(const char* function, int32_t code, struct failure* failure);
// ENOTSUP where there are no events of each launch of a graph.
static bool has_external_events(struct failure* failure);
// Enters where the stream belongs, or where any event can be asked.
static bool enter_stream(struct scope* scope, const struct request* request,
                         struct failure* failure);
static bool enter_any(struct scope* scope, const struct request* request, struct failure* failure);
// Enters where the event is from. EVENT_DONE: it was destroyed with its context. EVENT_PENDING: it
// is there.
static enum event_state enter_origin(struct scope* scope, const struct origin* origin,
                                     struct failure* failure);
// Of an event that is recorded now, within the scope.
static bool get_origin(struct scope* scope, struct origin* origin, struct failure* failure);
// Restores what the thread had. To be called after every enter, also one that has failed.
static bool leave(struct scope* scope, struct failure* failure);

#define HANDLE(number) ((void*)(number))
#define STREAM_OF(request) STREAM(HANDLE((request)->stream))

// The mode in which the thread may make calls that are unsafe while streams are captured: then they
// fail neither themselves nor the capture. Initially `mode` is the one to be set, afterwards the
// one that the thread had.
struct relaxed {
  int32_t mode;
  bool is_set;
};

static bool relax(struct relaxed* self, struct failure* failure) {
  *self = (struct relaxed){RELAXED_MODE, false};
  if (FUNCTION(ThreadExchangeStreamCaptureMode) == NULL) return true;  // a runtime without modes
  const int32_t code = FUNCTION(ThreadExchangeStreamCaptureMode)(&self->mode);
  self->is_set = code == 0;
  return check(NAME(ThreadExchangeStreamCaptureMode), code, failure);
}

static bool restore(struct relaxed* self, struct failure* failure) {
  if (!self->is_set) return true;
  const int32_t code = FUNCTION(ThreadExchangeStreamCaptureMode)(&self->mode);
  // It may have reported an earlier error.
  if (code != 0) (void)FUNCTION(ThreadExchangeStreamCaptureMode)(&self->mode);
  return check(NAME(ThreadExchangeStreamCaptureMode), code, failure);
}

static bool initialize(struct failure* failure) {
  return check(NAME(Init), FUNCTION(Init)(0), failure);
}

// Calls a function that asks or waits for the event.
static bool ask(int32_t(FLETCHING_CALL* function)(void*), const struct request* request,
                int32_t* code, struct failure* failure) {
  struct relaxed mode = {0};
  struct scope scope = {0};
  bool is_asked =
      initialize(failure) && relax(&mode, failure) && enter_any(&scope, request, failure);
  if (is_asked) *code = function(HANDLE(request->event));
  is_asked = leave(&scope, failure) && is_asked;
  return restore(&mode, failure) && is_asked;
}

static bool synchronize(struct request* request, struct failure* failure) {
  int32_t code = 0;
  return ask(FUNCTION(EventSynchronize), request, &code, failure) &&
         check(NAME(EventSynchronize), code, failure);
}

static bool query(struct request* request, struct failure* failure) {
  int32_t code = 0;
  if (!ask(FUNCTION(EventQuery), request, &code, failure)) return false;
  request->is_done = STATE(code) == EVENT_DONE;
  return STATE(code) != EVENT_FAILED || check(NAME(EventQuery), code, failure);
}

// Whether the stream is captured, and may be. Does not disturb the capture.
static bool check_capture(const struct request* request, bool* is_captured,
                          struct failure* failure) {
  *is_captured = false;
  if (FUNCTION(StreamIsCapturing) == NULL) return true;
  int32_t status = 0;
  const int32_t code = FUNCTION(StreamIsCapturing)(STREAM_OF(request), &status);
  const char* got = "one that is being captured into a graph";
  if (code == IMPLICIT) {
    got =
        "the legacy default stream while a stream that is ordered with it is being captured into "
        "a graph";
  } else {
    if (!check(NAME(StreamIsCapturing), code, failure)) return false;
    if (status == 0) return true;
    *is_captured = true;
    if (status == 1 && request->external) return has_external_events(failure);
    if (status != 1) {
      got = "one that is being captured into a graph, and whose capture is invalid and not ended";
    }
  }
  return fletching_fail(failure, EBUSY, "%s: expected a stream whose work runs, got %s", TITLE,
                        got);
}

static bool wait_on(struct request* request, struct failure* failure) {
  struct scope scope = {0};
  bool is_captured = false;
  bool waits = initialize(failure) && enter_stream(&scope, request, failure) &&
               check_capture(request, &is_captured, failure);
  if (waits) {
    const uint32_t flags = is_captured ? WAIT_EXTERNAL : 0;
    const int32_t code =
        FUNCTION(StreamWaitEvent)(STREAM_OF(request), HANDLE(request->event), flags);
    waits = check(NAME(StreamWaitEvent), code, failure);
  }
  return leave(&scope, failure) && waits;
}

static bool has_function(bool is_there, const char* name, struct failure* failure) {
  return is_there ||
         fletching_fail(failure, ENOSYS, "%s: %s has no %s; hint: install a newer version", TITLE,
                        LIBRARY, name);
}
#define HAS(function) has_function(FUNCTION(function) != NULL, NAME(function), failure)

// Creates and records the event. One that was created is there also after a failure.
static bool make(struct recorded* recorded, void* stream, bool is_captured,
                 struct failure* failure) {
  if (!HAS(EVENT_CREATE) || !HAS(EventDestroy) || !HAS(EventRecord)) return false;
  void* event = NULL;
  const int32_t created = FUNCTION(EVENT_CREATE)(&event, DISABLE_TIMING);
  if (!check(NAME(EVENT_CREATE), created, failure)) return false;
  recorded->event = event;
  if (!is_captured) return check(NAME(EventRecord), FUNCTION(EventRecord)(event, stream), failure);
  const int32_t code = FUNCTION(EventRecordWithFlags)(event, stream, RECORD_EXTERNAL);
  return check(NAME(EventRecordWithFlags), code, failure);
}

static bool record(struct recorded* recorded, struct request* request, struct failure* failure) {
  struct relaxed mode = {0};
  struct scope scope = {0};
  bool is_captured = false;
  bool is_recorded = initialize(failure) && relax(&mode, failure) &&
                     enter_stream(&scope, request, failure) &&
                     check_capture(request, &is_captured, failure) &&
                     get_origin(&scope, &recorded->origin, failure) &&
                     make(recorded, STREAM_OF(request), is_captured, failure);
  is_recorded = leave(&scope, failure) && is_recorded;
  return restore(&mode, failure) && is_recorded;
}

static bool has_passed(const struct recorded* recorded, struct failure* failure) {
  bool has_passed = false;
  struct relaxed mode;
  if (relax(&mode, failure) || IS_LOST(failure->result)) {
    failure->code = 0;  // the loss may be that of another device: the event is asked nonetheless
    struct scope scope = {0};
    const enum event_state there = enter_origin(&scope, &recorded->origin, failure);
    const bool is_lost = there == EVENT_FAILED && IS_LOST(failure->result);
    has_passed = there == EVENT_DONE;
    if (there == EVENT_PENDING) {
      const int32_t code = FUNCTION(EventQuery)(recorded->event);
      has_passed = IS_LOST(code) || STATE(code) == EVENT_DONE;
      if (STATE(code) == EVENT_FAILED) (void)check(NAME(EventQuery), code, failure);
    }
    has_passed = (leave(&scope, failure) && has_passed) || is_lost;
  }
  (void)restore(&mode, failure);
  return has_passed;
}

static void destroy(const struct recorded* recorded) {
  struct failure ignored = {0};
  struct relaxed mode;
  (void)relax(&mode, &ignored);
  // Nothing else destroys it, so it is tried without the mode too, and once more when it did not
  // come to that.
  bool is_tried = false;
  for (int attempt = 0; attempt < 2 && !is_tried; ++attempt) {
    struct scope scope = {0};
    const enum event_state there = enter_origin(&scope, &recorded->origin, &ignored);
    is_tried = there != EVENT_FAILED;
    if (there == EVENT_PENDING) (void)FUNCTION(EventDestroy)(recorded->event);
    (void)leave(&scope, &ignored);
  }
  (void)restore(&mode, &ignored);
}

static void run_relaxed(void (*body)(struct ArrowArray*), struct ArrowArray* array) {
  struct failure ignored = {0};
  struct relaxed mode;
  (void)relax(&mode, &ignored);
  body(array);
  (void)restore(&mode, &ignored);
}
